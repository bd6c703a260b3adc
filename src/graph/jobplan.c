/* What the rounds of a job have in common (jobplan.h). */
#include "graph/jobplan.h"

#include "graph/law.h"

static planc_status collect_touches(planc_arena *arena, planc_job_plan *plan);
static planc_status check_order(planc_arena *arena, const planc_job_plan *plan);
static planc_status find_scopes(planc_job_plan *plan);
static void find_redirected(planc_job_plan *plan);

planc_status planc_job_plan_make(planc_arena *arena, const planc_job *job, planc_job_plan *plan) {
  const planc_graph *graph = job->graph;
  plan->job = job;
  PLANC_TRY(collect_touches(arena, plan));
  if (job->order) {
    PLANC_TRY(check_order(arena, plan));
    plan->order = job->order;
  } else {
    int32_t *order;
    PLANC_TRY(PLANC_NEW(arena, &order, graph->n_ops));
    for (int32_t o = 0; o < graph->n_ops; o++) order[o] = o;
    plan->order = order;
  }
  for (int32_t o = 0; o < graph->n_ops; o++) plan->n_round_ops += graph->ops[o].phase != PLANC_PHASE_optimizer;
  PLANC_TRY(PLANC_NEW(arena, &plan->storages, graph->n_storages));
  if (graph->loss >= 0) plan->storages[graph->tensors[graph->loss].storage].result = true;
  for (int32_t k = 0; k < graph->n_outputs; k++)
    plan->storages[graph->tensors[graph->outputs[k]].storage].result = true;
  PLANC_TRY(find_scopes(plan));
  find_redirected(plan);
  return NULL;
}

static void add_touch(planc_job_plan *plan, int32_t *newest, int32_t op, int32_t tensor, uint32_t how);

static planc_status collect_touches(planc_arena *arena, planc_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  int64_t n_operands = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    n_operands += (int64_t)graph->ops[o].n_in + graph->ops[o].n_out + graph->ops[o].n_effects;
  if (n_operands > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "the ops have more than %d operands", INT32_MAX);
  PLANC_TRY(PLANC_NEW(arena, &plan->touches, n_operands));
  PLANC_TRY(PLANC_NEW(arena, &plan->first_touch, (int64_t)graph->n_ops + 1));
  int32_t *newest; /* by storage: its newest touch plus 1 */
  PLANC_TRY(PLANC_NEW(arena, &newest, graph->n_storages));
  for (int32_t o = 0; o < graph->n_ops; o++) {
    const planc_op *op = &graph->ops[o];
    plan->first_touch[o] = plan->n_touches;
    for (int32_t k = 0; k < op->n_in; k++) add_touch(plan, newest, o, op->in[k], PLANC_TOUCH_READ);
    for (int32_t k = 0; k < op->n_out; k++) {
      planc_law part = graph->tensors[op->out[k]].bytes;
      planc_law whole = graph->storages[graph->tensors[op->out[k]].storage].bytes;
      /* Laws are compared, not sizes, so that all rounds have the same accesses. */
      bool partial = !planc_law_equal(part, whole);
      add_touch(plan, newest, o, op->out[k], partial ? PLANC_TOUCH_WRITE | PLANC_TOUCH_PARTIAL : PLANC_TOUCH_WRITE);
    }
    for (int32_t k = 0; k < op->n_effects; k++) add_touch(plan, newest, o, op->effects[k], PLANC_TOUCH_EFFECT);
  }
  plan->first_touch[graph->n_ops] = plan->n_touches;
  return NULL;
}

static void add_touch(planc_job_plan *plan, int32_t *newest, int32_t op, int32_t tensor, uint32_t how) {
  int32_t storage = plan->job->graph->tensors[tensor].storage;
  if (newest[storage] <= plan->first_touch[op]) {
    plan->touches[plan->n_touches++] = (planc_touch){.storage = storage};
    newest[storage] = plan->n_touches;
  }
  plan->touches[newest[storage] - 1].how |= how;
}

/* Checks that the job's order is a permutation that changes nothing but time: phases stay in order and every op finds
 * every storage as many times written as in the graph's order. Both follow for reads, writes after reads, and writes
 * after writes. */
static planc_status check_order(planc_arena *arena, const planc_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  const int32_t *order = plan->job->order;
  bool *seen;
  int32_t *writes, *expected; /* by storage: writes so far; by touch: writes before it in the graph's order */
  PLANC_TRY(PLANC_NEW(arena, &seen, graph->n_ops));
  PLANC_TRY(PLANC_NEW(arena, &writes, graph->n_storages));
  PLANC_TRY(PLANC_NEW(arena, &expected, plan->n_touches));
  for (int32_t t = 0; t < plan->n_touches; t++) {
    const planc_touch *at = &plan->touches[t];
    expected[t] = planc_touch_writes(at) ? writes[at->storage]++ : writes[at->storage];
  }
  for (int32_t s = 0; s < graph->n_storages; s++) writes[s] = 0;
  planc_phase phase = PLANC_PHASE_forward;
  for (int32_t position = 0; position < graph->n_ops; position++) {
    int32_t o = order[position];
    if (o < 0 || o >= graph->n_ops || seen[o])
      return planc_error(PLANC_BAD_INPUT, "order: position %d: %d is not an op or stands there twice", position, o);
    seen[o] = true;
    const planc_op *op = &graph->ops[o];
    if (op->phase < phase)
      return planc_error(PLANC_BAD_INPUT, "order: op %s of the %s phase comes after a %s op", op->name,
                         planc_phase_name(op->phase), planc_phase_name(phase));
    phase = op->phase;
    for (int32_t t = plan->first_touch[o]; t < plan->first_touch[o + 1]; t++) {
      const planc_touch *at = &plan->touches[t];
      if (writes[at->storage] != expected[t])
        return planc_error(PLANC_BAD_INPUT, "order: op %s comes %s a write of %s that it must %s", op->name,
                           writes[at->storage] < expected[t] ? "before" : "after",
                           graph->tensors[graph->storages[at->storage].tensor].name,
                           writes[at->storage] < expected[t] ? "follow" : "precede");
      writes[at->storage] += planc_touch_writes(at);
    }
  }
  return NULL;
}

/* Finds how long every storage lasts and who touches the gradients within a round. */
static planc_status find_scopes(planc_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  bool split = plan->job->n_rounds > 1;
  for (int32_t position = 0; position < graph->n_ops; position++) {
    int32_t o = plan->order[position];
    const planc_op *op = &graph->ops[o];
    bool in_round = op->phase != PLANC_PHASE_optimizer;
    for (int32_t t = plan->first_touch[o]; t < plan->first_touch[o + 1]; t++) {
      const planc_touch *at = &plan->touches[t];
      const planc_storage *storage = &graph->storages[at->storage];
      const char *name = graph->tensors[storage->tensor].name;
      planc_storage_use *use = &plan->storages[at->storage];
      if (planc_kind_persists(storage->kind)) {
        use->scope = PLANC_SCOPE_PERIOD;
      } else if (storage->kind == PLANC_KIND_grad) {
        use->scope = PLANC_SCOPE_ITERATION;
      } else if (use->scope == PLANC_SCOPE_UNTOUCHED) {
        use->scope = in_round || storage->kind == PLANC_KIND_input ? PLANC_SCOPE_ROUND : PLANC_SCOPE_ITERATION;
      }
      if (split && !in_round && use->scope == PLANC_SCOPE_ROUND)
        return planc_error(PLANC_BAD_INPUT, "op %s runs once for all rounds but touches %s, which each round has anew",
                           op->name, name);
      if (split && in_round && use->scope != PLANC_SCOPE_ROUND && storage->bytes.per_sample != 0)
        return planc_error(PLANC_BAD_INPUT, "op %s: the rounds share the %s %s, but its size depends on the batch",
                           op->name, planc_kind_name(storage->kind), name);
      if (in_round && storage->kind == PLANC_KIND_grad) {
        use->adds_in_place = use->n_touches == 0 && (op->flags & PLANC_OP_ACCUMULATES);
        use->n_touches++;
        use->last_position = position;
        if (planc_touch_writes(at)) use->last_writer = o;
      }
    }
  }
  return NULL;
}

/* Rounds after the first add to a gradient in place only where the op that makes it can do so for all it makes. */
static void find_redirected(planc_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  if (plan->job->n_rounds == 1) return;
  for (int32_t position = 0; position < plan->n_round_ops; position++) {
    int32_t o = plan->order[position];
    bool adds = true;
    for (int32_t t = plan->first_touch[o]; t < plan->first_touch[o + 1]; t++) {
      const planc_touch *at = &plan->touches[t];
      if (graph->storages[at->storage].kind == PLANC_KIND_grad && planc_touch_writes(at))
        adds &= plan->storages[at->storage].adds_in_place;
    }
    for (int32_t t = plan->first_touch[o]; t < plan->first_touch[o + 1]; t++) {
      planc_storage_use *use = &plan->storages[plan->touches[t].storage];
      if (graph->storages[plan->touches[t].storage].kind != PLANC_KIND_grad || use->redirected) continue;
      if (adds && use->adds_in_place) continue;
      use->redirected = true;
      plan->n_redirected++;
    }
  }
}
