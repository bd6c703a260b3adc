/* Hand-overs: what a copy costs beside the time that it runs, as planrun's profiles count it in a link's latency. */
#ifndef PLANC_MEASURED_HANDOVERS_H
#define PLANC_MEASURED_HANDOVERS_H

#include "planc/simulate.h"
#include "planc/timeline.h"

/* From the end of what a copy awaits to its beginning, and from its end to the beginning of what awaited nothing
 * longer: medians over copies and periods. */
typedef struct pl_handover {
  int64_t before_ns, after_ns;
} pl_handover;

/* By route. Of a plan whose streams and events are right. */
planc_status pl_handovers_find(const planc_timeline *timeline, const planc_plan *plan, pl_handover out[PLANC_N_ROUTES]);

#endif
