/* Lowering's part that only copies: header, memories, links, jobs, streams and boundary of a plan. */
#ifndef PLANC_LOWER_PLAN_HEADER_H
#define PLANC_LOWER_PLAN_HEADER_H

#include "planc/policy.h"
#include "planner/lower/addresses.h"

/* Fills all of `plan` but its events, algorithms, residencies, uses and sections. Of the predictions only what follows
 * from sizes and costs. */
planc_status pl_fill_header(const planc_problem *problem, const char *policy, const planc_schedule *schedule,
                            const pl_addresses *addresses, planc_plan *plan);

#endif
