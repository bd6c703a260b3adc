/* What the rounds of a job have in common (jobplan.h). */
#include "graph/jobplan.h"

#include "graph/law.h"

/* --- Of a graph ------------------------------------------------------------------------------------------------- */

/* While touches are collected. */
typedef struct collector {
  planc_touches *out;
  int32_t *newest; /* by storage: its newest touch plus 1 */
  int32_t *slots;  /* by storage: its slot plus 1 */
} collector;

static void add_touch(collector *c, int32_t op, int32_t tensor, uint32_t how) {
  planc_touches *out = c->out;
  int32_t storage = out->graph->tensors[tensor].storage;
  if (c->newest[storage] <= out->first_touch[op]) {
    if (!c->slots[storage]) {
      out->storages[out->n_slots++] = storage;
      c->slots[storage] = out->n_slots;
    }
    out->touches[out->n_touches++] = (planc_touch){.slot = c->slots[storage] - 1};
    c->newest[storage] = out->n_touches;
  }
  out->touches[c->newest[storage] - 1].how |= how;
}

static void collect_touches(collector *c) {
  const planc_graph *graph = c->out->graph;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    const planc_op *op = &graph->ops[o];
    c->out->n_round_ops += op->phase != PLANC_PHASE_optimizer;
    c->out->first_touch[o] = c->out->n_touches;
    for (int32_t k = 0; k < op->n_in; k++) add_touch(c, o, op->in[k], PLANC_TOUCH_READ);
    for (int32_t k = 0; k < op->n_out; k++) {
      planc_law part = graph->tensors[op->out[k]].bytes;
      planc_law whole = graph->storages[graph->tensors[op->out[k]].storage].bytes;
      /* Laws are compared, not sizes, so that all rounds have the same accesses. */
      bool partial = !planc_law_equal(part, whole);
      add_touch(c, o, op->out[k], partial ? PLANC_TOUCH_WRITE | PLANC_TOUCH_PARTIAL : PLANC_TOUCH_WRITE);
    }
    for (int32_t k = 0; k < op->n_effects; k++) add_touch(c, o, op->effects[k], PLANC_TOUCH_EFFECT);
  }
  c->out->first_touch[graph->n_ops] = c->out->n_touches;
}

/* An op writes every result, so each has a slot. */
static void mark_results(const collector *c) {
  const planc_graph *graph = c->out->graph;
  for (int32_t k = graph->loss >= 0 ? -1 : 0; k < graph->n_outputs; k++) {
    int32_t tensor = k < 0 ? graph->loss : graph->outputs[k];
    c->out->results[c->slots[graph->tensors[tensor].storage] - 1] = true;
  }
}

planc_status planc_touches_make(planc_arena *arena, const planc_graph *graph, planc_touches *out) {
  *out = (planc_touches){.graph = graph};
  collector c = {.out = out};
  int64_t n_operands = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    n_operands += (int64_t)graph->ops[o].n_in + graph->ops[o].n_out + graph->ops[o].n_effects;
  if (n_operands > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "the ops have more than %d operands", INT32_MAX);
  PLANC_TRY(PLANC_NEW(arena, &out->touches, n_operands));
  PLANC_TRY(PLANC_NEW(arena, &out->first_touch, (int64_t)graph->n_ops + 1));
  PLANC_TRY(PLANC_NEW(arena, &out->storages, graph->n_storages));
  PLANC_TRY(PLANC_NEW(arena, &out->results, graph->n_storages));
  PLANC_TRY(PLANC_NEW(arena, &c.newest, graph->n_storages));
  PLANC_TRY(PLANC_NEW(arena, &c.slots, graph->n_storages));
  collect_touches(&c);
  mark_results(&c);
  return NULL;
}

/* --- Of a job --------------------------------------------------------------------------------------------------- */

static planc_status check_order(planc_arena *arena, const planc_job_plan *plan);
static planc_status find_scopes(planc_job_plan *plan);
static void find_redirected(planc_job_plan *plan);

planc_status planc_job_plan_make(planc_arena *arena, const planc_job *job, const planc_touches *of,
                                 planc_job_plan *plan) {
  plan->job = job;
  plan->of = of;
  plan->order = job->order;
  if (job->order) {
    PLANC_TRY(check_order(arena, plan));
  } else {
    int32_t *order;
    PLANC_TRY(PLANC_NEW(arena, &order, job->graph->n_ops));
    for (int32_t o = 0; o < job->graph->n_ops; o++) order[o] = o;
    plan->order = order;
  }
  PLANC_TRY(PLANC_NEW(arena, &plan->uses, of->n_slots));
  PLANC_TRY(find_scopes(plan));
  find_redirected(plan);
  return NULL;
}

/* Checks that the job's order is a permutation that changes nothing but time: phases stay in order and every op finds
 * every storage as many times written as in the graph's order. Both follow for reads, writes after reads, and writes
 * after writes. */
static planc_status check_order(planc_arena *arena, const planc_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  const int32_t *order = plan->job->order;
  bool *seen;
  int32_t *writes, *expected; /* by slot: writes so far; by touch: writes before it in the graph's order */
  PLANC_TRY(PLANC_NEW(arena, &seen, graph->n_ops));
  PLANC_TRY(PLANC_NEW(arena, &writes, plan->of->n_slots));
  PLANC_TRY(PLANC_NEW(arena, &expected, plan->of->n_touches));
  for (int32_t t = 0; t < plan->of->n_touches; t++) {
    const planc_touch *at = &plan->of->touches[t];
    expected[t] = planc_touch_writes(at) ? writes[at->slot]++ : writes[at->slot];
  }
  for (int32_t s = 0; s < plan->of->n_slots; s++) writes[s] = 0;
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
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      const planc_touch *at = &plan->of->touches[t];
      if (writes[at->slot] != expected[t])
        return planc_error(PLANC_BAD_INPUT, "order: op %s comes %s a write of %s that it must %s", op->name,
                           writes[at->slot] < expected[t] ? "before" : "after",
                           graph->tensors[planc_slot_storage(plan, at->slot)->tensor].name,
                           writes[at->slot] < expected[t] ? "follow" : "precede");
      writes[at->slot] += planc_touch_writes(at);
    }
  }
  return NULL;
}

/* Finds how long every storage lasts and who touches the gradients within a round. */
static planc_status find_scopes(planc_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  bool split = plan->job->n_rounds > 1 || plan->job->replicas > 1;
  for (int32_t position = 0; position < graph->n_ops; position++) {
    int32_t o = plan->order[position];
    const planc_op *op = &graph->ops[o];
    bool in_round = op->phase != PLANC_PHASE_optimizer;
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      const planc_touch *at = &plan->of->touches[t];
      const planc_storage *storage = planc_slot_storage(plan, at->slot);
      const char *name = graph->tensors[storage->tensor].name;
      planc_storage_use *use = &plan->uses[at->slot];
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
  if (plan->job->n_rounds == 1) return;
  for (int32_t position = 0; position < plan->of->n_round_ops; position++) {
    int32_t o = plan->order[position];
    bool adds = true;
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      const planc_touch *at = &plan->of->touches[t];
      if (planc_slot_storage(plan, at->slot)->kind == PLANC_KIND_grad && planc_touch_writes(at))
        adds &= plan->uses[at->slot].adds_in_place;
    }
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      planc_storage_use *use = &plan->uses[plan->of->touches[t].slot];
      if (planc_slot_storage(plan, plan->of->touches[t].slot)->kind != PLANC_KIND_grad || use->redirected) continue;
      if (adds && use->adds_in_place) continue;
      use->redirected = true;
      plan->n_redirected++;
    }
  }
}
