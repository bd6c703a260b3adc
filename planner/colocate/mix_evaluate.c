/* What a policy for mixes may ask (mix_evaluate.h): the planner's evaluator, of all jobs and of each alone; which
 * policy is the fastest for a job alone, for which that is planned with each; and the time of requests. */
#include "planner/colocate/mix_evaluate.h"

#include "planner/colocate/responses.h"
#include "planner/evaluate.h"

static planc_evaluator alone(const planc_mix_evaluator *evaluator, const planc_problem *problem);
static planc_status fastest(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                            const planc_policy **out);
static planc_status respond(const planc_mix_evaluator *evaluator, const planc_candidate *all, int64_t *out_ns);

planc_mix_evaluator pl_mix_evaluator_of(const planc_mix *mix, const planc_target *all) {
  return (planc_mix_evaluator){.mix = mix,
                               .policies = planc_mix_policies(),
                               .all = pl_evaluator_of_all(all),
                               .alone = alone,
                               .fastest = fastest,
                               .respond = respond};
}

static planc_evaluator alone(const planc_mix_evaluator *evaluator, const planc_problem *problem) {
  (void)evaluator;
  return pl_evaluator_of(problem);
}

static planc_status fastest(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                            const planc_policy **out) {
  (void)evaluator;
  planc_plan *plan;
  PLANC_TRY(planc_make_plan(problem, planc_policy_find("best"), &plan));
  *out = planc_policy_find(plan->policy);
  planc_plan_free(plan);
  return NULL;
}

static planc_status respond(const planc_mix_evaluator *evaluator, const planc_candidate *all, int64_t *out_ns) {
  planc_plan *plan;
  PLANC_TRY(planc_lower(&evaluator->all.target, "", all, &plan));
  planc_status status = pl_responses_find(plan, out_ns);
  planc_plan_free(plan);
  return status;
}
