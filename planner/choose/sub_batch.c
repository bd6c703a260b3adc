/* Sub-batch size selection (moDNN, IV-A). Eq. 3 as printed divides bytes by bytes; it is read as
 * b' = floor(b (M - S_W) / max_t M_min(t, b)), clamped to [1, B]. M is the budget; S_W is the memory of parameters,
 * state and gradients, which stay on the device; M_min(t, b), Eq. 1, is what op t needs beside them at b samples. Where
 * the iteration runs in circles, the largest b that passes Eq. 1 is taken. */
#include "planner/choose/sub_batch.h"

#include <stdio.h>

#include "graph/op_place.h"
#include "graph/optypes.h"
#include "planc/needs.h"
#include "planc/schedule.h"
#include "planner/base/code.h"
#include "util/math.h"

enum { MAX_STEPS = 64 };

static int64_t bytes_taken(int64_t bytes) {
  return pl_align_up(bytes > 0 ? bytes : 1, PLANC_ALIGNMENT);
}

planc_status pl_may_split(const planc_problem *problem, bool *out) {
  *out = false;
  if (problem->job.sub_batch) return NULL;
  if (planc_graph_is_batch_coupled(problem->job.graph) && !problem->job.split_batch_norm) return NULL;
  planc_status status = planc_check_rounds(problem->job.graph);
  *out = !status;
  if (planc_status_code(status) != PLANC_BAD_INPUT) return status;
  planc_status_free(status);
  return NULL;
}

typedef struct demand {
  int64_t fastest, baseline; /* max over ops of Eq. 1 with the fastest and with the baseline algorithm's workspace */
  int32_t baseline_op;
} demand;

static planc_status largest_sub_batch(const planc_problem *problem, int64_t *out_sub_batch);
static int64_t resident_bytes(const planc_problem *problem);
static planc_status demand_at(const planc_problem *problem, int64_t batch, demand *out);
static planc_status infeasible(const planc_problem *problem, int64_t batch, const demand *need, int64_t resident);
static planc_status largest_that_fits(const planc_problem *problem, int64_t room, int64_t high, int64_t *out);

planc_status pl_sub_batch_select(const planc_problem *problem, int64_t *out_sub_batch) {
  int64_t largest = 1;
  PLANC_TRY(largest_sub_batch(problem, &largest));
  int64_t rounds = (problem->job.batch + largest - 1) / largest;
  bool even = !problem->job.sub_batch && rounds > 1;
  *out_sub_batch = even ? (problem->job.batch + rounds - 1) / rounds : largest;
  return NULL;
}

/* Eq. 3's fixed point. */
static planc_status largest_sub_batch(const planc_problem *problem, int64_t *out_sub_batch) {
  int64_t resident = resident_bytes(problem);
  int64_t room =
      problem->terms.budgets[PLANC_MEMORY_DEVICE] - pl_reserved(&problem->terms, problem->job.profile) - resident;
  demand need;
  bool may_split;
  PLANC_TRY(pl_may_split(problem, &may_split));
  if (!may_split) {
    int64_t batch = pl_sub_batch_asked(problem);
    PLANC_TRY(demand_at(problem, batch, &need));
    if (need.baseline > room) return infeasible(problem, batch, &need, resident);
    *out_sub_batch = batch;
    return NULL;
  }
  PLANC_TRY(demand_at(problem, 1, &need));
  if (need.baseline > room) return infeasible(problem, 1, &need, resident);

  int64_t batch = problem->job.batch;
  for (int32_t step = 0; step < MAX_STEPS; step++) {
    PLANC_TRY(demand_at(problem, batch, &need));
    int64_t next = pl_muldiv_floor(batch, room, need.fastest > 0 ? need.fastest : 1);
    if (next > problem->job.batch) next = problem->job.batch;
    if (next < 1) next = 1;
    if (next == batch) {
      if (need.fastest > room && batch > 1) break;
      *out_sub_batch = batch;
      return NULL;
    }
    batch = next;
  }
  return largest_that_fits(problem, room, problem->job.batch, out_sub_batch);
}

/* What S_W takes in memory: each storage is aligned. */
static int64_t resident_bytes(const planc_problem *problem) {
  int64_t sum = 0;
  for (int32_t i = 0; i < problem->job.graph->n_storages; i++) {
    const planc_storage *s = &problem->job.graph->storages[i];
    int64_t bytes = planc_law_at(s->bytes, problem->job.batch);
    if (planc_is_always_resident(s->kind)) sum = bytes < 0 ? INT64_MAX : pl_add_saturate(sum, bytes_taken(bytes));
  }
  return sum;
}

/* Eq. 1 of a graph's op without workspace, where planc_instance_bytes has that of a trace's instance: in the room
 * that its operands take, before there is a trace. From the second round on a gradient whose op cannot add in place
 * needs a temporary. */
static int64_t operand_bytes(const planc_graph *graph, const planc_op *op, int64_t batch, bool several_rounds) {
  int64_t sum = 0;
  for (int32_t i = 0; i < op->n_in + op->n_out; i++) {
    int32_t storage = graph->tensors[i < op->n_in ? op->in[i] : op->out[i - op->n_in]].storage;
    const planc_storage *s = &graph->storages[storage];
    bool seen = false;
    for (int32_t k = 0; k < i && !seen; k++) {
      seen = graph->tensors[k < op->n_in ? op->in[k] : op->out[k - op->n_in]].storage == storage;
    }
    bool adds = i >= op->n_in && pl_op_accumulates(op, i - op->n_in);
    bool temporary = several_rounds && s->kind == PLANC_KIND_grad && op->phase == PLANC_PHASE_backward && !adds;
    if (seen || (planc_is_always_resident(s->kind) && !temporary)) continue;
    int64_t bytes = planc_law_at(s->bytes, batch);
    sum = bytes < 0 ? INT64_MAX : pl_add_saturate(sum, bytes_taken(bytes));
  }
  return sum;
}

static planc_status demand_at(const planc_problem *problem, int64_t batch, demand *out) {
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(problem->job.profile, problem->job.graph, 1, &batch, &costs));
  *out = (demand){0};
  for (int32_t o = 0; o < problem->job.graph->n_ops; o++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, o, 0, &count);
    int64_t operands =
        operand_bytes(problem->job.graph, &problem->job.graph->ops[o], batch, batch < problem->job.batch);
    int64_t baseline = pl_add_saturate(operands, pl_align_up(variants[0].workspace_bytes, PLANC_ALIGNMENT));
    int32_t best = planc_variant_fastest(variants, count, INT64_MAX);
    int64_t fastest = pl_add_saturate(operands, pl_align_up(variants[best].workspace_bytes, PLANC_ALIGNMENT));
    if (fastest > out->fastest) out->fastest = fastest;
    if (baseline > out->baseline) {
      out->baseline = baseline;
      out->baseline_op = o;
    }
  }
  planc_costs_free(costs);
  return NULL;
}

static planc_status infeasible(const planc_problem *problem, int64_t batch, const demand *need, int64_t resident) {
  const planc_op *op = &problem->job.graph->ops[need->baseline_op];
  int64_t reserved = pl_reserved(&problem->terms, problem->job.profile);
  int64_t least = pl_add_saturate(pl_add_saturate(resident, need->baseline), reserved);
  char context[64] = "", place[PL_PLACE_TEXT];
  if (reserved > 0) snprintf(context, sizeof context, " and %lld bytes reserved by the device", (long long)reserved);
  return planc_infeasible((planc_shortage){.bytes = least},
                          "op %s%s alone needs %lld bytes at %lld sample%s, beside %lld bytes of parameters, state and "
                          "gradients that stay%s: %lld bytes at the least",
                          op->name, pl_op_place(op, place), (long long)need->baseline, (long long)batch,
                          batch == 1 ? "" : "s", (long long)resident, context, (long long)least);
}

/* The largest b in [1, high] whose demand with the fastest algorithms fits; 1 when none does. Demand grows with b, and
 * where a measured table breaks that, the last step down settles it. */
static planc_status largest_that_fits(const planc_problem *problem, int64_t room, int64_t high, int64_t *out) {
  int64_t low = 1;
  demand need;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    PLANC_TRY(demand_at(problem, middle, &need));
    if (need.fastest <= room) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  *out = low;
  return NULL;
}
