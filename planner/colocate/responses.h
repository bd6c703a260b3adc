/* How long the requests of a mix's jobs take. */
#ifndef PLANC_COLOCATE_RESPONSES_H
#define PLANC_COLOCATE_RESPONSES_H

#include "planc/plan.h"

/* The longest that a request of each of the plan's jobs takes (planc_mix_share.response_ns), by job: in the simulated
 * steady period, with what each iteration copies. */
planc_status pl_responses_find(const planc_plan *plan, int64_t *out_ns);

#endif
