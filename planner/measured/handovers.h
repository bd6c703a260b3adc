/* Hand-overs: what a copy costs beside the time that it runs, as planrun's profiles count it in a link's latency. There
 * are two: from the end of what a copy awaits to its beginning, and from its end to the beginning of ops that awaited
 * nothing longer. Only that part of an idle time counts which the simulator does not predict: it launches late where
 * hosts are slow, too. Where an idle time tells nothing, the copy gets its route's median, but no more than the time
 * before what awaits it: copies that follow each other take no longer than the time that there was. */
#ifndef PLANC_MEASURED_HANDOVERS_H
#define PLANC_MEASURED_HANDOVERS_H

#include "planner/measured/predicted.h"

/* The timeline's spans, those of copies from a memory to another with their hand-overs: as the simulator has them, in
 * whose spans of copies the latency is. Of a plan whose streams and events are right; NULL: nothing is predicted. */
planc_status pl_handovers_add(const planc_timeline *timeline, const planc_plan *plan, const pl_predicted *predicted,
                              pl_arena *arena, planc_span **out);

#endif
