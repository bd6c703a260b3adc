/* Best fit with caching, as frameworks allocate (papers: out-of-core, 4 and 5), by the rules of the paper's own
 * (nnabla, CachingAllocatorWithBuckets). Memory comes from the device in blocks, and what is given back stays with the
 * allocator. It splits blocks for smaller requests, and merges what is free within a block, but not across blocks.
 * Blocks that are free as a whole go back to the device when it has no room for a new one.
 *
 * Requests up to 1 MiB are rounded up to 512 bytes and share blocks of 1 MiB. Larger ones are rounded up to 128 KiB and
 * get blocks of their size, of which no piece of up to 1 MiB is split off. Where the device has no room for a shared
 * block, a small request gets one of its own size, without which nothing would fit a small device.
 *
 * The device is one piece of memory, single chunks of virtual memory, or pages. Of single chunks there are as many as
 * blocks need: no block is larger than a chunk, nor lies in two. Of pages a block has whole ones that need not touch,
 * as a GPU's driver gives memory. */
#ifndef PLANC_MEMORY_CACHING_H
#define PLANC_MEMORY_CACHING_H

#include <stdbool.h>

#include "planner/memory/chunks.h"
#include "planner/memory/memory_list.h"

/* Blocks for one kind of request. */
typedef struct pl_cache {
  pl_memory_list list;
  VEC(int32_t) block_of; /* by segment of `list` that begins a block: its segment of the device, or its range */
} pl_cache;

typedef struct pl_caching {
  pl_memory_list device; /* not used with pages */
  pl_chunks *chunks;     /* whose chunks the device consists of; NULL = it is one piece */
  bool paged;            /* a block is a range of chunks */
  VEC(int32_t) range_of; /* by segment of `device` that begins a chunk: its range */
  pl_cache small, large;
  int64_t top; /* the highest end of any block so far; not with pages */
} pl_caching;

planc_status pl_caching_init(pl_caching *caching, int64_t capacity);
/* `chunks` is borrowed. */
planc_status pl_caching_init_chunks(pl_caching *caching, pl_chunks *chunks);
planc_status pl_caching_init_pages(pl_caching *caching, pl_chunks *pages);
void pl_caching_free(pl_caching *caching);
/* What a request for `bytes` is rounded up to. */
int64_t pl_caching_size(int64_t bytes);
/* *out_handle is -1 when there is no room. Of single chunks, none takes more than one after rounding. */
planc_status pl_caching_take(pl_caching *caching, int64_t bytes, int32_t *out_handle, int64_t *out_address);
planc_status pl_caching_give(pl_caching *caching, int32_t handle);
/* Gives all blocks that are free as a whole back to the device, and those of its chunks that then hold nothing. */
planc_status pl_caching_drain(pl_caching *caching);

#endif
