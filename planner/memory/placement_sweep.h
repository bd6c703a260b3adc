/* One pass over time for placement: every item takes the lowest range that is free when its life begins (or, backwards,
 * when it ends). */
#ifndef PLANC_MEMORY_PLACEMENT_SWEEP_H
#define PLANC_MEMORY_PLACEMENT_SWEEP_H

#include <stdbool.h>

#include "planner/memory/placement.h"

/* `addresses` holds each item's stated address or PLANC_BLANK and gets those chosen. Ends no later than `horizon`;
 * bytes positive and multiples of the alignment. INTERNAL when stated addresses overlap, with *out_overlap. */
planc_status pl_placement_sweep(const pl_item *items, int32_t n, int32_t horizon, bool backwards, int64_t *addresses,
                                pl_overlap *out_overlap);

#endif
