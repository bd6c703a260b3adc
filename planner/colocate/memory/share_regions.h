/* Addresses in regions for a steady period whose iterations have their times: regions are handed out as time goes on,
 * for one period after the other, so that what reaches into the next period is beside what begins there. */
#ifndef PLANC_COLOCATE_SHARE_REGIONS_H
#define PLANC_COLOCATE_SHARE_REGIONS_H

#include "planner/colocate/jobs/timing.h"
#include "planner/colocate/memory/areas.h"

/* Where every residency of every pass is: (*out)[pass][residency of the job's candidate]. Regions lie behind what is
 * private, in `capacity_bytes`. *out_fits is false where they do not suffice. Everything is allocated in `arena`. */
planc_status pl_share_regions(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t capacity_bytes,
                              int64_t ***out, bool *out_fits);

#endif
