/* Fuzz target: any bytes as a graph. What is accepted must survive writing and reading again, as it is and in every
 * precision that it can be put in. */
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const planc_graph *graph, size_t *out_length) {
  char *text;
  if (planc_graph_print(graph, &text, out_length)) abort();
  return text;
}

/* A graph is what its text says, and its convolutions can be divided by. */
static void use(const planc_graph *graph) {
  size_t length, length_again;
  char *text = print(graph, &length);
  planc_graph *again;
  if (planc_graph_parse(text, length, "again", &again)) abort();
  char *text_again = print(again, &length_again);
  if (length != length_again || memcmp(text, text_again, length) != 0) abort();
  if (planc_graph_hash(graph) != planc_graph_hash(again)) abort();
  for (int32_t i = 0; i < graph->n_ops; i++) {
    pl_conv conv;
    if (!pl_conv_of(graph, &graph->ops[i], &conv)) continue;
    if (conv.stride_h < 1 || conv.stride_w < 1 || conv.groups < 1 || conv.p < 1 || conv.q < 1) abort();
  }
  for (int32_t i = 0; i < graph->n_tensors; i++) {
    if (planc_law_at(graph->tensors[i].bytes, 1) < 1) abort();
  }
  free(text);
  free(text_again);
  planc_graph_free(again);
}

static void use_converted(const planc_graph *graph) {
  for (int precision = PLANC_F32; precision <= PLANC_BF16; precision++) {
    planc_graph *converted;
    planc_status status = planc_graph_convert(graph, (planc_precision)precision, &converted);
    if (!status != (converted != NULL)) abort();
    if (converted) use(converted);
    planc_status_free(status);
    planc_graph_free(converted);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  planc_graph *graph;
  planc_status status = planc_graph_parse((const char *)data, size, "fuzz", &graph);
  if (!status != (graph != NULL)) abort();
  if (graph) {
    use(graph);
    use_converted(graph);
  }
  planc_status_free(status);
  planc_graph_free(graph);
  return 0;
}
