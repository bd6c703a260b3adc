/* Means of policies (means.h). */
#include "planner/means.h"

planc_status pl_check_means(const planc_problem *problem, const planc_policy *policy) {
  uint32_t means = policy->supports & (PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_ROUNDS);
  if (problem->terms.settings.no_swap && means == PLANC_POLICY_SWAPS)
    return planc_error(PLANC_USAGE, "policy %s swaps and has no other choice, and no swap is allowed", policy->name);
  if (problem->terms.settings.no_recompute && means == PLANC_POLICY_RECOMPUTES)
    return planc_error(PLANC_USAGE, "policy %s recomputes and has no other choice, and no recompute is allowed",
                       policy->name);
  return NULL;
}
