/* Lowering's part that only copies: header, jobs, streams, boundary and uses of a plan. */
#ifndef PLANC_PLANNER_PLAN_HEADER_H
#define PLANC_PLANNER_PLAN_HEADER_H

#include "addresses.h"
#include "planc/policy.h"

/* Fills all of `plan` but its events, algorithms and sections. Of the predictions only what follows from sizes and
 * costs. */
planc_status planc_fill_header(const planc_problem *problem, const planc_policy *policy, const planc_schedule *schedule,
                               const planc_addresses *addresses, planc_plan *plan);

#endif
