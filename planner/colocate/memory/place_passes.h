/* Offline addresses for a steady period whose iterations have their times. Regions that are handed out as time goes on
 * (share_regions.h) leave useless pieces between them. When it is known beforehand when each tensor lives, placing all
 * at once may still find room. The period is a circle: a tensor that lives on into the next period is there at its
 * beginning. */
#ifndef PLANC_COLOCATE_PLACE_PASSES_H
#define PLANC_COLOCATE_PLACE_PASSES_H

#include "planner/colocate/jobs/timing.h"
#include "planner/colocate/memory/areas.h"

/* As pl_share_regions, by offline placement. */
planc_status pl_place_passes(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t capacity_bytes,
                             int64_t ***out, bool *out_fits);

#endif
