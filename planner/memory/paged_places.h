/* Offline placement in virtual memory (papers: out-of-core, 4): an item may lie on any pages of the arena that are free
 * while it lives, so that nothing is lost between items. All pages are mapped before the first op. */
#ifndef PLANC_MEMORY_PAGED_PLACES_H
#define PLANC_MEMORY_PAGED_PLACES_H

#include "planc/schedule.h"
#include "planner/memory/placement.h"

/* Fills the addresses of items, none of which is stated, and *out, whose mappings are in `arena`. What is larger than a
 * page has pages of its own, but for the first and the last, of which it may have a part. Smaller items share pages, as
 * pl_place lays them out, and so does what lives at all positions; larger ones have these pages while nothing is on
 * them. The device's arena is as large as that comes to. *out_placed is false where more pages would be mapped than a
 * plan may have: *out is as it was then, and addresses mean nothing. */
planc_status pl_place_in_pages(pl_arena *arena, pl_item *items, int32_t n, int64_t page_bytes, bool *out_placed,
                               planc_virtual_memory *out);

/* Maps `bytes` of an arena to addresses that are the arena's. USAGE where these are more pages than a plan may have. */
planc_status pl_map_one_piece(pl_arena *arena, int64_t page_bytes, int64_t bytes, planc_virtual_memory *out);

#endif
