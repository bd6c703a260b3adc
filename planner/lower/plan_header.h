/* What of a plan its schedule and addresses say: header, memories, links, jobs, streams and boundary. */
#ifndef PLANC_LOWER_PLAN_HEADER_H
#define PLANC_LOWER_PLAN_HEADER_H

#include "planc/candidate.h"
#include "planner/lower/addresses.h"

/* Fills all of `plan` but its events, algorithms, residencies, uses and sections. Of the predictions only what follows
 * from sizes and costs. stream_of[job * PLANC_N_ROUTES + route] becomes the job's stream for a route, -1 = none. */
planc_status pl_fill_header(const planc_target *target, const char *policy, const planc_schedule *schedule,
                            const pl_addresses *addresses, planc_plan *plan, int16_t *stream_of);

#endif
