/* Times alone: how long each timed instruction of a plan would have taken without what ran beside it. */
#ifndef PLANC_MEASURED_ALONE_H
#define PLANC_MEASURED_ALONE_H

#include "planc/timeline.h"

/* Medians over the timeline's periods from `first` on: out_ns[k] is of timed instruction k. */
planc_status planc_alone_times(const planc_timeline *timeline, const planc_plan *plan, int32_t first, int64_t *out_ns);

#endif
