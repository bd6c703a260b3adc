/* The steps of making a plan that others take as well. */
#ifndef PLANC_PLANNER_MAKE_PLAN_H
#define PLANC_PLANNER_MAKE_PLAN_H

#include "planc/policy.h"

/* INFEASIBLE where the plan's predicted peaks are more than the problem's budgets. */
planc_status pl_hold_to_budgets(const planc_problem *problem, const planc_plan *plan);

/* The plan of one policy, which does not CHOOSE (one_plan.c). */
planc_status pl_make_one(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

/* The plan of the fastest policy that fits (best.c). */
planc_status pl_make_best(const planc_problem *problem, planc_plan **out);

/* A candidate's plan with what the candidate knows of itself, but for predictions of time. `policy` is its name. */
planc_status pl_plan_of(const planc_problem *problem, const char *policy, const planc_candidate *candidate,
                        planc_plan **out);
/* Takes over a plan in place of *kept if that is NULL or not as good; frees the other one. */
void pl_keep_better(planc_plan *plan, planc_plan **kept);

/* Gives a plan a copy of `text` for its explanation. */
planc_status pl_explain_plan(planc_plan *plan, const char *text);

#endif
