/* The two ways to a plan: planc_make_plan takes one of them. */
#ifndef PLANC_PLANNER_MAKE_PLAN_H
#define PLANC_PLANNER_MAKE_PLAN_H

#include "planc/policy.h"

/* The plan of one policy, which does not CHOOSE (one_plan.c). */
planc_status pl_make_one(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

/* The plan of the fastest policy that fits, of those that `policy` chooses among (best.c). */
planc_status pl_make_best(const planc_problem *problem, const planc_policy *policy, planc_plan **out);

#endif
