/* Placements that have been found. A search comes to the same items again and again: candidates that differ only in
 * time have the same, and what one budget refuses is tried within the next. Placing is most of what planning takes. */
#ifndef PLANC_MEMORY_PLACEMENT_CACHE_H
#define PLANC_MEMORY_PLACEMENT_CACHE_H

#include "planc/problem.h"
#include "planner/memory/placement.h"

/* None are known yet. Freed with pl_placement_cache_free, which takes NULL as well. */
planc_status pl_placement_cache_make(planc_placement_cache **out);
void pl_placement_cache_free(planc_placement_cache *cache);

/* As pl_place, which is asked only where the items are new to `cache`; NULL knows none. May be called from several
 * threads at a time. What it keeps is bounded: it may forget. */
planc_status pl_placement_cache_place(planc_placement_cache *cache, pl_item *items, int32_t n, int64_t *out_top,
                                      pl_overlap *out_overlap);

#endif
