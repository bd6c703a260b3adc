/* The allocator that a problem asks for (allocator.h). */
#include "planner/memory/allocator.h"

#include "planner/base/code.h"
#include "util/math.h"

int64_t pl_allocator_unit(const planc_terms *terms) {
  return terms->placement == PLANC_PLACEMENT_VMM ? pl_arena_chunk(terms) : PLANC_ALIGNMENT;
}

int64_t pl_allocator_room(const planc_problem *problem) {
  return pl_arena_room(&problem->terms, problem->job.profile) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
}

/* Whether a request shares chunks. */
static bool shares(int64_t bytes, int64_t chunk_bytes) {
  return bytes <= chunk_bytes && pl_caching_size(bytes) <= chunk_bytes;
}

int64_t pl_allocator_size(const planc_terms *terms, int64_t bytes) {
  int64_t unit = pl_allocator_unit(terms);
  return pl_align_up(bytes, shares(bytes, unit) ? PLANC_ALIGNMENT : unit);
}

planc_status pl_allocator_init_vmm(pl_allocator *allocator, int64_t chunk_bytes, int64_t most) {
  *allocator = (pl_allocator){.placement = PLANC_PLACEMENT_VMM};
  allocator->chunks.chunk_bytes = chunk_bytes;
  allocator->chunks.most = most;
  return pl_caching_init_chunks(&allocator->caching, &allocator->chunks);
}

planc_status pl_allocator_init(pl_allocator *allocator, const planc_problem *problem) {
  int64_t chunk_bytes = pl_arena_chunk(&problem->terms), room = pl_allocator_room(problem);
  if (problem->terms.placement == PLANC_PLACEMENT_VMM) {
    return pl_allocator_init_vmm(allocator, chunk_bytes, room / chunk_bytes);
  }
  *allocator = (pl_allocator){.placement = problem->terms.placement};
  if (problem->terms.placement == PLANC_PLACEMENT_BEST_FIT) return pl_caching_init(&allocator->caching, room);
  allocator->chunks.chunk_bytes = chunk_bytes;
  allocator->chunks.most = room / chunk_bytes;
  return pl_caching_init_pages(&allocator->caching, &allocator->chunks);
}

void pl_allocator_free(pl_allocator *allocator) {
  pl_caching_free(&allocator->caching);
  pl_chunks_free(&allocator->chunks);
}

/* Chunks of its own; where too few are left, those that nothing uses of the shared ones help out. */
static planc_status take_chunks(pl_allocator *a, int64_t bytes, int32_t *out_range, int64_t *out_address) {
  PLANC_TRY(pl_chunks_take(&a->chunks, bytes, out_range, out_address));
  if (*out_range >= 0) return NULL;
  PLANC_TRY(pl_caching_drain(&a->caching));
  return pl_chunks_take(&a->chunks, bytes, out_range, out_address);
}

/* With virtual memory, handles are those of shared chunks at even numbers, and ranges at odd ones. */
planc_status pl_allocator_take(pl_allocator *allocator, int64_t bytes, int32_t *out_handle, int64_t *out_address) {
  bool vmm = allocator->placement == PLANC_PLACEMENT_VMM, own = vmm && !shares(bytes, allocator->chunks.chunk_bytes);
  if (own) {
    PLANC_TRY(take_chunks(allocator, bytes, out_handle, out_address));
  } else {
    PLANC_TRY(pl_caching_take(&allocator->caching, bytes, out_handle, out_address));
  }
  if (!vmm || *out_handle < 0) return NULL;
  if (*out_handle > INT32_MAX / 2) return planc_error(PLANC_INTERNAL, "too many pieces of virtual memory");
  *out_handle = 2 * *out_handle + own;
  return NULL;
}

planc_status pl_allocator_give(pl_allocator *allocator, int32_t handle) {
  if (allocator->placement != PLANC_PLACEMENT_VMM) return pl_caching_give(&allocator->caching, handle);
  if (handle % 2) return pl_chunks_give(&allocator->chunks, handle / 2);
  return pl_caching_give(&allocator->caching, handle / 2);
}

int64_t pl_allocator_arena(const pl_allocator *allocator) {
  if (allocator->placement == PLANC_PLACEMENT_BEST_FIT) return allocator->caching.top;
  return allocator->chunks.n_chunks * allocator->chunks.chunk_bytes;
}

planc_status pl_allocator_map(const pl_allocator *allocator, planc_schedule *schedule) {
  pl_mappings mappings = {0};
  if (allocator->placement == PLANC_PLACEMENT_BEST_FIT) return NULL;
  planc_status status = pl_chunks_map(&allocator->chunks, &mappings);
  planc_virtual_memory memory = {.arena_bytes = pl_allocator_arena(allocator),
                                 .chunk_bytes = allocator->chunks.chunk_bytes,
                                 .paged = allocator->placement == PLANC_PLACEMENT_PAGED,
                                 .mappings = mappings.data,
                                 .n = (int32_t)mappings.len};
  if (!status) status = planc_schedule_map(schedule, &memory);
  VEC_FREE(&mappings);
  return status;
}
