/* Addresses for a steady period whose iterations have their times, all at once: where regions that are handed out as
 * time goes on leave pieces between them that are of no use, tensors still find places when it is known beforehand when
 * each of them lives. The period is a circle: what reaches into the next one is there at its beginning. */
#ifndef PLANC_COLOCATE_PLACE_PASSES_H
#define PLANC_COLOCATE_PLACE_PASSES_H

#include "planner/colocate/areas.h"
#include "planner/colocate/timing.h"

/* As pl_share_regions, by offline placement. */
planc_status pl_place_passes(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t capacity_bytes,
                             int64_t ***out, bool *out_fits);

#endif
