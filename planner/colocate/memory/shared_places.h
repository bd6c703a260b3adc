/* Places in the regions that jobs share, for a steady period whose passes have their times. */
#ifndef PLANC_COLOCATE_SHARED_PLACES_H
#define PLANC_COLOCATE_SHARED_PLACES_H

#include "planner/colocate/jobs/timing.h"
#include "planner/colocate/memory/areas.h"

/* In regions as time goes on (share_regions.h), or else all at once (place_passes.h); what is set is as there. */
planc_status pl_shared_places_find(pl_arena *arena, const pl_timing *timing, const pl_areas *areas,
                                   int64_t capacity_bytes, int64_t ***out_addresses, bool *out_fit);
/* The fewest whole regions that suffice, by bisection; as many as `capacity_bytes` need do suffice. */
planc_status pl_shared_places_fewest(pl_arena *arena, const pl_timing *timing, const pl_areas *areas,
                                     int64_t region_bytes, int64_t capacity_bytes, int64_t *out_bytes);
/* The timing's jobs as one candidate, with all their commands in the order of time and at such places. *out is empty;
 * the caller frees it, whatever the outcome. */
planc_status pl_shared_places_merge(pl_arena *arena, const pl_timing *timing, const pl_areas *areas,
                                    int64_t *const *addresses, planc_candidate *out);

#endif
