/* Steps of making a plan, of one job or of several. */
#ifndef PLANC_PLANNER_PLAN_STEPS_H
#define PLANC_PLANNER_PLAN_STEPS_H

#include "planc/policy.h"

/* Lowers a candidate of policy `policy` to a plan, with the candidate's bound and explanation. Of its predictions those
 * of time are still missing. */
planc_status pl_plan_of(const planc_target *target, const char *policy, const planc_candidate *candidate,
                        planc_plan **out);
/* Gives a plan a copy of `text` for its explanation. */
planc_status pl_explain_plan(planc_plan *plan, const char *text);
/* Takes over a plan in place of *kept if that is NULL or not as good; frees the other one. */
void pl_keep_better(planc_plan *plan, planc_plan **kept);
/* INFEASIBLE where the plan's predicted peaks are more than the budgets. */
planc_status pl_hold_to_budgets(const planc_terms *terms, const planc_plan *plan);

#endif
