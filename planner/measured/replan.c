/* The plan after an update (planc/update.h). Decisions that fitted once fit at any times, so there is always one in the
 * budgets that they were made for: what measured times suggest instead, other algorithms with their workspaces or other
 * swaps, may have no room, or cost more than it saves. */
#include "planner/measured/replan.h"

#include "planner/plan_steps.h"

static planc_status choose(const planc_problem *problem, const planc_policy *policy, const planc_plan *old,
                           planc_replanned *out, planc_status *why);

planc_status planc_replan(const planc_problem *problem, const planc_policy *policy, const planc_plan *old,
                          planc_replanned *out) {
  planc_status why = NULL;
  *out = (planc_replanned){0};
  planc_status status = choose(problem, policy, old, out, &why);
  planc_status_free(why);
  if (status) planc_replanned_free(out);
  return status;
}

const planc_plan *planc_replanned_plan(const planc_replanned *replanned) {
  return replanned->keeps ? &replanned->kept.plan : replanned->made;
}

void planc_replanned_free(planc_replanned *replanned) {
  planc_plan_free(replanned->made);
  planc_retimed_free(&replanned->kept);
  *replanned = (planc_replanned){0};
}

planc_status pl_keep_decisions(const planc_terms *terms, const planc_plan *old, const planc_profile *const *profiles,
                               planc_retimed *out) {
  PLANC_TRY(planc_retime_jobs(old, profiles, out));
  planc_plan *plan = &out->plan;
  for (int32_t m = 0; m < plan->n_memories; m++) {
    planc_memory *memory = &plan->memories[m];
    if (memory->kind != PLANC_MEMORY_USER) memory->budget_bytes = terms->budgets[memory->kind];
  }
  plan->predicted.bound_ns = 0; /* it was one for other times */
  PLANC_TRY(planc_simulate_predictions(plan));
  return pl_hold_to_budgets(terms, plan);
}

static planc_status choose(const planc_problem *problem, const planc_policy *policy, const planc_plan *old,
                           planc_replanned *out, planc_status *why) {
  const planc_profile *profiles[] = {problem->job.profile};
  bool has_kept = false, has_made;
  if (old) PLANC_TRY(pl_will_do(pl_keep_decisions(&problem->terms, old, profiles, &out->kept), &has_kept, why));
  PLANC_TRY(pl_will_do(planc_make_plan(problem, policy, &out->made), &has_made, why));
  return pl_kept_or_made(has_kept, has_made, why, out);
}

planc_status pl_will_do(planc_status status, bool *out_does, planc_status *why) {
  planc_code code = planc_status_code(status);
  *out_does = !status;
  if (code != PLANC_INFEASIBLE && code != PLANC_LATE) return status;
  planc_status_free(*why);
  *why = status;
  return NULL;
}

planc_status pl_kept_or_made(bool has_kept, bool has_made, planc_status *why, planc_replanned *replanned) {
  const planc_predictions *kept = &replanned->kept.plan.predicted;
  replanned->keeps = has_kept && (!has_made || planc_predictions_better(kept, &replanned->made->predicted));
  if (has_kept || has_made) return NULL;
  planc_status status = *why;
  *why = NULL;
  return status;
}
