/* Best fit with coalescing, TensorFlow's allocator: one region, which is the whole memory, and requests met one by one
 * as they come. Sizes are rounded up to 256 bytes. The smallest free segment that is large enough is taken (ties:
 * lowest address). It is split only where it is at least twice the request or 128 MiB would be left of it. What is
 * given back merges with its free neighbours. So does tensorflow/core/common_runtime/bfc_allocator.cc of 1.15
 * (RoundedBytes, FindChunkPtr, TryToCoalesce), whose chunks are segments here. Its bins by powers of two hold them in
 * order of size, so that they do not change which is taken. */
#ifndef PLANC_MEMORY_BFC_H
#define PLANC_MEMORY_BFC_H

#include <stdbool.h>

#include "planner/memory/memory_list.h"

typedef struct pl_bfc {
  pl_memory_list region, beyond; /* `beyond` begins where the region ends */
} pl_bfc;

planc_status pl_bfc_init(pl_bfc *bfc, int64_t capacity);
void pl_bfc_free(pl_bfc *bfc);
/* Whether a request would find a segment. */
bool pl_bfc_fits(const pl_bfc *bfc, int64_t bytes);
/* A request that finds none gets memory beyond the region, by the same rules, which says how much is missing. */
planc_status pl_bfc_take(pl_bfc *bfc, int64_t bytes, int32_t *out_handle, int64_t *out_address);
planc_status pl_bfc_give(pl_bfc *bfc, int32_t handle);

#endif
