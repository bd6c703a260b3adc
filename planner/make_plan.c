/* From a problem to a plan: by one policy (one_plan.c), or by the fastest of all (best.c). */
#include "planner/make_plan.h"

#include "planc/metrics.h"
#include "planner/memory/placement_cache.h"

static planc_status check_gpus(const planc_problem *problem);
static planc_status check_chunks(const planc_problem *problem);
static planc_status check_settings(const planc_problem *problem);
static planc_status make(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

planc_status planc_make_plan(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  PLANC_TRY(check_gpus(problem));
  PLANC_TRY(check_chunks(problem));
  PLANC_TRY(check_settings(problem));
  if (problem->terms.placement_cache) return make(problem, policy, out);
  planc_problem own = *problem;
  PLANC_TRY(pl_placement_cache_make(&own.terms.placement_cache));
  planc_status status = make(&own, policy, out);
  pl_placement_cache_free(own.terms.placement_cache);
  return status;
}

static planc_status make(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  bool chooses = policy->supports & PLANC_POLICY_CHOOSES;
  return chooses ? pl_make_best(problem, out) : pl_make_one(problem, policy, out);
}

planc_status planc_vanilla_of(const planc_problem *problem, planc_outcome *out) {
  planc_problem whole = *problem;
  whole.job.sub_batch = 0;
  planc_plan *plan;
  PLANC_TRY(planc_make_plan(&whole, planc_policy_find("ideal"), &plan));
  *out = planc_outcome_of(plan);
  planc_plan_free(plan);
  return NULL;
}

static planc_status check_chunks(const planc_problem *problem) {
  if (problem->terms.placement == PLANC_PLACEMENT_BEST_FIT) return NULL;
  if (problem->terms.chunk_bytes >= 0 && problem->terms.chunk_bytes % PLANC_ALIGNMENT == 0) return NULL;
  return planc_error(PLANC_USAGE, "chunks of %lld bytes: they must be multiples of %d",
                     (long long)problem->terms.chunk_bytes, PLANC_ALIGNMENT);
}

static planc_status check_gpus(const planc_problem *problem) {
  if (problem->terms.gpus <= PLANC_PLAN_MAX_REPLICAS) return NULL;
  return planc_error(PLANC_USAGE, "%d GPUs: a plan is for at most %d", problem->terms.gpus,
                     (int)PLANC_PLAN_MAX_REPLICAS);
}

static planc_status check_settings(const planc_problem *problem) {
  planc_settings asked = planc_settings_asked(problem);
  return planc_settings_check(&asked);
}
