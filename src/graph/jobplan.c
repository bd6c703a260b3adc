/* What the rounds of a job have in common (jobplan.h). */
#include "graph/jobplan.h"

#include <assert.h>

#include "graph/law.h"
#include "graph/optypes.h"
#include "graph/parts.h"

/* While touches are collected. */
typedef struct collector {
  pl_touches *out;
  int32_t *newest; /* by storage: its newest touch plus 1 */
  int32_t *slots;  /* by storage: its slot plus 1 */
} collector;

static void collect_touches(collector *c);
static void mark_results(const collector *c);

planc_status pl_touches_make(pl_arena *arena, const planc_graph *graph, pl_touches *out) {
  *out = (pl_touches){.graph = graph};
  collector c = {.out = out};
  int64_t n_operands = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    n_operands += (int64_t)graph->ops[o].n_in + graph->ops[o].n_out + graph->ops[o].n_effects;
  if (n_operands > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "the ops have more than %d operands", INT32_MAX);
  PLANC_TRY(PL_NEW(arena, &out->touches, n_operands));
  PLANC_TRY(PL_NEW(arena, &out->first_touch, (int64_t)graph->n_ops + 1));
  PLANC_TRY(PL_NEW(arena, &out->storages, graph->n_storages));
  PLANC_TRY(PL_NEW(arena, &out->results, graph->n_storages));
  PLANC_TRY(PL_NEW(arena, &c.newest, graph->n_storages));
  PLANC_TRY(PL_NEW(arena, &c.slots, graph->n_storages));
  collect_touches(&c);
  mark_results(&c);
  return NULL;
}

/* --- Of a graph --------------------------------------------------------------------------------------------------- */

static void add_touch(collector *c, int32_t op, int32_t tensor, uint32_t how) {
  pl_touches *out = c->out;
  int32_t storage = out->graph->tensors[tensor].storage;
  if (c->newest[storage] <= out->first_touch[op]) {
    if (!c->slots[storage]) {
      out->storages[out->n_slots++] = storage;
      c->slots[storage] = out->n_slots;
    }
    out->touches[out->n_touches++] = (pl_touch){.slot = c->slots[storage] - 1};
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
    for (int32_t k = 0; k < op->n_in; k++) add_touch(c, o, op->in[k], PL_TOUCH_READ);
    for (int32_t k = 0; k < op->n_out; k++) {
      planc_law part = graph->tensors[op->out[k]].bytes;
      planc_law whole = graph->storages[graph->tensors[op->out[k]].storage].bytes;
      /* Laws are compared, not sizes, so that all rounds have the same accesses. */
      bool partial = !pl_law_equal(part, whole);
      add_touch(c, o, op->out[k], partial ? PL_TOUCH_WRITE | PL_TOUCH_PARTIAL : PL_TOUCH_WRITE);
    }
    for (int32_t k = 0; k < op->n_effects; k++) add_touch(c, o, op->effects[k], PL_TOUCH_EFFECT);
  }
  c->out->first_touch[graph->n_ops] = c->out->n_touches;
}

/* An op writes every result, so each has a slot. */
static void mark_results(const collector *c) {
  const planc_graph *graph = c->out->graph;
  for (int32_t k = graph->loss >= 0 ? -1 : 0; k < graph->n_outputs; k++) {
    int32_t tensor = k < 0 ? graph->loss : graph->outputs[k], storage = graph->tensors[tensor].storage;
    assert(c->slots[storage] > 0);
    c->out->results[c->slots[storage] - 1] = true;
  }
}

/* --- Of a job ----------------------------------------------------------------------------------------------------- */

static planc_status check_order(pl_arena *arena, const pl_job_plan *plan);
static planc_status find_scopes(pl_job_plan *plan);
static void find_redirected(pl_job_plan *plan);

planc_status pl_job_plan_make(pl_arena *arena, const planc_job *job, const pl_touches *of, pl_job_plan *plan) {
  plan->job = job;
  plan->of = of;
  plan->order = job->order;
  if (job->order) {
    PLANC_TRY(check_order(arena, plan));
  } else {
    int32_t *order;
    PLANC_TRY(PL_NEW(arena, &order, job->graph->n_ops));
    for (int32_t o = 0; o < job->graph->n_ops; o++) order[o] = o;
    plan->order = order;
  }
  PLANC_TRY(PL_NEW(arena, &plan->uses, of->n_slots));
  PLANC_TRY(find_scopes(plan));
  if (job->n_rounds > 1 || job->replicas > 1) PLANC_TRY(pl_parts_check(arena, job->graph));
  find_redirected(plan);
  return NULL;
}

/* --- Its part of a trace ------------------------------------------------------------------------------------------ */

static int64_t times(int64_t a, int64_t b);
static int64_t plus(int64_t a, int64_t b);

/* The ops of a round run in every round; each gradient that goes through a temporary is added from the second round on,
 * by an instance of its own that reads the one and updates the other; the optimizer's ops run once. An exchange reads
 * what has come and updates the gradient. */
void pl_job_plan_count(const pl_job_plan *plan, pl_trace_size *size) {
  const pl_touches *of = plan->of;
  int64_t rounds = plan->job->n_rounds, iterations = plan->job->iterations;
  int64_t n_ops = plan->job->graph->n_ops, round_touches = 0, in_scope[] = {0, 0, 0, 0};
  for (int32_t position = 0; position < of->n_round_ops; position++) {
    int32_t o = plan->order[position];
    round_touches += of->first_touch[o + 1] - of->first_touch[o];
  }
  int64_t exchanged = 0;
  for (int32_t slot = 0; slot < of->n_slots; slot++) {
    in_scope[plan->uses[slot].scope]++;
    exchanged += plan->job->replicas > 1 && plan->uses[slot].n_touches > 0;
  }
  int64_t adds = times(rounds - 1, plan->n_redirected);
  int64_t instances = plus(plus(times(rounds, of->n_round_ops), adds), n_ops - of->n_round_ops + exchanged);
  int64_t accesses = plus(plus(times(rounds, round_touches), times(2, adds)), of->n_touches - round_touches);
  int64_t buffers = plus(plus(times(rounds, in_scope[PL_SCOPE_ROUND]), adds), in_scope[PL_SCOPE_ITERATION]);
  accesses = plus(accesses, times(2, exchanged));
  buffers = plus(buffers, exchanged);
  size->instances = plus(size->instances, times(iterations, instances));
  size->accesses = plus(size->accesses, times(iterations, accesses));
  size->buffers = plus(size->buffers, plus(times(iterations, buffers), in_scope[PL_SCOPE_PERIOD]));
}

/* Checks that the job's order is a permutation that changes nothing but time: phases stay in order, and every op finds
 * each storage that it touches written as many times as in the graph's order. So it reads the same content, and no
 * write overtakes a read or another write. */
static planc_status check_order(pl_arena *arena, const pl_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  const int32_t *order = plan->job->order;
  bool *seen;
  int32_t *writes, *expected; /* by slot: writes so far; by touch: writes before it in the graph's order */
  PLANC_TRY(PL_NEW(arena, &seen, graph->n_ops));
  PLANC_TRY(PL_NEW(arena, &writes, plan->of->n_slots));
  PLANC_TRY(PL_NEW(arena, &expected, plan->of->n_touches));
  for (int32_t t = 0; t < plan->of->n_touches; t++) {
    const pl_touch *at = &plan->of->touches[t];
    expected[t] = pl_touch_writes(at) ? writes[at->slot]++ : writes[at->slot];
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
      const pl_touch *at = &plan->of->touches[t];
      if (writes[at->slot] != expected[t])
        return planc_error(PLANC_BAD_INPUT, "order: op %s comes %s a write of %s that it must %s", op->name,
                           writes[at->slot] < expected[t] ? "before" : "after",
                           graph->tensors[pl_slot_storage(plan, at->slot)->tensor].name,
                           writes[at->slot] < expected[t] ? "follow" : "precede");
      writes[at->slot] += pl_touch_writes(at);
    }
  }
  return NULL;
}

/* Whether all that the op makes in the storage adds to what is there. */
static bool accumulates_into(const planc_graph *graph, const planc_op *op, int32_t storage) {
  bool any = false;
  for (int32_t k = 0; k < op->n_out; k++) {
    if (graph->tensors[op->out[k]].storage != storage) continue;
    if (!pl_op_accumulates(op, k)) return false;
    any = true;
  }
  return any;
}

/* Finds how long every storage lasts and who touches the gradients within a round. */
static planc_status find_scopes(pl_job_plan *plan) {
  const planc_graph *graph = plan->job->graph;
  bool split = plan->job->n_rounds > 1 || plan->job->replicas > 1;
  for (int32_t position = 0; position < graph->n_ops; position++) {
    int32_t o = plan->order[position];
    const planc_op *op = &graph->ops[o];
    bool in_round = op->phase != PLANC_PHASE_optimizer;
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      const pl_touch *at = &plan->of->touches[t];
      const planc_storage *storage = pl_slot_storage(plan, at->slot);
      const char *name = graph->tensors[storage->tensor].name;
      pl_storage_use *use = &plan->uses[at->slot];
      if (planc_kind_persists(storage->kind)) {
        use->scope = PL_SCOPE_PERIOD;
      } else if (storage->kind == PLANC_KIND_grad) {
        use->scope = PL_SCOPE_ITERATION;
      } else if (use->scope == PL_SCOPE_UNTOUCHED) {
        use->scope = in_round || storage->kind == PLANC_KIND_input ? PL_SCOPE_ROUND : PL_SCOPE_ITERATION;
      }
      if (split && !in_round && use->scope == PL_SCOPE_ROUND)
        return planc_error(PLANC_BAD_INPUT, "op %s runs once for all rounds but touches %s, which each round has anew",
                           op->name, name);
      if (split && in_round && use->scope != PL_SCOPE_ROUND && storage->bytes.per_sample != 0)
        return planc_error(PLANC_BAD_INPUT, "op %s: the rounds share the %s %s, but its size depends on the batch",
                           op->name, planc_kind_name(storage->kind), name);
      if (in_round && storage->kind == PLANC_KIND_grad) {
        use->adds_in_place = use->n_touches == 0 && accumulates_into(graph, op, plan->of->storages[at->slot]);
        use->n_touches++;
        use->last_position = position;
        if (pl_touch_writes(at)) use->last_writer = o;
      }
    }
  }
  return NULL;
}

/* Rounds after the first add to a gradient in place only where the op that makes it can do so for all it makes. */
static void find_redirected(pl_job_plan *plan) {
  if (plan->job->n_rounds == 1) return;
  for (int32_t position = 0; position < plan->of->n_round_ops; position++) {
    int32_t o = plan->order[position];
    bool adds = true;
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      const pl_touch *at = &plan->of->touches[t];
      if (pl_slot_storage(plan, at->slot)->kind == PLANC_KIND_grad && pl_touch_writes(at))
        adds &= plan->uses[at->slot].adds_in_place;
    }
    for (int32_t t = plan->of->first_touch[o]; t < plan->of->first_touch[o + 1]; t++) {
      pl_storage_use *use = &plan->uses[plan->of->touches[t].slot];
      if (pl_slot_storage(plan, plan->of->touches[t].slot)->kind != PLANC_KIND_grad || use->redirected) continue;
      if (adds && use->adds_in_place) continue;
      use->redirected = true;
      plan->n_redirected++;
    }
  }
}

static int64_t times(int64_t a, int64_t b) {
  return pl_mul_saturate(a, b);
}
static int64_t plus(int64_t a, int64_t b) {
  return pl_add_saturate(a, b);
}
