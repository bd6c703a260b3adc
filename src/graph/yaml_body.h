/* The body of a graph file, planc-graph(5): its tensors and its ops, which go straight into a graph builder. The header
 * around them is yaml_read.c's. */
#ifndef PLANC_GRAPH_YAML_BODY_H
#define PLANC_GRAPH_YAML_BODY_H

#include "graph/yaml_events.h"
#include "planc/graph.h"
#include "util/vec.h"

typedef struct pl_yaml_body {
  pl_yaml *yaml;
  planc_graph_builder *builder;
  bool has_tensors;
  VEC(pl_text_place) places; /* of the ops in the file */
  /* Parts of the op being read. */
  VEC(int32_t) operands;
  VEC(planc_attr) attrs;
  VEC(int64_t) ints;
} pl_yaml_body;

/* Read the value of the key "tensors" and of the key "ops", which comes after it. */
planc_status pl_yaml_read_tensors(pl_yaml_body *body);
planc_status pl_yaml_read_ops(pl_yaml_body *body);
void pl_yaml_body_free(pl_yaml_body *body);
/* The error that there is no tensor of that name. */
planc_status pl_yaml_unknown_tensor(const char *name);

#endif
