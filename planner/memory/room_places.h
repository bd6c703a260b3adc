/* Offline address assignment in one piece of memory that has a size. */
#ifndef PLANC_MEMORY_ROOM_PLACES_H
#define PLANC_MEMORY_ROOM_PLACES_H

#include "planc/problem.h"
#include "planner/memory/placement.h"

/* Fills the addresses of items, none of which is stated; *out_top is the highest end of any. Where that is above
 * `room`, addresses within it are searched for, by repairs and then completely, as far as that may find some; if none
 * are found it stays above. `cache` may know the placement, or is NULL. `arena` is for memory on the way. */
planc_status pl_place_in_room(pl_arena *arena, planc_placement_cache *cache, pl_item *items, int32_t n, int64_t room,
                              int64_t *out_top);

#endif
