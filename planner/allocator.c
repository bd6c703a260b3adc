#include "planner/allocator.h"

#include "planner/walk.h"

#define DEFAULT_CHUNK (INT64_C(40) << 20) /* papers: out-of-core, 4 */

int64_t planc_allocator_unit(const planc_problem *problem) {
  if (problem->placement == PLANC_PLACEMENT_BEST_FIT) return PLANC_ALIGNMENT;
  return problem->chunk_bytes > 0 ? problem->chunk_bytes : DEFAULT_CHUNK;
}

planc_status planc_allocator_init(planc_allocator *allocator, const planc_problem *problem) {
  *allocator = (planc_allocator){.placement = problem->placement};
  if (problem->placement == PLANC_PLACEMENT_BEST_FIT) {
    return planc_caching_init(&allocator->caching, planc_arena_room(problem));
  }
  allocator->chunks.chunk_bytes = planc_allocator_unit(problem);
  return NULL;
}

void planc_allocator_free(planc_allocator *allocator) {
  planc_caching_free(&allocator->caching);
  planc_chunks_free(&allocator->chunks);
}

planc_status planc_allocator_take(planc_allocator *allocator, int64_t bytes, int32_t *out_handle,
                                  int64_t *out_address) {
  if (allocator->placement == PLANC_PLACEMENT_VMM) {
    return planc_chunks_take(&allocator->chunks, bytes, out_handle, out_address);
  }
  return planc_caching_take(&allocator->caching, bytes, out_handle, out_address);
}

planc_status planc_allocator_give(planc_allocator *allocator, int32_t handle) {
  if (allocator->placement == PLANC_PLACEMENT_VMM) return planc_chunks_give(&allocator->chunks, handle);
  return planc_caching_give(&allocator->caching, handle);
}

int64_t planc_allocator_arena(const planc_allocator *allocator) {
  if (allocator->placement == PLANC_PLACEMENT_VMM) return allocator->chunks.n_chunks * allocator->chunks.chunk_bytes;
  return allocator->caching.top;
}

planc_status planc_allocator_map(const planc_allocator *allocator, planc_schedule *schedule) {
  planc_mappings mappings = {0};
  if (allocator->placement == PLANC_PLACEMENT_BEST_FIT) return NULL;
  planc_status status = planc_chunks_map(&allocator->chunks, &mappings);
  planc_virtual_memory memory = {.arena_bytes = planc_allocator_arena(allocator),
                                 .chunk_bytes = allocator->chunks.chunk_bytes,
                                 .mappings = mappings.data,
                                 .n = (int32_t)mappings.len};
  if (!status) status = planc_schedule_map(schedule, &memory);
  VEC_FREE(&mappings);
  return status;
}
