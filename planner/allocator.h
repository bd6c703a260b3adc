/* An allocator that sees requests one by one as data comes and goes: best fit with caching, or virtual memory in chunks
 * (papers: out-of-core, 4). Policies that decide by it state the addresses that it gives. */
#ifndef PLANC_PLANNER_ALLOCATOR_H
#define PLANC_PLANNER_ALLOCATOR_H

#include "planc/policy.h"
#include "planner/caching.h"
#include "planner/chunks.h"

typedef struct planc_allocator {
  planc_placement placement;
  planc_caching caching;
  planc_chunks chunks;
} planc_allocator;

/* The unit in which the arena is used up: sizes are rounded up to it. */
int64_t planc_allocator_unit(const planc_problem *problem);
planc_status planc_allocator_init(planc_allocator *allocator, const planc_problem *problem);
void planc_allocator_free(planc_allocator *allocator);
/* Memory for `bytes` > 0; *out_handle is -1 when best fit finds no room in the budget. */
planc_status planc_allocator_take(planc_allocator *allocator, int64_t bytes, int32_t *out_handle, int64_t *out_address);
planc_status planc_allocator_give(planc_allocator *allocator, int32_t handle);
/* The bytes of the arena that the requests so far have needed. */
int64_t planc_allocator_arena(const planc_allocator *allocator);
/* Tells the schedule how the addresses are mapped, if they are. */
planc_status planc_allocator_map(const planc_allocator *allocator, planc_schedule *schedule);

#endif
