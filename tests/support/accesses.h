/* Which storages an op touches, told from its operands alone, for oracles. */
#ifndef PLANC_TESTS_ACCESSES_H
#define PLANC_TESTS_ACCESSES_H

#include "planc/graph.h"

static inline bool any_in_storage(const planc_graph *g, const int32_t *tensors, int32_t n, int32_t storage) {
  for (int32_t k = 0; k < n; k++)
    if (g->tensors[tensors[k]].storage == storage) return true;
  return false;
}

static inline bool op_reads(const planc_graph *g, const planc_op *op, int32_t storage) {
  return any_in_storage(g, op->in, op->n_in, storage) || any_in_storage(g, op->effects, op->n_effects, storage);
}

static inline bool op_writes(const planc_graph *g, const planc_op *op, int32_t storage) {
  return any_in_storage(g, op->out, op->n_out, storage) || any_in_storage(g, op->effects, op->n_effects, storage);
}

#endif
