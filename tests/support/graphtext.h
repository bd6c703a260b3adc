/* Graphs as text in tests: any failure fails the test. */
#ifndef PLANC_TESTS_GRAPHTEXT_H
#define PLANC_TESTS_GRAPHTEXT_H

#include <string.h>

#include "tests/support/forward.h"

/* The graph of a text, called "g" in messages. */
static inline planc_graph *graph_of(const char *text) {
  planc_graph *graph;
  ok(planc_graph_parse(text, strlen(text), "g", &graph));
  return graph;
}

/* The text of a graph; malloc'ed. */
static inline char *text_of(const planc_graph *graph) {
  char *text;
  size_t length;
  ok(planc_graph_print(graph, &text, &length));
  ck_assert_uint_eq(strlen(text), length);
  return text;
}

/* The storage of the tensor of that name. */
static inline int32_t storage_named(const planc_graph *graph, const char *name) {
  for (int32_t t = 0; t < graph->n_tensors; t++)
    if (strcmp(graph->tensors[t].name, name) == 0) return graph->tensors[t].storage;
  ck_abort_msg("no tensor %s", name);
  return -1;
}

#endif
