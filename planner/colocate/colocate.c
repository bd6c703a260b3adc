/* From a mix of jobs to a plan: what each job does alone and how often it runs in a period, then a policy of the table,
 * lowering, budgets, simulation. */
#include "planc/colocate.h"

#include <string.h>

#include "plan/job_name.h"
#include "plan/owned.h"
#include "planc/simulate.h"
#include "planner/base/code.h"
#include "planner/colocate/deadlines.h"
#include "planner/colocate/in_job.h"
#include "planner/colocate/mix_evaluate.h"
#include "planner/colocate/mix_plan.h"
#include "planner/colocate/mix_policies.h"
#include "planner/colocate/ratio.h"
#include "planner/colocate/responses.h"
#include "planner/colocate/solo.h"
#include "planner/make_plan.h"
#include "util/math.h"

const planc_mix_policy *planc_mix_policies(void) {
  static const planc_mix_policy policies[] = {
      {.name = "temporal", .summary = "the jobs take turns, each alone on the GPU", .make = pl_mix_temporal},
      {.name = "preemptive",
       .summary = "the same, interrupted between ops by jobs with a deadline",
       .supports = PLANC_MIX_DEADLINES,
       .make = pl_mix_preemptive},
      {.name = "mps",
       .summary = "MPS with unified memory: pools of their own, pages migrate on demand; compared only",
       .estimate = pl_mix_mps},
      {.name = "zico",
       .summary = "Zico: side by side, iterations shifted until what they hold in regions fits",
       .supports = PLANC_MIX_REGIONS | PLANC_MIX_ROUNDS,
       .falls_back = "temporal",
       .make = pl_mix_zico},
      {.name = "waterwave",
       .summary = "Waterwave: side by side in node groups, one takes what another lets go",
       .supports = PLANC_MIX_GROUPS | PLANC_MIX_BARRIERS,
       .falls_back = "temporal",
       .make = pl_mix_waterwave},
      {.name = "waterwave-s",
       .summary = "the same with iterations cut in two",
       .supports = PLANC_MIX_BARRIERS,
       .falls_back = "temporal",
       .make = pl_mix_waterwave_s},
      {.name = "tensile",
       .summary = "TENSILE: side by side, each job with memory of its own, swapping what the link has time for",
       .supports = PLANC_POLICY_SWAP_RATE | PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES,
       .make = pl_mix_tensile},
      {.name = "vdnn-conv",
       .summary = "vDNN, for convolutions: side by side, each job planned as if alone, with memory of its own",
       .supports = PLANC_POLICY_SWAPS,
       .make = pl_mix_vdnn_conv},
      {.name = "capuchin",
       .summary = "Capuchin: the same",
       .supports = PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES,
       .make = pl_mix_capuchin},
      {0},
  };
  return policies;
}

const planc_mix_policy *planc_mix_policy_find(const char *name) {
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++)
    if (strcmp(policy->name, name) == 0) return policy;
  return NULL;
}

static planc_status find_alone(const planc_mix_evaluator *evaluator, int32_t job, planc_mix_share *shares,
                               pl_deadline_job *jobs);
static planc_status check(const planc_mix *mix);

static planc_mix mix_on(const pl_common *common, const planc_problem *all) {
  planc_mix mix = common->mix;
  mix.terms = all->terms;
  return mix;
}

planc_status pl_mix_resolve(const pl_common *common, const planc_problem *all, planc_mix_share *shares) {
  const planc_mix at = mix_on(common, all), *mix = &at;
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(mix, all);
  pl_ratio_job jobs[PLANC_MIX_MOST_JOBS];
  pl_deadline_job timed[PLANC_MIX_MOST_JOBS];
  int32_t iterations[PLANC_MIX_MOST_JOBS];
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    PLANC_TRY(find_alone(&evaluator, j, shares, timed));
    jobs[j] = (pl_ratio_job){.alone_ns = shares[j].alone_ns, .iterations = mix->iterations[j]};
  }
  pl_choose_ratio(jobs, mix->n_jobs, mix->max_ratio > 0 ? mix->max_ratio : PLANC_MIX_MAX_RATIO, iterations);
  pl_deadlines_choose(mix, timed, iterations);
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    shares[j].iterations = iterations[j];
    shares[j].deadline_ns = pl_deadline_of(mix, j);
  }
  return NULL;
}

planc_status planc_mix_resolve(const planc_mix *mix, planc_mix_share *shares) {
  pl_common common;
  PLANC_TRY(check(mix));
  planc_status status = pl_common_make(mix, &common);
  if (!status) status = pl_mix_resolve(&common, &common.all, shares);
  pl_common_free(&common);
  return status;
}

/* --- Each job alone ----------------------------------------------------------------------------------------------- */

static bool has_backward(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (graph->ops[o].phase != PLANC_PHASE_forward) return true;
  return false;
}

/* Rounds side by side are those that accumulate gradients. */
static planc_status check_rounds(const planc_workload *job) {
  int32_t n = job->side_by_side;
  if (n == 0 || n == 1) return NULL;
  if (n < 0 || n > PLANC_MIX_MOST_ROUNDS)
    return planc_error(PLANC_USAGE, "%d rounds side by side: from 1 to %d", n, (int)PLANC_MIX_MOST_ROUNDS);
  if (!has_backward(job->graph))
    return planc_error(PLANC_USAGE, "it is for inference: there are no gradients for rounds to accumulate");
  if (job->batch % n == 0 && job->sub_batch == job->batch / n) return NULL;
  return planc_error(PLANC_USAGE, "a batch of %lld is not %d rounds of equal size: choose a number that divides it",
                     (long long)job->batch, n);
}

static planc_status check_job(const planc_mix *mix, int32_t job) {
  const planc_device *first = planc_mix_device(mix);
  const planc_device *own = planc_profile_device(mix->jobs[job].profile);
  if (strcmp(own->name, first->name) != 0 || own->memory_bytes != first->memory_bytes)
    return planc_error(PLANC_USAGE, "it is for device %s, and job 0 for %s: jobs that share a GPU have one device",
                       own->name, first->name);
  PLANC_TRY(check_rounds(&mix->jobs[job]));
  if (mix->iterations[job] >= 0 && mix->iterations[job] <= PLANC_MIX_MOST_ITERATIONS) return NULL;
  return planc_error(PLANC_USAGE, "%d iterations in a period: from 1 to %d, or 0 for planc to choose",
                     mix->iterations[job], (int)PLANC_MIX_MOST_ITERATIONS);
}

static planc_status check_streams(const planc_mix *mix) {
  int64_t n = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int32_t rounds = mix->jobs[j].side_by_side;
    n += PLANC_N_STREAMS + (rounds > 1 ? rounds - 1 : 0);
  }
  if (n <= PLANC_PLAN_MAX_STREAMS) return NULL;
  return planc_error(PLANC_USAGE, "with so many rounds side by side the jobs have %lld streams, and a plan at most %d",
                     (long long)n, PLANC_PLAN_MAX_STREAMS);
}

static planc_status check_name(const planc_mix *mix, int32_t job) {
  const char *name = mix->names[job], *fault = name ? pl_job_name_fault(name) : NULL;
  if (fault) return planc_error(PLANC_USAGE, "its name %s", fault);
  for (int32_t j = 0; j < job && name; j++)
    if (mix->names[j] && strcmp(mix->names[j], name) == 0)
      return planc_error(PLANC_USAGE, "job %d is called %s already", j, name);
  return NULL;
}

static planc_status check(const planc_mix *mix) {
  if (mix->n_jobs < 1 || mix->n_jobs > PLANC_MIX_MOST_JOBS)
    return planc_error(PLANC_USAGE, "%d jobs: a mix has from 1 to %d", mix->n_jobs, (int)PLANC_MIX_MOST_JOBS);
  if (mix->max_ratio < 0 || mix->max_ratio > PLANC_MIX_MOST_ITERATIONS)
    return planc_error(PLANC_USAGE, "at most %d iterations in a period: from 1 to %d", mix->max_ratio,
                       (int)PLANC_MIX_MOST_ITERATIONS);
  if (mix->terms.settings.region % PLANC_ALIGNMENT != 0)
    return planc_error(PLANC_USAGE, "regions of %lld bytes: their size must be a multiple of %d",
                       (long long)mix->terms.settings.region, PLANC_ALIGNMENT);
  if (mix->terms.settings.split_size > 0 && mix->terms.settings.split_groups > 0)
    return planc_error(PLANC_USAGE, "node groups have a size or a number, not both");
  if (mix->terms.gpus > 1)
    return planc_error(PLANC_USAGE, "a mix shares one GPU, and %d are asked for", mix->terms.gpus);
  PLANC_TRY(check_streams(mix));
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    PLANC_TRY(pl_in_job(mix, j, check_job(mix, j)));
    if (mix->names) PLANC_TRY(pl_in_job(mix, j, check_name(mix, j)));
    if (pl_deadline_of(mix, j) < 0)
      return pl_in_job(mix, j, planc_error(PLANC_USAGE, "a deadline of %lld ns", (long long)pl_deadline_of(mix, j)));
  }
  return NULL;
}

static planc_status time_alone(const planc_mix_evaluator *evaluator, const planc_problem *problem, planc_mix_share *out,
                               pl_deadline_job *out_timed) {
  const planc_evaluator alone = evaluator->alone(evaluator, problem);
  pl_solo solo;
  PLANC_TRY(pl_solo_make(evaluator, problem, &solo));
  planc_status status = alone.time(&alone, &solo.candidate, &out->alone_ns);
  if (!status) *out_timed = (pl_deadline_job){out->alone_ns, pl_longest_op(&solo.candidate)};
  out->alone_policy = solo.policy;
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
  return pl_in_job(mix, job, time_alone(evaluator, &problem, &shares[job], &jobs[job]));
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

typedef struct colocation {
  const pl_mix_asked *asked;
  planc_plan *plan; /* NULL: none fits yet */
} colocation;

static planc_status make_better(void *user, const planc_problem *problem, int64_t *out_code);

planc_status pl_mix_make(const void *asked, const planc_problem *problem, planc_plan **out) {
  colocation c = {.asked = asked};
  planc_status status = pl_with_code(problem, make_better, &c);
  *out = c.plan;
  if (!status) return NULL;
  planc_plan_free(c.plan);
  *out = NULL;
  return status;
}

static planc_status make_candidate(const colocation *c, const planc_problem *problem, planc_candidate *out) {
  const planc_mix mix = mix_on(c->asked->common, problem);
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&mix, problem);
  return c->asked->policy->make(&evaluator, c->asked->shares, out);
}

static planc_status make(const colocation *c, const planc_problem *problem, planc_plan **out) {
  planc_candidate candidate = {0};
  *out = NULL;
  planc_status status = make_candidate(c, problem, &candidate);
  if (!status) status = pl_plan_of(problem, c->asked->policy->name, &candidate, out);
  planc_candidate_free(&candidate);
  return status;
}

static planc_status make_better(void *user, const planc_problem *problem, int64_t *out_code) {
  colocation *c = user;
  planc_plan *plan;
  PLANC_TRY(make(c, problem, &plan));
  *out_code = pl_code_of_plan(problem->job.profile, plan);
  planc_status status = pl_hold_to_budgets(problem, plan);
  if (!status) status = planc_simulate_predictions(plan);
  if (status) {
    planc_plan_free(plan);
    return status;
  }
  pl_keep_better(plan, &c->plan);
  return NULL;
}

static void set_speeds(int64_t period, int32_t n_jobs, planc_mix_share *shares) {
  for (int32_t j = 0; j < n_jobs; j++)
    shares[j].speed_ppm =
        period > 0 ? pl_muldiv_floor(pl_mul_saturate(shares[j].alone_ns, shares[j].iterations), PL_PPM, period) : 0;
}

static planc_status judge(const planc_mix *mix, const planc_plan *plan, planc_mix_share *shares) {
  set_speeds(plan->predicted.iteration_ns, mix->n_jobs, shares);
  int64_t responses_ns[PLANC_MIX_MOST_JOBS];
  PLANC_TRY(pl_responses_find(plan, responses_ns));
  for (int32_t j = 0; j < mix->n_jobs; j++) shares[j].response_ns = responses_ns[j];
  return pl_deadlines_hold(mix, shares);
}

/* What is late beside the others may be in time if it runs more often. Where it does not fit so often, it is late with
 * the iterations that do fit, which `shares` then have. */
static planc_status make_until_in_time(const pl_mix_asked *asked, const planc_mix *mix, planc_mix_share *shares,
                                       planc_plan **out) {
  enum { TRIES = 4 };
  planc_mix_share before[PLANC_MIX_MOST_JOBS];
  size_t size = (size_t)mix->n_jobs * sizeof *before;
  planc_status late = NULL;
  for (int k = 0;; k++) {
    planc_status status = pl_mix_make(asked, &asked->common->all, out);
    bool unfit = late && planc_status_code(status) == PLANC_INFEASIBLE;
    planc_status_free(unfit ? status : late);
    if (unfit) {
      memcpy(shares, before, size);
      return late;
    }
    if (!status) status = judge(mix, *out, shares);
    memcpy(before, shares, size);
    if (planc_status_code(status) != PLANC_LATE || k + 1 == TRIES || !pl_deadlines_raise(mix, shares)) return status;
    late = status;
    planc_plan_free(*out);
    *out = NULL;
  }
}

/* Policies know nothing of names. */
static planc_status name_jobs(const planc_mix *mix, planc_plan *plan) {
  planc_job *jobs;
  if (!mix->names) return NULL;
  PLANC_TRY(pl_arena_copy(&plan->owned->arena, plan->jobs, plan->n_jobs, sizeof *jobs, (void *)&jobs));
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (mix->names[j])
      PLANC_TRY(pl_arena_strndup(&plan->owned->arena, mix->names[j], strlen(mix->names[j]), &jobs[j].name));
  plan->jobs = jobs;
  return NULL;
}

planc_status planc_colocate(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                            planc_plan **out) {
  pl_common common;
  pl_mix_asked asked = {.common = &common, .policy = policy, .shares = shares};
  *out = NULL;
  if (!policy->make) return planc_error(PLANC_USAGE, "%s has no plan: it is for comparisons", policy->name);
  if ((policy->supports & PLANC_MIX_DEADLINES) && !planc_mix_has_deadlines(mix))
    return planc_error(PLANC_USAGE, "%s is for mixes in which jobs have deadlines", policy->name);
  planc_status status = pl_common_make(mix, &common);
  if (!status) status = make_until_in_time(&asked, mix, shares, out);
  pl_common_free(&common);
  if (!status) status = name_jobs(mix, *out);
  if (!status) return NULL;
  planc_plan_free(*out);
  *out = NULL;
  return status;
}

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
