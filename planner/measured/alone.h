/* Times alone: how long each timed instruction of a plan would have taken without what ran beside it. */
#ifndef PLANC_MEASURED_ALONE_H
#define PLANC_MEASURED_ALONE_H

#include "planc/timeline.h"

/* Medians over the timeline's steady periods: out_ns[k] is of timed instruction k. INVALID_PLAN when the plan's
 * memories, links or streams are not right, or a timed instruction is on no stream. */
planc_status pl_alone_times(const planc_timeline *timeline, const planc_plan *plan, int64_t *out_ns);

#endif
