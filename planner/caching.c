#include "planner/caching.h"

planc_status planc_caching_init(planc_caching *caching, int64_t capacity) {
  *caching = (planc_caching){.top = 0};
  PLANC_TRY(planc_memory_list_init(&caching->device, capacity));
  return planc_memory_list_init(&caching->cached, 0);
}

void planc_caching_free(planc_caching *caching) {
  planc_memory_list_free(&caching->device);
  planc_memory_list_free(&caching->cached);
  VEC_FREE(&caching->block_of);
}

/* Gives the device back all blocks that are free as a whole. */
static planc_status return_idle(planc_caching *c) {
  for (int32_t bin = 1; bin < PLANC_MEMORY_BINS; bin++) {
    for (int32_t i = c->cached.bins[bin], next; i >= 0; i = next) {
      const planc_segment *s = &c->cached.segments.data[i];
      next = s->bin_next;
      if (s->prev >= 0 || s->next >= 0) continue;
      PLANC_TRY(planc_memory_list_drop(&c->cached, i));
      PLANC_TRY(planc_memory_list_release(&c->device, c->block_of.data[i], NULL));
    }
  }
  return NULL;
}

/* A new block of `bytes`, free; -1 when the device has no room. */
static planc_status add_block(planc_caching *c, int64_t bytes, int32_t *out_segment) {
  int32_t block = planc_memory_list_best_fit(&c->device, bytes);
  *out_segment = -1;
  if (block < 0) {
    PLANC_TRY(return_idle(c));
    block = planc_memory_list_best_fit(&c->device, bytes);
    if (block < 0) return NULL;
  }
  int64_t address = c->device.segments.data[block].address;
  PLANC_TRY(planc_memory_list_take(&c->device, block, address, bytes, 0, &block));
  bytes = c->device.segments.data[block].bytes;
  if (address + bytes > c->top) c->top = address + bytes;
  PLANC_TRY(planc_memory_list_add(&c->cached, address, bytes, out_segment));
  while (c->block_of.len <= *out_segment) VEC_PUSH(&c->block_of, -1);
  c->block_of.data[*out_segment] = block;
  return NULL;
}

planc_status planc_caching_take(planc_caching *caching, int64_t bytes, int32_t *out_segment, int64_t *out_address) {
  int32_t segment = planc_memory_list_best_fit(&caching->cached, bytes);
  if (segment < 0) PLANC_TRY(add_block(caching, bytes, &segment));
  *out_segment = segment;
  if (segment < 0) return NULL;
  *out_address = caching->cached.segments.data[segment].address;
  return planc_memory_list_take(&caching->cached, segment, *out_address, bytes, 0, out_segment);
}

planc_status planc_caching_give(planc_caching *caching, int32_t segment) {
  return planc_memory_list_release(&caching->cached, segment, NULL);
}
