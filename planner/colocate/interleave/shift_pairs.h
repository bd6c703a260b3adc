/* Zico's pairs (papers/000, 4): more than two jobs are paired in their order, and each pair is shifted within its own
 * part of the bytes for regions: what its larger job holds in them at the most, and of the rest a part by what its
 * other job does. */
#ifndef PLANC_COLOCATE_SHIFT_PAIRS_H
#define PLANC_COLOCATE_SHIFT_PAIRS_H

#include "planner/colocate/jobs/timing.h"
#include "planner/colocate/memory/areas.h"

enum { PL_JOBS_OF_PAIR = 2 };

/* Shifts every pair (shift.h). The pairs' periods become one, the longest. */
planc_status pl_shift_pairs(pl_timing *timing, const pl_areas *areas, int64_t bytes, bool *out_fit);

/* The least bytes of which each pair's part holds either of its jobs alone. */
int64_t pl_pairs_least(const pl_areas *areas, int32_t n_jobs);
/* As many as can be of use: what all jobs hold at their fullest, a quarter on top for useless pieces, and a region for
 * each owner. */
int64_t pl_pairs_most(const pl_areas *areas, int32_t n_jobs, int64_t region_bytes);

#endif
