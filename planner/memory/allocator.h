/* An allocator that sees requests one by one as data comes and goes: best fit with caching, or virtual memory in chunks
 * (papers: out-of-core, 4). Policies that decide by it state the addresses that it gives.
 *
 * With virtual memory only what is larger than a chunk has chunks of its own; the rest shares chunks by best fit with
 * caching, and all chunks are of one arena. The paper does not say so. Its public implementation has the rule
 * (nnabla-ext-cuda, CudaCachedVirtualArray::select_allocator: arrays of at most one chunk go to the caching allocator),
 * but does not call it in the published version. That the paper's figures are of runs with it is an inference:
 * ResNet-50 has 161 parameters, each with a gradient and momentum, most of a few KiB. At a chunk of 40 MiB each these
 * alone take 18.9 GiB. So a batch of 64 on 16 GiB swaps them in the optimizer's part, and runs at 208 images/s instead
 * of Table 1's 304. Up to 15.1 GiB are lost inside chunks, where Fig. 3 has a small gap. */
#ifndef PLANC_MEMORY_ALLOCATOR_H
#define PLANC_MEMORY_ALLOCATOR_H

#include "planc/problem.h"
#include "planner/memory/caching.h"
#include "planner/memory/chunks.h"

typedef struct pl_allocator {
  planc_placement placement;
  pl_caching caching;
  pl_chunks chunks;
} pl_allocator;

/* The unit in which the arena is used up. */
int64_t pl_allocator_unit(const planc_terms *terms);
/* What the budget leaves of the arena, in whole chunks or, of one piece, aligned. */
int64_t pl_allocator_room(const planc_problem *problem);
/* What a request for `bytes` takes up: of what has chunks of its own, whole ones. */
int64_t pl_allocator_size(const planc_terms *terms, int64_t bytes);
/* An allocator stays where it is while it is used. There is room for a chunk, if there are chunks. */
planc_status pl_allocator_init(pl_allocator *allocator, const planc_problem *problem);
/* Virtual memory without a problem: `most` chunks of `chunk_bytes`. */
planc_status pl_allocator_init_vmm(pl_allocator *allocator, int64_t chunk_bytes, int64_t most);
void pl_allocator_free(pl_allocator *allocator);
/* Memory for `bytes` > 0; *out_handle is -1 when there is no room in the budget. */
planc_status pl_allocator_take(pl_allocator *allocator, int64_t bytes, int32_t *out_handle, int64_t *out_address);
planc_status pl_allocator_give(pl_allocator *allocator, int32_t handle);
/* The bytes of the arena that the requests so far have needed. */
int64_t pl_allocator_arena(const pl_allocator *allocator);
/* Tells the schedule how the addresses are mapped, if they are. */
planc_status pl_allocator_map(const pl_allocator *allocator, planc_schedule *schedule);

#endif
