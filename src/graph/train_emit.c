/* The ops that a derivation makes (train.h). */
#include <stdio.h>

#include "graph/train.h"

planc_status pl_train_emit(pl_derivation *d, pl_optype_id type, const char *suffix, const int32_t *in, int32_t n_in,
                           const int32_t *out, int32_t n_out, const planc_attr *attrs, int32_t n_attrs) {
  char name[512];
  (void)snprintf(name, sizeof name, "%s.%s", d->op->name, suffix);
  planc_op op = {.name = name,
                 .type = pl_optype_at(type)->name,
                 .phase = PLANC_PHASE_backward,
                 .n_in = n_in,
                 .in = in,
                 .n_out = n_out,
                 .out = out,
                 .n_attrs = n_attrs,
                 .attrs = attrs,
                 .flops = {-1, -1},
                 .traffic = {-1, -1},
                 .loop = d->op->loop,
                 .loop_step = d->op->loop_step};
  return planc_graph_builder_op(d->builder, &op);
}
