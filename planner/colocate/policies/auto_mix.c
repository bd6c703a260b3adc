/* `auto` for several jobs, as far as only the budgets are in question: the first of all policies that fits. Which is
 * the best, and in time, mix_best.c finds. */
#include <assert.h>

#include "planner/choose/reasons.h"
#include "planner/colocate/policies/mix_policies.h"

static planc_status ask(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                        const planc_mix_policy *policy, planc_candidate *out, planc_status *refusal);

planc_status pl_mix_auto(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out) {
  planc_status status = NULL, refusal = NULL;
  for (const planc_mix_policy *policy = evaluator->policies; policy->name && !status && !out->trace; policy++) {
    if (pl_mix_is_asked(evaluator->mix, policy)) status = ask(evaluator, shares, policy, out, &refusal);
  }
  if (!status && !out->trace) {
    assert(refusal);
    return refusal;
  }
  planc_status_free(refusal);
  return status;
}

/* Leaves *out empty where the policy does not fit, and keeps why. */
static planc_status ask(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                        const planc_mix_policy *policy, planc_candidate *out, planc_status *refusal) {
  planc_status status = policy->make(evaluator, shares, out);
  if (!status) status = evaluator->all.hold(&evaluator->all, out);
  planc_code code = planc_status_code(status);
  if (code != PLANC_INFEASIBLE && code != PLANC_USAGE) return status;
  planc_candidate_free(out);
  *out = (planc_candidate){0};
  pl_keep_lesser(refusal, planc_context(status, "%s", policy->name));
  return NULL;
}
