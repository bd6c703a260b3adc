/* Best fit with caching, as frameworks allocate (papers: out-of-core, 4 and 5): memory comes from the device in blocks
 * of the size that is asked for; what is given back stays with the allocator, which splits blocks for smaller requests
 * and merges what is free within a block, but not across blocks. Blocks that are free as a whole go back to the device
 * when it has no room for a new one. */
#ifndef PLANC_PLANNER_CACHING_H
#define PLANC_PLANNER_CACHING_H

#include "planner/memory_list.h"

typedef struct planc_caching {
  planc_memory_list device, cached;
  VEC(int32_t) block_of; /* by segment of `cached` that begins a block: its segment of `device` */
  int64_t top;           /* the highest end of any block so far */
} planc_caching;

planc_status planc_caching_init(planc_caching *caching, int64_t capacity);
void planc_caching_free(planc_caching *caching);
/* *out_segment is -1 when there is no room. */
planc_status planc_caching_take(planc_caching *caching, int64_t bytes, int32_t *out_segment, int64_t *out_address);
planc_status planc_caching_give(planc_caching *caching, int32_t segment);

#endif
