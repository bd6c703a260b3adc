#include "planner/memory_list.h"

#include "planc/schedule.h"
#include "util/math.h"

/* Four bins to a power of two: a bin's sizes differ by less than a quarter. */
static int32_t bin_of(int64_t bytes) {
  uint64_t units = (uint64_t)bytes / PLANC_ALIGNMENT;
  if (units < 4) return (int32_t)units;
  int32_t log = 63 - __builtin_clzll(units);
  return 4 * (log - 1) + (int32_t)(units >> (log - 2) & 3);
}

static void bin_insert(planc_memory_list *list, int32_t segment) {
  planc_segment *s = &list->segments.data[segment];
  int32_t *head = &list->bins[bin_of(s->bytes)];
  s->bin_prev = -1;
  s->bin_next = *head;
  if (*head >= 0) list->segments.data[*head].bin_prev = segment;
  *head = segment;
}

static void bin_remove(planc_memory_list *list, int32_t segment) {
  const planc_segment *s = &list->segments.data[segment];
  if (s->bin_next >= 0) list->segments.data[s->bin_next].bin_prev = s->bin_prev;
  if (s->bin_prev >= 0) {
    list->segments.data[s->bin_prev].bin_next = s->bin_next;
  } else {
    list->bins[bin_of(s->bytes)] = s->bin_next;
  }
}

planc_status planc_memory_list_init(planc_memory_list *list, int64_t capacity) {
  *list = (planc_memory_list){.first = 0};
  for (int32_t i = 0; i < PLANC_MEMORY_BINS; i++) list->bins[i] = -1;
  list->capacity = list->free_bytes = capacity / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  planc_segment whole = {.bytes = list->capacity, .block = PLANC_FREE_BLOCK, .prev = -1, .next = -1};
  VEC_PUSH(&list->segments, whole);
  bin_insert(list, 0);
  return NULL;
}

void planc_memory_list_free(planc_memory_list *list) {
  VEC_FREE(&list->segments);
  VEC_FREE(&list->spare);
}

int32_t planc_memory_list_best_fit(const planc_memory_list *list, int64_t bytes) {
  for (int32_t bin = bin_of(planc_align_up(bytes, PLANC_ALIGNMENT)); bin < PLANC_MEMORY_BINS; bin++) {
    int32_t best = -1;
    for (int32_t i = list->bins[bin]; i >= 0; i = list->segments.data[i].bin_next) {
      const planc_segment *s = &list->segments.data[i], *b = best < 0 ? NULL : &list->segments.data[best];
      if (s->bytes < bytes) continue;
      if (!b || s->bytes < b->bytes || (s->bytes == b->bytes && s->address < b->address)) best = i;
    }
    if (best >= 0) return best;
  }
  return -1;
}

/* Puts a free segment [address, address + bytes) after `prev` (-1: first), whose successor is `next`. */
static planc_status insert_free(planc_memory_list *list, int64_t address, int64_t bytes, int32_t prev, int32_t next,
                                int32_t *out_slot) {
  int32_t slot;
  planc_segment fresh = {.address = address, .bytes = bytes, .block = PLANC_FREE_BLOCK, .prev = prev, .next = next};
  if (list->spare.len) {
    slot = list->spare.data[--list->spare.len];
    list->segments.data[slot] = fresh;
  } else {
    slot = (int32_t)list->segments.len;
    VEC_PUSH(&list->segments, fresh);
  }
  if (prev >= 0) {
    list->segments.data[prev].next = slot;
  } else {
    list->first = slot;
  }
  if (next >= 0) list->segments.data[next].prev = slot;
  bin_insert(list, slot);
  *out_slot = slot;
  return NULL;
}

planc_status planc_memory_list_take(planc_memory_list *list, int32_t segment, int64_t address, int64_t bytes,
                                    int32_t block, int32_t *out_segment) {
  bytes = planc_align_up(bytes, PLANC_ALIGNMENT);
  planc_segment was = list->segments.data[segment];
  if (was.block != PLANC_FREE_BLOCK || address < was.address || bytes > was.address + was.bytes - address) {
    return planc_error(PLANC_INTERNAL, "memory list: block %d does not fit segment %d", block, segment);
  }
  bin_remove(list, segment);
  planc_segment *taken = &list->segments.data[segment];
  taken->address = address;
  taken->bytes = bytes;
  taken->block = block;
  list->free_bytes -= bytes;
  int64_t before = address - was.address, after = was.bytes - before - bytes;
  int32_t rest;
  if (before) PLANC_TRY(insert_free(list, was.address, before, was.prev, segment, &rest));
  if (after) PLANC_TRY(insert_free(list, address + bytes, after, segment, was.next, &rest));
  *out_segment = segment;
  return NULL;
}

/* Lets `segment` swallow its right neighbour. */
static planc_status swallow_next(planc_memory_list *list, int32_t segment) {
  planc_segment *s = &list->segments.data[segment];
  int32_t gone = s->next;
  const planc_segment *g = &list->segments.data[gone];
  s->bytes += g->bytes;
  s->next = g->next;
  if (g->next >= 0) list->segments.data[g->next].prev = segment;
  VEC_PUSH(&list->spare, gone);
  return NULL;
}

planc_status planc_memory_list_release(planc_memory_list *list, int32_t segment, int32_t *out_segment) {
  planc_segment *s = &list->segments.data[segment];
  if (s->block == PLANC_FREE_BLOCK) return planc_error(PLANC_INTERNAL, "memory list: segment %d is free", segment);
  s->block = PLANC_FREE_BLOCK;
  list->free_bytes += s->bytes;
  if (s->next >= 0 && list->segments.data[s->next].block == PLANC_FREE_BLOCK) {
    bin_remove(list, s->next);
    PLANC_TRY(swallow_next(list, segment));
  }
  int32_t prev = list->segments.data[segment].prev;
  if (prev >= 0 && list->segments.data[prev].block == PLANC_FREE_BLOCK) {
    bin_remove(list, prev);
    PLANC_TRY(swallow_next(list, prev));
    segment = prev;
  }
  bin_insert(list, segment);
  if (out_segment) *out_segment = segment;
  return NULL;
}

planc_status planc_memory_list_add(planc_memory_list *list, int64_t address, int64_t bytes, int32_t *out_segment) {
  list->capacity += bytes;
  list->free_bytes += bytes;
  return insert_free(list, address, bytes, -1, -1, out_segment);
}

planc_status planc_memory_list_drop(planc_memory_list *list, int32_t segment) {
  const planc_segment *s = &list->segments.data[segment];
  if (s->block != PLANC_FREE_BLOCK || s->prev >= 0 || s->next >= 0) {
    return planc_error(PLANC_INTERNAL, "memory list: segment %d is no free region", segment);
  }
  list->capacity -= s->bytes;
  list->free_bytes -= s->bytes;
  bin_remove(list, segment);
  VEC_PUSH(&list->spare, segment);
  return NULL;
}
