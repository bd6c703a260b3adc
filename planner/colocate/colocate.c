/* From a mix of jobs to a plan: what each job does alone and how often it runs in a period, then a policy of the table,
 * lowering, budgets, simulation. */
#include "planc/colocate.h"

#include <assert.h>
#include <string.h>

#include "plan/owned.h"
#include "planc/simulate.h"
#include "planner/base/code.h"
#include "planner/colocate/jobs/deadlines.h"
#include "planner/colocate/jobs/in_job.h"
#include "planner/colocate/jobs/least_shares.h"
#include "planner/colocate/jobs/mix_check.h"
#include "planner/colocate/jobs/solo.h"
#include "planner/colocate/mix_evaluate.h"
#include "planner/colocate/mix_plan.h"
#include "planner/colocate/ratio.h"
#include "planner/colocate/responses.h"
#include "planner/plan_steps.h"
#include "util/math.h"

static planc_status find_alone(const planc_mix_evaluator *evaluator, int32_t job, planc_mix_share *shares,
                               pl_deadline_job *jobs);
static planc_status find_on_whole_device(const planc_mix_evaluator *evaluator, int32_t job, planc_mix_share *shares);

static int64_t weighted_time(const planc_mix *mix, const planc_mix_share *shares, int32_t job) {
  return pl_muldiv_ceil(shares[job].alone_ns, PLANC_MIX_MAX_WEIGHT, planc_mix_weight(mix, job));
}

planc_status pl_mix_resolve(const pl_common *common, const planc_target *target, planc_mix_share *shares) {
  const planc_mix at = pl_common_mix(common, target), *mix = &at;
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(mix, target);
  pl_ratio_job jobs[PLANC_MIX_MAX_JOBS];
  pl_deadline_job timed[PLANC_MIX_MAX_JOBS];
  int32_t iterations[PLANC_MIX_MAX_JOBS];
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    PLANC_TRY(find_alone(&evaluator, j, shares, timed));
    jobs[j] = (pl_ratio_job){.alone_ns = weighted_time(mix, shares, j), .iterations = mix->iterations[j]};
  }
  pl_choose_ratio(jobs, mix->n_jobs, planc_mix_most_chosen(mix), iterations);
  pl_deadlines_choose(mix, timed, iterations);
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    shares[j].iterations = iterations[j];
    shares[j].deadline_ns = pl_deadline_of(mix, j);
    shares[j].least_ppm = pl_least_share_of(mix, j);
  }
  return NULL;
}

void planc_mix_choose_ratio(const planc_mix *mix, const planc_mix_share *shares, int32_t *out_iterations) {
  pl_ratio_job jobs[PLANC_MIX_MAX_JOBS];
  for (int32_t j = 0; j < mix->n_jobs; j++) jobs[j] = (pl_ratio_job){.alone_ns = weighted_time(mix, shares, j)};
  pl_choose_ratio(jobs, mix->n_jobs, planc_mix_most_chosen(mix), out_iterations);
}

planc_status planc_mix_resolve(const planc_mix *mix, planc_mix_share *shares) {
  pl_common common;
  planc_status status = pl_common_make(mix, &common);
  if (!status) status = pl_mix_resolve(&common, &common.all, shares);
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&common.mix, &common.all);
  for (int32_t j = 0; !status && j < mix->n_jobs; j++) status = find_on_whole_device(&evaluator, j, shares);
  pl_common_free(&common);
  return status;
}

/* --- Each job alone ----------------------------------------------------------------------------------------------- */

typedef struct time_alone {
  pl_deadline_job job;
  const char *policy; /* static */
} time_alone;

static planc_status find_time_alone(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                                    time_alone *out) {
  const planc_evaluator alone = evaluator->alone(evaluator, problem);
  pl_solo solo;
  *out = (time_alone){0};
  PLANC_TRY(pl_solo_make(evaluator, problem, &solo));
  planc_status status = alone.time(&alone, &solo.candidate, &out->job.alone_ns);
  out->job.longest_op_ns = pl_longest_op(&solo.candidate);
  out->policy = solo.policy;
  pl_solo_free(&solo);
  return status;
}

static planc_status find_alone(const planc_mix_evaluator *evaluator, int32_t job, planc_mix_share *shares,
                               pl_deadline_job *jobs) {
  const planc_mix *mix = evaluator->mix;
  int32_t same = planc_mix_first_same(mix, job);
  if (same < job) {
    shares[job] = shares[same];
    jobs[job] = jobs[same];
    return NULL;
  }
  const planc_problem problem = planc_mix_problem(mix, job);
  time_alone found;
  PLANC_TRY(pl_in_job(mix, job, find_time_alone(evaluator, &problem, &found)));
  shares[job].alone_ns = found.job.alone_ns;
  shares[job].alone_policy = found.policy;
  jobs[job] = found.job;
  return NULL;
}

/* The same whatever the budget, so that speeds within several budgets may be compared. What fits the budget fits the
 * device as well: where a search finds nothing there, what it does within the budget counts. */
static planc_status find_on_whole_device(const planc_mix_evaluator *evaluator, int32_t job, planc_mix_share *shares) {
  const planc_mix *mix = evaluator->mix;
  const planc_mix_share *same = &shares[planc_mix_first_same(mix, job)];
  planc_mix_share *out = &shares[job];
  planc_problem problem = planc_mix_problem(mix, job);
  int64_t whole = planc_mix_device(mix)->memory_bytes;
  bool is_whole = problem.terms.budgets[PLANC_MEMORY_DEVICE] >= whole;
  time_alone found;
  out->whole_ns = same == out ? out->alone_ns : same->whole_ns;
  out->whole_policy = same == out ? out->alone_policy : same->whole_policy;
  if (same != out || is_whole) return NULL;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = whole;
  planc_status status = find_time_alone(evaluator, &problem, &found);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return NULL;
  }
  PLANC_TRY(pl_in_job(mix, job, status));
  out->whole_ns = found.job.alone_ns;
  out->whole_policy = found.policy;
  return NULL;
}

/* --- Plans whose jobs are in time --------------------------------------------------------------------------------- */

static planc_status make_until_in_time(const pl_mix_asked *asked, const planc_mix *mix, planc_mix_share *shares,
                                       planc_plan **out);
static void set_speeds(int64_t period, int32_t n_jobs, planc_mix_share *shares);
static planc_status keep_asked(const planc_mix *mix, planc_plan *plan);

planc_status pl_colocate_by(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                            planc_plan **out) {
  pl_common common;
  pl_mix_asked asked = {.common = &common, .policy = policy, .shares = shares};
  *out = NULL;
  if (!policy->make) return planc_error(PLANC_USAGE, "%s has no plan: it is for comparisons", policy->name);
  if ((policy->supports & PLANC_MIX_DEADLINES) && !planc_mix_has_deadlines(mix))
    return planc_refusal(PLANC_USAGE, PLANC_REMEDY_DEADLINES, "%s is for mixes in which jobs have deadlines",
                         policy->name);
  planc_status status = pl_common_make(mix, &common);
  if (!status) status = make_until_in_time(&asked, mix, shares, out);
  pl_common_free(&common);
  if (!status) status = keep_asked(mix, *out);
  if (!status) return NULL;
  planc_plan_free(*out);
  *out = NULL;
  return status;
}

/* What is known of a mix that is late. */
typedef struct least_late {
  planc_status status; /* its own; NULL: nothing is known */
  int64_t missed;      /* see pl_mix_missed */
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
} least_late;

static void keep_less_late(const planc_mix *mix, const planc_mix_share *shares, planc_status status, least_late *least);
static bool change_iterations(const planc_mix *mix, int32_t tried, planc_mix_share *shares);

/* What is late or slow beside the others may be in time if it runs more often. Where it never is, it is told as the try
 * has it that is least late, with the iterations that `shares` then have. */
static planc_status make_until_in_time(const pl_mix_asked *asked, const planc_mix *mix, planc_mix_share *shares,
                                       planc_plan **out) {
  enum { TRIES = 6 };
  least_late least = {0};
  bool goes_on = true;
  for (int k = 1; goes_on; k++) {
    planc_status status = pl_mix_make(asked, &asked->common->all, out);
    if (!status) status = pl_mix_judge(mix, *out, shares);
    bool late = planc_status_code(status) == PLANC_LATE;
    bool unfit = least.status && planc_status_code(status) == PLANC_INFEASIBLE;
    if (!late && !unfit) {
      planc_status_free(least.status);
      return status;
    }
    if (unfit) planc_status_free(status);
    if (late) keep_less_late(mix, shares, status, &least);
    planc_plan_free(*out);
    *out = NULL;
    goes_on = late && k < TRIES && change_iterations(mix, k, shares);
  }
  assert(least.status);
  memcpy(shares, least.shares, (size_t)mix->n_jobs * sizeof *shares);
  return least.status;
}

static bool change_iterations(const planc_mix *mix, int32_t tried, planc_mix_share *shares) {
  bool any_late = false;
  for (int32_t j = 0; j < mix->n_jobs; j++) any_late |= planc_mix_is_late(&shares[j]);
  return any_late ? pl_deadlines_raise(mix, tried, shares) : pl_least_shares_choose(mix, shares);
}

/* Takes over `status`. */
static void keep_less_late(const planc_mix *mix, const planc_mix_share *shares, planc_status status,
                           least_late *least) {
  int64_t missed = pl_mix_missed(shares, mix->n_jobs);
  if (least->status && missed >= least->missed) {
    planc_status_free(status);
    return;
  }
  planc_status_free(least->status);
  least->status = status;
  least->missed = missed;
  memcpy(least->shares, shares, (size_t)mix->n_jobs * sizeof *shares);
}

planc_status pl_mix_judge(const planc_mix *mix, const planc_plan *plan, planc_mix_share *shares) {
  set_speeds(plan->predicted.period_ns, mix->n_jobs, shares);
  int64_t responses_ns[PLANC_MIX_MAX_JOBS];
  PLANC_TRY(pl_responses_find(plan, responses_ns));
  for (int32_t j = 0; j < mix->n_jobs; j++) shares[j].response_ns = responses_ns[j];
  PLANC_TRY(pl_deadlines_hold(mix, shares));
  return pl_least_shares_hold(mix, shares);
}

int64_t pl_mix_missed(const planc_mix_share *shares, int32_t n_jobs) {
  int64_t most = 0;
  for (int32_t j = 0; j < n_jobs; j++) {
    const planc_mix_share *share = &shares[j];
    if (planc_mix_is_late(share))
      most = pl_max(most, pl_muldiv_ceil(share->response_ns - share->deadline_ns, PL_PPM, share->deadline_ns));
    if (planc_mix_is_slow(share))
      most = pl_max(most, pl_muldiv_ceil(share->least_ppm - share->speed_ppm, PL_PPM, share->least_ppm));
  }
  return most;
}

static void set_speeds(int64_t period, int32_t n_jobs, planc_mix_share *shares) {
  for (int32_t j = 0; j < n_jobs; j++)
    shares[j].speed_ppm =
        period > 0 ? pl_muldiv_floor(pl_mul_saturate(shares[j].whole_ns, shares[j].iterations), PL_PPM, period) : 0;
}

/* Of each job its name, of which policies know nothing, and the settings that are not the same of all. */
static planc_status keep_asked(const planc_mix *mix, planc_plan *plan) {
  planc_job *jobs;
  PLANC_TRY(pl_arena_copy(&plan->owned->arena, plan->jobs, plan->n_jobs, sizeof *jobs, (void *)&jobs));
  for (int32_t j = 0; j < plan->n_jobs; j++) {
#define X(name, ...) \
  if (plan->settings.name == 0) jobs[j].name = mix->jobs[j].name;
    PLANC_EACH_SETTINGS(X)
#undef X
    if (mix->names && mix->names[j])
      PLANC_TRY(pl_arena_strndup(&plan->owned->arena, mix->names[j], strlen(mix->names[j]), &jobs[j].name));
  }
  plan->jobs = jobs;
  return NULL;
}

/* --- A plan at given iterations ----------------------------------------------------------------------------------- */

typedef struct colocation {
  const pl_mix_asked *asked;
  planc_plan *plan; /* NULL: none fits yet */
} colocation;

static planc_status make_better(void *user, const planc_target *target, int64_t *out_code);
static planc_status make(const colocation *c, const planc_target *target, planc_plan **out);
static planc_status make_candidate(const colocation *c, const planc_target *target, planc_candidate *out);

planc_status pl_mix_make(const void *asked, const planc_target *target, planc_plan **out) {
  colocation c = {.asked = asked};
  planc_status status = pl_with_code(target, make_better, &c);
  *out = c.plan;
  if (!status) return NULL;
  planc_plan_free(c.plan);
  *out = NULL;
  return status;
}

static planc_status make_better(void *user, const planc_target *target, int64_t *out_code) {
  colocation *c = user;
  planc_plan *plan;
  PLANC_TRY(make(c, target, &plan));
  *out_code = pl_code_of_plan(target->profile, plan);
  planc_status status = pl_hold_to_budgets(target->terms, plan);
  if (!status) status = planc_simulate_predictions(plan);
  if (status) {
    planc_plan_free(plan);
    return status;
  }
  pl_keep_better(plan, &c->plan);
  return NULL;
}

static planc_status make(const colocation *c, const planc_target *target, planc_plan **out) {
  planc_candidate candidate = {0};
  *out = NULL;
  planc_status status = make_candidate(c, target, &candidate);
  if (!status) status = pl_plan_of(target, c->asked->policy->name, &candidate, out);
  planc_candidate_free(&candidate);
  return status;
}

static planc_status make_candidate(const colocation *c, const planc_target *target, planc_candidate *out) {
  const planc_mix mix = pl_common_mix(c->asked->common, target);
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&mix, target);
  return c->asked->policy->make(&evaluator, c->asked->shares, out);
}

/* --- Estimates ---------------------------------------------------------------------------------------------------- */

planc_status planc_mix_estimate_by(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                                   planc_mix_estimate *out) {
  pl_common common;
  *out = (planc_mix_estimate){0};
  if (!policy->estimate) return planc_error(PLANC_USAGE, "%s has a plan: it is not estimated", policy->name);
  planc_status status = pl_common_make(mix, &common);
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&common.mix, &common.all);
  if (!status) status = policy->estimate(&evaluator, shares, out);
  if (!status) set_speeds(out->period_ns, mix->n_jobs, shares);
  pl_common_free(&common);
  return status;
}

int64_t planc_mix_throughput(const planc_mix_share *shares, int32_t n_jobs) {
  int64_t sum = 0;
  for (int32_t j = 0; j < n_jobs; j++) sum = pl_add_saturate(sum, shares[j].speed_ppm);
  return sum;
}

int64_t planc_mix_weighted_throughput(const planc_mix *mix, const planc_mix_share *shares) {
  int64_t sum = 0, weights = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    sum = pl_add_saturate(sum, pl_mul_saturate(shares[j].speed_ppm, planc_mix_weight(mix, j)));
    weights += planc_mix_weight(mix, j);
  }
  return weights > 0 ? pl_muldiv_floor(sum, mix->n_jobs, weights) : 0;
}

bool planc_mix_has_weights(const planc_mix *mix) {
  bool any = false;
  for (int32_t j = 1; j < mix->n_jobs; j++) any |= planc_mix_weight(mix, j) != planc_mix_weight(mix, 0);
  return any;
}
