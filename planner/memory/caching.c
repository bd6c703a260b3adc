/* Best fit with caching (caching.h): blocks, the pieces of each, and what goes back to the device. */
#include "planner/memory/caching.h"

#include <stdbool.h>

#include "util/math.h"

/* nnabla, caching_allocator_with_buckets.hpp: small_alloc_, round_small_, round_large_. */
enum { SMALL_BLOCK = 1 << 20, SMALL_UNIT = 512, LARGE_UNIT = 128 << 10 };

planc_status pl_caching_init(pl_caching *caching, int64_t capacity) {
  *caching = (pl_caching){.top = 0};
  PLANC_TRY(pl_memory_list_init(&caching->device, capacity));
  PLANC_TRY(pl_memory_list_init(&caching->small.list, 0));
  return pl_memory_list_init(&caching->large.list, 0);
}

planc_status pl_caching_init_chunks(pl_caching *caching, pl_chunks *chunks) {
  PLANC_TRY(pl_caching_init(caching, 0));
  caching->chunks = chunks;
  return NULL;
}

planc_status pl_caching_init_pages(pl_caching *caching, pl_chunks *pages) {
  PLANC_TRY(pl_caching_init_chunks(caching, pages));
  caching->paged = true;
  return NULL;
}

static void free_cache(pl_cache *cache) {
  pl_memory_list_free(&cache->list);
  VEC_FREE(&cache->block_of);
}

void pl_caching_free(pl_caching *caching) {
  pl_memory_list_free(&caching->device);
  VEC_FREE(&caching->range_of);
  free_cache(&caching->small);
  free_cache(&caching->large);
}

/* --- Blocks ------------------------------------------------------------------------------------------------------- */

static planc_status give_block(pl_caching *c, int32_t block) {
  return c->paged ? pl_chunks_give(c->chunks, block) : pl_memory_list_release(&c->device, block, NULL);
}

/* Gives the device back all blocks that are free as a whole. */
static planc_status return_idle(pl_caching *c, pl_cache *cache) {
  for (int32_t bin = 1; bin < PL_MEMORY_BINS; bin++) {
    for (int32_t i = cache->list.bins[bin], next; i >= 0; i = next) {
      const pl_segment *s = &cache->list.segments.data[i];
      next = s->bin_next;
      if (s->prev >= 0 || s->next >= 0) continue;
      PLANC_TRY(pl_memory_list_drop(&cache->list, i));
      PLANC_TRY(give_block(c, cache->block_of.data[i]));
    }
  }
  return NULL;
}

planc_status pl_caching_drain(pl_caching *c) {
  PLANC_TRY(return_idle(c, &c->small));
  PLANC_TRY(return_idle(c, &c->large));
  if (!c->chunks || c->paged) return NULL;
  for (int32_t bin = 1; bin < PL_MEMORY_BINS; bin++) {
    for (int32_t i = c->device.bins[bin], next; i >= 0; i = next) {
      const pl_segment *s = &c->device.segments.data[i];
      next = s->bin_next;
      if (s->bytes < c->chunks->chunk_bytes) continue;
      PLANC_TRY(pl_memory_list_drop(&c->device, i));
      PLANC_TRY(pl_chunks_give(c->chunks, c->range_of.data[i]));
    }
  }
  return NULL;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static planc_status add_block(pl_caching *c, pl_cache *cache, int64_t bytes, int32_t *out_segment);
static int64_t shared_bytes(const pl_caching *c);
static planc_status make_block(pl_caching *c, int64_t bytes, int32_t *out_block, int64_t *out_address);

int64_t pl_caching_size(int64_t bytes) {
  return pl_align_up(bytes, bytes <= SMALL_BLOCK ? SMALL_UNIT : LARGE_UNIT);
}

/* Handles are segments of the small blocks at even numbers, and of the large ones at odd ones. */
planc_status pl_caching_take(pl_caching *caching, int64_t bytes, int32_t *out_handle, int64_t *out_address) {
  bool small = bytes <= SMALL_BLOCK;
  pl_cache *cache = small ? &caching->small : &caching->large;
  bytes = pl_caching_size(bytes);
  int32_t segment = pl_memory_list_best_fit(&cache->list, bytes);
  *out_handle = -1;
  if (segment < 0) PLANC_TRY(add_block(caching, cache, bytes, &segment));
  if (segment < 0) return NULL;
  const pl_segment *found = &cache->list.segments.data[segment];
  *out_address = found->address;
  if (!small && found->bytes - bytes <= SMALL_BLOCK) bytes = found->bytes;
  PLANC_TRY(pl_memory_list_take(&cache->list, segment, *out_address, bytes, 0, &segment));
  if (segment > INT32_MAX / 2) return planc_error(PLANC_INTERNAL, "too many segments");
  *out_handle = 2 * segment + !small;
  return NULL;
}

/* A new block of the cache that has room for `bytes`, free; -1 when the device has no room. */
static planc_status add_block(pl_caching *c, pl_cache *cache, int64_t bytes, int32_t *out_segment) {
  int32_t block;
  int64_t address, shared = shared_bytes(c), block_bytes = bytes < shared ? shared : bytes;
  if (c->paged) block_bytes = pl_align_up(block_bytes, c->chunks->chunk_bytes);
  PLANC_TRY(make_block(c, block_bytes, &block, &address));
  if (block < 0 && bytes < block_bytes && !c->paged) {
    block_bytes = bytes;
    PLANC_TRY(make_block(c, block_bytes, &block, &address));
  }
  *out_segment = -1;
  if (block < 0) return NULL;
  PLANC_TRY(pl_memory_list_add(&cache->list, address, block_bytes, out_segment));
  while (cache->block_of.len <= *out_segment) VEC_PUSH(&cache->block_of, -1);
  cache->block_of.data[*out_segment] = block;
  return NULL;
}

planc_status pl_caching_give(pl_caching *caching, int32_t handle) {
  return pl_memory_list_release(handle % 2 ? &caching->large.list : &caching->small.list, handle / 2, NULL);
}

/* One more chunk for the device, if there is one. */
static planc_status add_chunk(pl_caching *c) {
  int32_t range, segment;
  int64_t address;
  PLANC_TRY(pl_chunks_take(c->chunks, c->chunks->chunk_bytes, &range, &address));
  if (range < 0) return NULL;
  PLANC_TRY(pl_memory_list_add(&c->device, address, c->chunks->chunk_bytes, &segment));
  while (c->range_of.len <= segment) VEC_PUSH(&c->range_of, -1);
  c->range_of.data[segment] = range;
  return NULL;
}

/* A block of what the device has left, -1 = none. */
static planc_status take_block(pl_caching *c, int64_t bytes, int32_t *out_block, int64_t *out_address) {
  if (c->paged) return pl_chunks_take(c->chunks, bytes, out_block, out_address);
  *out_block = pl_memory_list_best_fit(&c->device, bytes);
  if (*out_block < 0) return NULL;
  *out_address = c->device.segments.data[*out_block].address;
  if (*out_address + bytes > c->top) c->top = *out_address + bytes;
  return pl_memory_list_take(&c->device, *out_block, *out_address, bytes, 0, out_block);
}

/* The same, with what nothing uses given back where too little is left. */
static planc_status make_block(pl_caching *c, int64_t bytes, int32_t *out_block, int64_t *out_address) {
  PLANC_TRY(take_block(c, bytes, out_block, out_address));
  if (*out_block >= 0) return NULL;
  PLANC_TRY(return_idle(c, &c->small));
  PLANC_TRY(return_idle(c, &c->large));
  PLANC_TRY(take_block(c, bytes, out_block, out_address));
  if (*out_block >= 0 || !c->chunks || c->paged) return NULL;
  PLANC_TRY(add_chunk(c));
  return take_block(c, bytes, out_block, out_address);
}

/* What small requests share. */
static int64_t shared_bytes(const pl_caching *c) {
  return c->chunks && c->chunks->chunk_bytes < SMALL_BLOCK ? c->chunks->chunk_bytes : SMALL_BLOCK;
}
