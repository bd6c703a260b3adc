/* `modnn`: how many rounds (papers: moDNN, IV-A). Each number of rounds is scheduled by Algorithm 1 (modnn.c).
 *
 * Eq. 3 says how large a round may be so that every op fits with its fastest algorithm; smaller rounds cost time on the
 * ops and save transfers, larger ones may do with other algorithms, or leave a while. The paper leaves it at Eq. 3.
 * Here the whole batch and the powers of two below it are scheduled as well, at which kernels lose least to partly
 * filled tiles, and the simulator decides. Below Eq. 3 that goes on while it helps or there are transfers left to save;
 * it ends when MOST_INSTANCES have been scheduled. */
#include "planner/modnn.h"
#include "planner/policies.h"
#include "planner/sub_batch.h"
#include "planner/walk.h"
#include "util/math.h"

enum { MOST_INSTANCES = 200000 };

/* What the ops of a candidate take with the fastest algorithms, launches and transfers left out. */
static int64_t least_time(const planc_candidate *candidate) {
  int64_t sum = 0;
  for (int32_t i = 0; i < candidate->trace->n_instances; i++) {
    const planc_instance *instance = &candidate->trace->instances[i];
    if (instance->role != PLANC_ROLE_OP) continue;
    int32_t count, batch = planc_costs_batch(candidate->costs, instance->batch);
    const planc_variant *variants = planc_costs_variants(candidate->costs, instance->op, batch, &count);
    sum = planc_add_saturate(sum, variants[planc_fastest_variant(candidate->costs, instance, INT64_MAX)].time_ns);
  }
  return sum;
}

static bool offloads(const planc_candidate *candidate) {
  const planc_command *commands = planc_schedule_commands(candidate->schedule);
  for (int32_t i = 0; i < planc_schedule_n_commands(candidate->schedule); i++) {
    if (commands[i].kind == PLANC_CMD_OFFLOAD && !commands[i].user) return true;
  }
  return false;
}

/* The best so far; without a schedule, why there is none. */
typedef struct best {
  planc_candidate candidate;
  int64_t ns;
  planc_status infeasible; /* the first reason met; owned */
} best;

/* Schedules rounds of `sub_batch` and keeps them when they beat the best. */
static planc_status consider(const planc_problem *problem, int64_t sub_batch, best *b) {
  planc_candidate candidate = {0};
  int64_t ns = 0;
  planc_status status = planc_candidate_rounds(problem, sub_batch, &candidate);
  bool hopeless = !status && b->candidate.schedule && least_time(&candidate) >= b->ns;
  planc_candidate_free(&candidate);
  if (status || hopeless) return status;
  status = modnn_schedule(problem, sub_batch, &candidate);
  if (!status) status = planc_candidate_time(problem, &candidate, &ns);
  if (!status && (!b->candidate.schedule || ns < b->ns)) {
    planc_candidate_free(&b->candidate);
    b->candidate = candidate;
    b->ns = ns;
    return NULL;
  }
  planc_candidate_free(&candidate);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  if (b->infeasible)
    planc_status_free(status);
  else
    b->infeasible = status;
  return NULL;
}

/* The largest power of two below `size`; 0 below 1. */
static int64_t next_smaller(int64_t size) {
  int64_t power = size > 1 ? 1 : 0;
  while (power * 2 < size && power > 0) power *= 2;
  return power;
}

/* Whether smaller rounds than these can still be worth a try. */
static bool may_help(const best *b, bool helped) {
  return helped || !b->candidate.schedule || offloads(&b->candidate);
}

static planc_status consider_others(const planc_problem *problem, int64_t sub_batch, best *b) {
  int64_t instances = 0;
  for (int64_t size = problem->batch; size >= 1; size = next_smaller(size)) {
    if (size == sub_batch) continue;
    int64_t rounds = (problem->batch + size - 1) / size, before_ns = b->ns;
    instances += rounds * problem->graph->n_ops;
    if (instances > MOST_INSTANCES && b->candidate.schedule) break;
    PLANC_TRY(consider(problem, (problem->batch + rounds - 1) / rounds, b));
    if (size < sub_batch && !may_help(b, b->ns != before_ns)) break;
  }
  return NULL;
}

planc_status planc_policy_modnn(const planc_problem *problem, planc_candidate *out) {
  int64_t sub_batch;
  bool may_split;
  best b = {0};
  PLANC_TRY(planc_sub_batch_select(problem, &sub_batch));
  PLANC_TRY(planc_may_split(problem, &may_split));
  planc_status status = consider(problem, sub_batch, &b);
  if (!status && may_split) status = consider_others(problem, sub_batch, &b);
  if (!status && !b.candidate.schedule) {
    status = b.infeasible;
    b.infeasible = NULL;
  }
  planc_status_free(b.infeasible);
  if (status)
    planc_candidate_free(&b.candidate);
  else
    *out = b.candidate;
  return status;
}
