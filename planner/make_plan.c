/* From a problem to a plan: by one policy (one_plan.c), or by the fastest of all (best.c). */
#include "planner/make_plan.h"

#include "cost/routes.h"
#include "planc/metrics.h"
#include "planner/base/asked.h"
#include "planner/memory/placement_cache.h"

static planc_status check_storage(const planc_problem *problem);
static planc_status make(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

planc_status planc_make_plan(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  PLANC_TRY(pl_check_terms(&problem->terms));
  PLANC_TRY(pl_check_job(&problem->job));
  PLANC_TRY(check_storage(problem));
  if (problem->terms.placement_cache) return make(problem, policy, out);
  planc_problem own = *problem;
  PLANC_TRY(pl_placement_cache_make(&own.terms.placement_cache));
  planc_status status = make(&own, policy, out);
  pl_placement_cache_free(own.terms.placement_cache);
  return status;
}

static planc_status check_storage(const planc_problem *problem) {
  const planc_device *device = planc_profile_device(problem->job.profile);
  if (problem->terms.budgets[PLANC_MEMORY_STORAGE] == 0 || pl_device_reaches(device, PLANC_MEMORY_STORAGE)) return NULL;
  return planc_error(PLANC_USAGE, "the profile of device %s says nothing of storage", device->name);
}

static planc_status make(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  bool chooses = policy->supports & PLANC_POLICY_CHOOSES;
  return chooses ? pl_make_best(problem, policy, out) : pl_make_one(problem, policy, out);
}

planc_status planc_vanilla_of(const planc_problem *problem, planc_outcome *out) {
  planc_problem whole = *problem;
  whole.job.sub_batch = 0;
  whole.terms.placement = PLANC_PLACEMENT_BEST_FIT;
  planc_plan *plan;
  PLANC_TRY(planc_make_plan(&whole, planc_policy_find("ideal"), &plan));
  *out = planc_outcome_of(plan);
  planc_plan_free(plan);
  return NULL;
}
