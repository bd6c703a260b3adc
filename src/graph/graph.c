/* Looking at a graph. */
#include "planc/graph.h"

#include <stdlib.h>
#include <string.h>

#include "graph/builder.h"
#include "util/math.h"

int64_t planc_law_at(planc_law law, int64_t batch) {
  int64_t value;
  if (pl_mul_overflow(law.per_sample, batch, &value) || pl_add_overflow(value, law.fixed, &value)) return -1;
  return value;
}

int64_t planc_dtype_bytes(planc_dtype dtype) {
  static const int64_t sizes[] = {
#define X(name, bytes) bytes,
      PLANC_DTYPES(X)
#undef X
  };
  return sizes[dtype];
}

const char *planc_dtype_name(planc_dtype dtype) {
  static const char *const names[] = {
#define X(name, bytes) #name,
      PLANC_DTYPES(X)
#undef X
  };
  return names[dtype];
}

const char *planc_kind_name(planc_kind kind) {
  static const char *const names[] = {
#define X(name, text) #name,
      PLANC_KINDS(X)
#undef X
  };
  return names[kind];
}

const char *planc_phase_name(planc_phase phase) {
  static const char *const names[] = {
#define X(name) #name,
      PLANC_PHASES(X)
#undef X
  };
  return names[phase];
}

bool planc_graph_has_backward(const planc_graph *graph) {
  for (int32_t i = 0; i < graph->n_ops; i++) {
    if (graph->ops[i].phase == PLANC_PHASE_backward) return true;
  }
  return false;
}

static bool op_has_samples(const planc_op *op) {
  return op->flops.per_sample || op->traffic.per_sample || op->workspace.per_sample;
}

bool planc_graph_has_samples(const planc_graph *graph) {
  for (int32_t i = 0; i < graph->n_tensors; i++)
    if (graph->tensors[i].bytes.per_sample || graph->tensors[i].offset.per_sample) return true;
  for (int32_t i = 0; i < graph->n_ops; i++)
    if (op_has_samples(&graph->ops[i])) return true;
  return false;
}

bool planc_graph_is_batch_coupled(const planc_graph *graph) {
  for (int32_t i = 0; i < graph->n_ops; i++) {
    if (graph->ops[i].flags & PLANC_OP_BATCH_COUPLED) return true;
  }
  return false;
}

const planc_attr *planc_op_attr(const planc_op *op, const char *key) {
  for (int32_t i = 0; i < op->n_attrs; i++) {
    if (strcmp(op->attrs[i].key, key) == 0) return &op->attrs[i];
  }
  return NULL;
}

int64_t planc_op_int(const planc_op *op, const char *key, int32_t index, int64_t fallback) {
  const planc_attr *attr = planc_op_attr(op, key);
  if (attr && attr->type == PLANC_ATTR_INT) return attr->value.integer;
  if (attr && attr->type == PLANC_ATTR_INTS && index < attr->count) return attr->value.ints[index];
  return fallback;
}

double planc_op_real(const planc_op *op, const char *key, double fallback) {
  const planc_attr *attr = planc_op_attr(op, key);
  if (attr && attr->type == PLANC_ATTR_REAL) return attr->value.real;
  if (attr && attr->type == PLANC_ATTR_INT) return (double)attr->value.integer;
  return fallback;
}

void planc_graph_free(planc_graph *graph) {
  if (!graph) return;
  pl_owned_graph *owned = (pl_owned_graph *)graph;
  free((void *)graph->tensors);
  free((void *)graph->storages);
  free((void *)graph->ops);
  free((void *)graph->outputs);
  pl_arena_free(&owned->arena);
  free(owned);
}
