/* Placements that have been found. A search comes to the same items again and again: candidates that differ only in
 * time have the same, and what one budget refuses is tried within the next. Placing is most of what planning takes. */
#ifndef PLANC_MEMORY_PLACEMENTS_H
#define PLANC_MEMORY_PLACEMENTS_H

#include "planc/problem.h"
#include "planner/memory/placement.h"

/* None are known yet. Freed with pl_placements_free, which takes NULL as well. */
planc_status pl_placements_make(planc_placements **out);
void pl_placements_free(planc_placements *placements);

/* As pl_place, which is asked only where the items are new to `placements`; NULL knows none. May be called from several
 * threads at a time. What it keeps is bounded: it may forget. */
planc_status pl_placements_place(planc_placements *placements, pl_item *items, int32_t n, int64_t *out_top,
                                 pl_overlap *out_overlap);

#endif
