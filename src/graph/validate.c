/* The checks of a whole graph, one pass in execution order. */
#include <stdlib.h>

#include "graph/builder.h"
#include "graph/byte_range.h"
#include "graph/coverage.h"
#include "graph/optypes.h"

typedef struct output {
  const planc_tensor *tensor;
  int64_t start; /* at batch 1 */
} output;

typedef struct validation {
  const planc_graph *graph;
  pl_coverage coverage; /* what ops up to this one wrote */
  int32_t *effect_of;   /* by storage: last op with it as an effect */
  int32_t *written_by;  /* by storage: last op that wrote it */
  VEC(output) outputs;  /* scratch: of one op */
  pl_graph_fault *fault;
} validation;

static planc_status check_graph(validation *v, planc_op *ops, bool *seen);
static planc_status check_op(validation *v, int32_t index, planc_op *op);
static planc_status check_gradients(validation *v);
static planc_status check_results(validation *v, bool *seen);
static planc_status check_effects(validation *v, int32_t index, const planc_op *op);
static planc_status check_reads(validation *v, int32_t index, const planc_op *op);
static planc_status check_writes(validation *v, int32_t index, const planc_op *op);
static planc_status settle_flags(planc_op *op);
static planc_status settle_class(planc_op *op);

planc_status pl_graph_validate(const planc_graph *graph, planc_op *ops, pl_graph_fault *out_fault) {
  *out_fault = pl_no_fault;
  pl_arena arena = {0};
  validation v = {.graph = graph, .fault = out_fault};
  bool *seen = NULL;
  planc_status status = pl_coverage_make(&arena, graph, &v.coverage);
  if (!status) status = PL_NEW(&arena, &v.effect_of, graph->n_storages);
  if (!status) status = PL_NEW(&arena, &v.written_by, graph->n_storages);
  if (!status) status = PL_NEW(&arena, &seen, graph->n_tensors);
  if (!status) {
    for (int32_t s = 0; s < graph->n_storages; s++) v.effect_of[s] = v.written_by[s] = -1;
    status = check_graph(&v, ops, seen);
  }
  VEC_FREE(&v.outputs);
  pl_arena_free(&arena);
  return status;
}

static planc_status check_graph(validation *v, planc_op *ops, bool *seen) {
  int32_t n_ops = v->graph->n_ops;
  for (int32_t i = 0; i < n_ops; i++) {
    v->fault->op = i;
    PLANC_TRY(planc_context(check_op(v, i, &ops[i]), "op %s", ops[i].name));
    bool rounds_end =
        ops[i].phase != PLANC_PHASE_optimizer && (i + 1 == n_ops || ops[i + 1].phase == PLANC_PHASE_optimizer);
    if (rounds_end) PLANC_TRY(check_gradients(v));
  }
  v->fault->op = -1;
  PLANC_TRY(check_results(v, seen));
  *v->fault = pl_no_fault;
  return NULL;
}

static planc_status check_op(validation *v, int32_t index, planc_op *op) {
  if (index > 0 && op->phase < v->graph->ops[index - 1].phase) {
    return planc_error(PLANC_BAD_INPUT, "phase %s comes after phase %s", planc_phase_name(op->phase),
                       planc_phase_name(v->graph->ops[index - 1].phase));
  }
  PLANC_TRY(check_effects(v, index, op));
  PLANC_TRY(check_reads(v, index, op));
  PLANC_TRY(check_writes(v, index, op));
  PLANC_TRY(pl_op_check(v->graph, op));
  if (op->flops.fixed < 0) PLANC_TRY(pl_op_flops(v->graph, op, &op->flops));
  if (op->traffic.fixed < 0) PLANC_TRY(pl_op_traffic(v->graph, op, &op->traffic));
  PLANC_TRY(settle_flags(op));
  return settle_class(op);
}

static const planc_storage *storage_of(const validation *v, int32_t tensor) {
  return &v->graph->storages[v->graph->tensors[tensor].storage];
}

static const char *name_of(const validation *v, int32_t tensor) {
  return v->graph->tensors[tensor].name;
}

/* --- Reads -------------------------------------------------------------------------------------------------------- */

static planc_status not_produced(validation *v, int32_t op, int32_t tensor) {
  const planc_graph *g = v->graph;
  if (v->written_by[g->tensors[tensor].storage] >= 0)
    return planc_error(PLANC_BAD_INPUT, "tensor %s is read before all of it is written", name_of(v, tensor));
  for (int32_t later = op; later < g->n_ops; later++) {
    for (int32_t i = 0; i < g->ops[later].n_out; i++) {
      if (g->tensors[g->ops[later].out[i]].storage != g->tensors[tensor].storage) continue;
      if (later == op)
        return planc_error(PLANC_BAD_INPUT, "tensor %s is read before it is produced", name_of(v, tensor));
      v->fault->later_op = later;
      return planc_error(PLANC_BAD_INPUT, "tensor %s is produced only later, by op %s", name_of(v, tensor),
                         g->ops[later].name);
    }
  }
  return planc_error(PLANC_BAD_INPUT, "tensor %s is never produced", name_of(v, tensor));
}

static planc_status check_reads(validation *v, int32_t index, const planc_op *op) {
  for (int32_t i = 0; i < op->n_in; i++) {
    if (!pl_coverage_has(&v->coverage, op->in[i])) return not_produced(v, index, op->in[i]);
    if (v->effect_of[v->graph->tensors[op->in[i]].storage] == index) {
      return planc_error(PLANC_BAD_INPUT, "tensor %s is both input and effect", name_of(v, op->in[i]));
    }
  }
  return NULL;
}

static planc_status check_effects(validation *v, int32_t index, const planc_op *op) {
  for (int32_t i = 0; i < op->n_effects; i++) {
    const char *name = name_of(v, op->effects[i]);
    planc_kind kind = storage_of(v, op->effects[i])->kind;
    int32_t s = v->graph->tensors[op->effects[i]].storage;
    if (!planc_kind_persists(kind)) {
      return planc_error(PLANC_BAD_INPUT, "effect %s is of kind %s, only param and state persist", name,
                         planc_kind_name(kind));
    }
    if (v->effect_of[s] == index) return planc_error(PLANC_BAD_INPUT, "effect %s is given twice", name);
    v->effect_of[s] = index;
  }
  return NULL;
}

/* --- Writes ------------------------------------------------------------------------------------------------------- */

static int compare_starts(const void *a, const void *b) {
  const output *x = a, *y = b;
  if (x->tensor->storage != y->tensor->storage) return x->tensor->storage < y->tensor->storage ? -1 : 1;
  return x->start < y->start ? -1 : x->start > y->start;
}

/* Outputs of one op must not overlap: those that never do are in order at every batch as they are at batch 1. */
static planc_status check_overlap(validation *v, const planc_op *op) {
  v->outputs.len = 0;
  for (int32_t i = 0; i < op->n_out; i++) {
    const planc_tensor *tensor = &v->graph->tensors[op->out[i]];
    output o = {.tensor = tensor, .start = planc_law_at(tensor->offset, 1)};
    VEC_PUSH(&v->outputs, o);
  }
  qsort(v->outputs.data, (size_t)v->outputs.len, sizeof *v->outputs.data, compare_starts);
  for (int64_t i = 1; i < v->outputs.len; i++) {
    const planc_tensor *a = v->outputs.data[i - 1].tensor, *b = v->outputs.data[i].tensor;
    if (a->storage != b->storage || pl_byte_range_disjoint(pl_byte_range_of(a), pl_byte_range_of(b))) continue;
    return planc_error(PLANC_BAD_INPUT, "outputs %s and %s overlap", a->name, b->name);
  }
  return NULL;
}

static planc_status check_writes(validation *v, int32_t index, const planc_op *op) {
  bool shared = false;
  for (int32_t i = 0; i < op->n_out; i++) {
    const char *name = name_of(v, op->out[i]);
    int32_t s = v->graph->tensors[op->out[i]].storage;
    planc_kind kind = v->graph->storages[s].kind;
    if (kind == PLANC_KIND_input) return planc_error(PLANC_BAD_INPUT, "writes input %s", name);
    if (kind == PLANC_KIND_param && op->phase != PLANC_PHASE_optimizer) {
      return planc_error(PLANC_BAD_INPUT, "writes param %s before the optimizer phase", name);
    }
    if (v->effect_of[s] == index) return planc_error(PLANC_BAD_INPUT, "tensor %s is both output and effect", name);
    shared |= v->written_by[s] == index;
    v->written_by[s] = index;
  }
  if (shared) PLANC_TRY(check_overlap(v, op));
  for (int32_t i = 0; i < op->n_out; i++) {
    if (pl_coverage_write(&v->coverage, op->out[i])) continue;
    return planc_error(PLANC_BAD_INPUT, "writes part of %s, whose views lie otherwise at other batches",
                       name_of(v, storage_of(v, op->out[i])->tensor));
  }
  return NULL;
}

/* Rounds and replicas add up all of a gradient: what their ops write is the whole. */
static planc_status check_gradients(validation *v) {
  const planc_graph *g = v->graph;
  for (int32_t s = 0; s < g->n_storages; s++) {
    if (g->storages[s].kind != PLANC_KIND_grad || v->written_by[s] < 0) continue;
    if (pl_coverage_has(&v->coverage, g->storages[s].tensor)) continue;
    v->fault->op = v->written_by[s];
    return planc_error(PLANC_BAD_INPUT, "op %s: gradient %s is written only in part", g->ops[v->written_by[s]].name,
                       name_of(v, g->storages[s].tensor));
  }
  return NULL;
}

/* --- Ops and results ---------------------------------------------------------------------------------------------- */

/* What kernels do with gradients and rounds is known of planc's own types; of a foreign one only the graph says it. */
static planc_status settle_flags(planc_op *op) {
  if (!op->known) return NULL;
  uint32_t untrue = op->flags & (PLANC_OP_ACCUMULATES | PLANC_OP_BATCH_MEAN) & ~op->known->flags;
  if (untrue)
    return planc_error(PLANC_BAD_INPUT, "flag %s: ops of type %s do not do that",
                       untrue & PLANC_OP_ACCUMULATES ? "accumulates" : "batch-mean", op->type);
  op->flags |= op->known->flags;
  return NULL;
}

/* A class is stated where it says something. */
static planc_status settle_class(planc_op *op) {
  planc_class unstated = pl_op_class_unstated(op);
  bool same = op->has_class && op->class_ == unstated;
  if (same) op->has_class = false;
  if (!op->known || !op->has_class) return NULL;
  return planc_error(PLANC_BAD_INPUT, "is of class %s, which type %s is not: it is of class %s",
                     pl_class_name(op->class_), op->type, pl_class_name(unstated));
}

/* A tensor that leaves for the host is made anew in every round, and leaves with all of its storage. */
static planc_status check_result(validation *v, int32_t tensor) {
  planc_kind kind = storage_of(v, tensor)->kind;
  if (kind != PLANC_KIND_activation && kind != PLANC_KIND_temp) {
    return planc_error(PLANC_BAD_INPUT, "is of kind %s, only activation and temp can leave", planc_kind_name(kind));
  }
  const planc_storage *storage = storage_of(v, tensor);
  if (pl_coverage_has(&v->coverage, storage->tensor)) return NULL;
  if (v->written_by[v->graph->tensors[tensor].storage] < 0) return planc_error(PLANC_BAD_INPUT, "is never produced");
  return planc_error(PLANC_BAD_INPUT, "leaves with all of %s, which is written only in part",
                     name_of(v, storage->tensor));
}

static planc_status check_results(validation *v, bool *seen) {
  const planc_graph *g = v->graph;
  if (g->loss >= 0) {
    v->fault->tensor = g->loss;
    PLANC_TRY(planc_context(check_result(v, g->loss), "loss %s", name_of(v, g->loss)));
    seen[g->loss] = true;
  }
  for (int32_t i = 0; i < g->n_outputs; i++) {
    v->fault->tensor = g->outputs[i];
    v->fault->output = i;
    PLANC_TRY(planc_context(check_result(v, g->outputs[i]), "output %s", name_of(v, g->outputs[i])));
    if (seen[g->outputs[i]]) return planc_error(PLANC_BAD_INPUT, "output %s is given twice", name_of(v, g->outputs[i]));
    seen[g->outputs[i]] = true;
  }
  return NULL;
}
