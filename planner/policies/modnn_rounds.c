/* `modnn`: how many rounds (papers: moDNN, IV-A). Each number of rounds is scheduled by Algorithm 1 (modnn.c).
 *
 * Eq. 3 says how large a round may be so that every op fits with its fastest algorithm; smaller rounds cost time on the
 * ops and save transfers, larger ones may do with other algorithms, or leave a while. The paper leaves it at Eq. 3.
 * Here the whole batch and the powers of two below it are scheduled as well, at which kernels lose least to partly
 * filled tiles, and the simulator decides. Below Eq. 3 that goes on while it helps or there are transfers left to save;
 * it ends when MAX_INSTANCES have been scheduled.
 *
 * Algorithm 1 gives out addresses as it walks and may leave free ranges that make data leave which has room when all
 * addresses are chosen together. So the batch with all data resident, as `none` places it, is one of the candidates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/choose/reasons.h"
#include "planner/choose/sub_batch.h"
#include "planner/policies/modnn.h"
#include "planner/policies/policies.h"
#include "util/emit.h"
#include "util/math.h"
#include "util/size.h"

enum { MAX_INSTANCES = 200000 };

/* The best so far; without a schedule, why there is none. */
typedef struct best_rounds {
  planc_candidate candidate;
  int64_t ns;
  planc_status infeasible; /* the reason of those that ask for least; owned */
  pl_emit tried;           /* rounds, and their times */
  int32_t n_tried;
} best_rounds;

static planc_status consider_all(const planc_evaluator *evaluator, best_rounds *b);
static planc_status consider(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b);
static planc_status consider_others(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b);
static int64_t next_smaller(int64_t size);
static bool may_help(const best_rounds *b, bool helped);
static planc_status consider_whole(const planc_evaluator *evaluator, best_rounds *b);
static planc_status consider_scheduled(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b);
static planc_status consider_resident(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b);
static planc_status unless_infeasible(planc_status status, best_rounds *b);
static bool offloads(const planc_candidate *candidate);
static planc_status explain(best_rounds *b, planc_candidate *out);
static planc_status tell(const planc_problem *problem, best_rounds *b);

planc_status pl_policy_modnn(const planc_evaluator *evaluator, planc_candidate *out) {
  best_rounds b = {0};
  planc_status status = consider_all(evaluator, &b);
  if (!status && !b.candidate.schedule) status = tell(evaluator->problem, &b);
  planc_status_free(b.infeasible);
  *out = b.candidate;
  planc_status untold = explain(&b, out);
  if (status) planc_status_free(untold);
  return status ? status : untold;
}

static planc_status consider_all(const planc_evaluator *evaluator, best_rounds *b) {
  int64_t sub_batch;
  bool may_split;
  planc_status status = pl_sub_batch_select(evaluator->problem, &sub_batch);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    b->infeasible = status;
  } else {
    PLANC_TRY(status);
    PLANC_TRY(pl_may_split(evaluator->problem, &may_split));
    PLANC_TRY(consider(evaluator, sub_batch, b));
    if (may_split) PLANC_TRY(consider_others(evaluator, sub_batch, b));
  }
  return consider_whole(evaluator, b);
}

/* Where the user limits swapping, and rounds swap more, those that swap nothing are asked for. */
static planc_status consider(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b) {
  if (!evaluator->problem->terms.settings.no_swap) {
    planc_status status = consider_scheduled(evaluator, sub_batch, b);
    bool host = planc_status_shortage(status).memory == PLANC_MEMORY_HOST;
    PLANC_TRY(unless_infeasible(status, b));
    if (!host) return NULL;
  }
  return unless_infeasible(consider_resident(evaluator, sub_batch, b), b);
}

static planc_status consider_others(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b) {
  const planc_problem *problem = evaluator->problem;
  int64_t instances = 0;
  for (int64_t size = problem->job.batch; size >= 1; size = next_smaller(size)) {
    if (size == sub_batch) continue;
    int64_t rounds = (problem->job.batch + size - 1) / size, before_ns = b->ns;
    instances += rounds * problem->job.graph->n_ops;
    if (instances > MAX_INSTANCES && b->candidate.schedule) break;
    PLANC_TRY(consider(evaluator, (problem->job.batch + rounds - 1) / rounds, b));
    if (size < sub_batch && !may_help(b, b->ns != before_ns)) break;
  }
  return NULL;
}

/* The largest power of two below `size`; 0 below 1. */
static int64_t next_smaller(int64_t size) {
  int64_t power = size > 1 ? 1 : 0;
  while (power * 2 < size && power > 0) power *= 2;
  return power;
}

/* Whether smaller rounds than these can still be worth a try. */
static bool may_help(const best_rounds *b, bool helped) {
  return helped || !b->candidate.schedule || offloads(&b->candidate);
}

/* The whole batch, or the user's rounds, with all data resident. What it lacks is not what modnn lacks. */
static planc_status consider_whole(const planc_evaluator *evaluator, best_rounds *b) {
  const planc_problem *problem = evaluator->problem;
  planc_status status = consider_resident(evaluator, pl_sub_batch_asked(problem), b);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

/* --- Candidates --------------------------------------------------------------------------------------------------- */

static planc_status keep_better(const planc_evaluator *evaluator, planc_status status, planc_candidate *candidate,
                                bool resident, best_rounds *b);
static planc_status may_beat(const planc_problem *problem, int64_t sub_batch, const best_rounds *b, bool *out);
static void note_tried(best_rounds *b, const planc_candidate *candidate, bool resident, int64_t ns);

/* Keeps rounds of `sub_batch`, as Algorithm 1 schedules them, when they beat the best. */
static planc_status consider_scheduled(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b) {
  planc_candidate candidate = {0};
  bool may;
  PLANC_TRY(may_beat(evaluator->problem, sub_batch, b, &may));
  if (!may) return NULL;
  planc_status status = modnn_schedule(evaluator->problem, sub_batch, &candidate);
  if (!status) status = evaluator->hold_to_host(evaluator, &candidate);
  return keep_better(evaluator, status, &candidate, false, b);
}

/* The same with all data resident. */
static planc_status consider_resident(const planc_evaluator *evaluator, int64_t sub_batch, best_rounds *b) {
  planc_candidate candidate = {0};
  bool may;
  PLANC_TRY(may_beat(evaluator->problem, sub_batch, b, &may));
  if (!may) return NULL;
  planc_status status = pl_make_resident(evaluator, sub_batch, NULL, &candidate);
  if (!status) status = evaluator->hold(evaluator, &candidate);
  return keep_better(evaluator, status, &candidate, true, b);
}

/* Keeps the candidate when it beats the best, and frees it else. `status` is how its making ended. */
static planc_status keep_better(const planc_evaluator *evaluator, planc_status status, planc_candidate *candidate,
                                bool resident, best_rounds *b) {
  int64_t ns;
  if (!status) status = evaluator->time(evaluator, candidate, &ns);
  if (!status) note_tried(b, candidate, resident, ns);
  if (!status && (!b->candidate.schedule || ns < b->ns)) {
    planc_candidate_free(&b->candidate);
    b->candidate = *candidate;
    b->ns = ns;
    return NULL;
  }
  planc_candidate_free(candidate);
  return status;
}

/* Keeps the reason of rounds that do not fit. */
static planc_status unless_infeasible(planc_status status, best_rounds *b) {
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  pl_keep_lesser(&b->infeasible, status);
  return NULL;
}

static bool offloads(const planc_candidate *candidate) {
  const planc_command *commands = planc_schedule_commands(candidate->schedule);
  for (int32_t i = 0; i < planc_schedule_n_commands(candidate->schedule); i++) {
    if (planc_schedule_copies(candidate->schedule, &commands[i], PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST)) return true;
  }
  return false;
}

/* --- What may beat the best --------------------------------------------------------------------------------------- */

static int64_t limit_of(const planc_problem *problem, const best_rounds *b);
static planc_status least_time(const planc_problem *problem, int64_t sub_batch, int64_t *out_ns);
static int64_t fastest_ns(const planc_costs *costs, int32_t op, int64_t batch);

/* Whether rounds of `sub_batch` could beat the best, which they can where there is none. */
static planc_status may_beat(const planc_problem *problem, int64_t sub_batch, const best_rounds *b, bool *out) {
  int64_t ns;
  int64_t limit = limit_of(problem, b);
  PLANC_TRY(least_time(problem, sub_batch, &ns));
  *out = ns < limit || limit == INT64_MAX;
  return NULL;
}

/* What a candidate has to beat. */
static int64_t limit_of(const planc_problem *problem, const best_rounds *b) {
  int64_t asked = problem->terms.beat_ns > 0 ? problem->terms.beat_ns : INT64_MAX;
  return b->candidate.schedule && b->ns < asked ? b->ns : asked;
}

/* What the ops take in rounds of `sub_batch` with the fastest algorithms, launches and transfers left out. */
static planc_status least_time(const planc_problem *problem, int64_t sub_batch, int64_t *out_ns) {
  int64_t whole = problem->job.batch, full = (whole - 1) / sub_batch, last = whole - sub_batch * full;
  const int64_t batches[] = {sub_batch, last, whole};
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(problem->job.profile, problem->job.graph, 3, batches, &costs));
  *out_ns = 0;
  for (int32_t o = 0; o < problem->job.graph->n_ops; o++) {
    bool once = problem->job.graph->ops[o].phase == PLANC_PHASE_optimizer;
    int64_t ns = fastest_ns(costs, o, once ? whole : last);
    if (!once && full > 0) ns = pl_add_saturate(ns, pl_mul_saturate(fastest_ns(costs, o, sub_batch), full));
    *out_ns = pl_add_saturate(*out_ns, ns);
  }
  planc_costs_free(costs);
  return NULL;
}

/* The op's fastest algorithm at a batch. */
static int64_t fastest_ns(const planc_costs *costs, int32_t op, int64_t batch) {
  int32_t count;
  const planc_variant *variants = planc_costs_variants(costs, op, planc_costs_batch(costs, batch), &count);
  return variants[planc_variant_fastest(variants, count, INT64_MAX)].time_ns;
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

enum { TOLD_TEXT = 128 };

/* What comes out as something before is not told again. */
static void note_tried(best_rounds *b, const planc_candidate *candidate, bool resident, int64_t ns) {
  char time[PL_SIZE_TEXT], told[TOLD_TEXT];
  const char *how = resident ? " placed as a whole" : offloads(candidate) ? "" : " without offloading";
  (void)snprintf(told, sizeof told, " %lld%s in %s", (long long)candidate->sub_batch, how, pl_time_format(ns, time));
  if (b->n_tried > 0 && b->tried.text && strstr(b->tried.text, told)) return;
  pl_emit_format(&b->tried, "%s%s", b->n_tried++ > 0 ? "," : "rounds of", told);
}

/* Takes what was tried, which is the candidate's explanation. */
static planc_status explain(best_rounds *b, planc_candidate *out) {
  char *tried;
  size_t length;
  PLANC_TRY(pl_emit_take(&b->tried, &tried, &length));
  free(out->explanation); /* of its algorithms alone */
  out->explanation = NULL;
  planc_status status = planc_candidate_explain(out, "%s%s", b->n_tried > 1 ? "the fastest of " : "", tried);
  free(tried);
  return status;
}

/* Why there are no rounds. Those of one sample may be too many to be tried. */
static planc_status tell(const planc_problem *problem, best_rounds *b) {
  planc_status why = b->infeasible;
  b->infeasible = NULL;
  if (!why) return planc_error(PLANC_INFEASIBLE, "modnn: no rounds are as fast as is asked for");
  int32_t most = planc_most_instances(problem);
  if (problem->job.sub_batch || problem->job.batch <= most / problem->job.graph->n_ops) return why;
  planc_status told =
      planc_infeasible(planc_status_shortage(why), "%s; rounds of a sample would be more than %d op instances",
                       planc_status_message(why), most);
  planc_status_free(why);
  return told;
}
