/* Segments in address order (memory_list.h), with a treap and bins of those that are free. */
#include "planner/memory/memory_list.h"

#include <stdbool.h>

#include "planc/schedule.h"
#include "planner/memory/treap_rank.h"
#include "util/math.h"

static void free_insert(pl_memory_list *list, int32_t segment);

planc_status pl_memory_list_init(pl_memory_list *list, int64_t capacity) {
  *list = (pl_memory_list){.by_size = -1, .seed = PL_RANK_SEED};
  for (int32_t i = 0; i < PL_MEMORY_BINS; i++) list->bins[i] = -1;
  list->capacity = list->free_bytes = capacity / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  pl_segment whole = {.bytes = list->capacity, .owner = PL_NO_OWNER, .prev = -1, .next = -1};
  VEC_PUSH(&list->segments, whole);
  free_insert(list, 0);
  return NULL;
}

void pl_memory_list_free(pl_memory_list *list) {
  VEC_FREE(&list->segments);
  VEC_FREE(&list->spare);
}

int32_t pl_memory_list_best_fit(const pl_memory_list *list, int64_t bytes) {
  int32_t best = -1;
  bytes = pl_align_up(bytes, PLANC_ALIGNMENT);
  for (int32_t n = list->by_size; n >= 0;) {
    const pl_segment *s = &list->segments.data[n];
    if (s->bytes >= bytes) best = n;
    n = s->bytes >= bytes ? s->smaller : s->larger;
  }
  return best;
}

/* --- Bins --------------------------------------------------------------------------------------------------------- */

/* Four bins to a power of two: a bin's sizes differ by less than a quarter. */
static int32_t bin_of(int64_t bytes) {
  uint64_t units = (uint64_t)bytes / PLANC_ALIGNMENT;
  if (units < 4) return (int32_t)units;
  int32_t log = 63 - __builtin_clzll(units);
  return 4 * (log - 1) + (int32_t)(units >> (log - 2) & 3);
}

static void bin_insert(pl_memory_list *list, int32_t segment) {
  pl_segment *s = &list->segments.data[segment];
  int32_t *head = &list->bins[bin_of(s->bytes)];
  s->bin_prev = -1;
  s->bin_next = *head;
  if (*head >= 0) list->segments.data[*head].bin_prev = segment;
  *head = segment;
}

static void bin_remove(pl_memory_list *list, int32_t segment) {
  const pl_segment *s = &list->segments.data[segment];
  if (s->bin_next >= 0) list->segments.data[s->bin_next].bin_prev = s->bin_prev;
  if (s->bin_prev >= 0) {
    list->segments.data[s->bin_prev].bin_next = s->bin_next;
  } else {
    list->bins[bin_of(s->bytes)] = s->bin_next;
  }
}

/* --- The treap by size -------------------------------------------------------------------------------------------- */

static bool comes_before(const pl_segment *s, int64_t bytes, int64_t address) {
  return s->bytes != bytes ? s->bytes < bytes : s->address < address;
}

static int32_t *child_towards(pl_segment *s, const pl_segment *key) {
  return comes_before(s, key->bytes, key->address) ? &s->larger : &s->smaller;
}

static void tree_insert(pl_memory_list *list, int32_t segment) {
  pl_segment *segments = list->segments.data, *key = &segments[segment];
  int32_t *at = &list->by_size;
  key->rank = pl_next_rank(&list->seed);
  while (*at >= 0 && segments[*at].rank >= key->rank) at = child_towards(&segments[*at], key);
  int32_t n = *at, *below = &key->smaller, *above = &key->larger;
  *at = segment;
  while (n >= 0) {
    bool is_below = comes_before(&segments[n], key->bytes, key->address);
    int32_t **side = is_below ? &below : &above;
    **side = n;
    *side = is_below ? &segments[n].larger : &segments[n].smaller;
    n = **side;
  }
  *below = *above = -1;
}

static void tree_remove(pl_memory_list *list, int32_t segment) {
  pl_segment *segments = list->segments.data;
  int32_t *at = &list->by_size;
  while (*at != segment) at = child_towards(&segments[*at], &segments[segment]);
  int32_t below = segments[segment].smaller, above = segments[segment].larger;
  while (below >= 0 && above >= 0) {
    bool takes_below = segments[below].rank >= segments[above].rank;
    *at = takes_below ? below : above;
    at = takes_below ? &segments[below].larger : &segments[above].smaller;
    *(takes_below ? &below : &above) = *at;
  }
  *at = below >= 0 ? below : above;
}

/* --- Free segments ------------------------------------------------------------------------------------------------ */

static void free_insert(pl_memory_list *list, int32_t segment) {
  bin_insert(list, segment);
  tree_insert(list, segment);
}

static void free_remove(pl_memory_list *list, int32_t segment);
static planc_status insert_free(pl_memory_list *list, int64_t address, int64_t bytes, int32_t prev, int32_t next,
                                int32_t *out_segment);

planc_status pl_memory_list_take(pl_memory_list *list, int32_t segment, int64_t address, int64_t bytes, int32_t owner,
                                 int32_t *out_segment) {
  bytes = pl_align_up(bytes, PLANC_ALIGNMENT);
  pl_segment was = list->segments.data[segment];
  if (was.owner != PL_NO_OWNER || address < was.address || bytes > was.address + was.bytes - address) {
    return planc_error(PLANC_INTERNAL, "memory list: owner %d does not fit segment %d", owner, segment);
  }
  free_remove(list, segment);
  pl_segment *taken = &list->segments.data[segment];
  taken->address = address;
  taken->bytes = bytes;
  taken->owner = owner;
  list->free_bytes -= bytes;
  int64_t before = address - was.address, after = was.bytes - before - bytes;
  int32_t rest;
  if (before) PLANC_TRY(insert_free(list, was.address, before, was.prev, segment, &rest));
  if (after) PLANC_TRY(insert_free(list, address + bytes, after, segment, was.next, &rest));
  *out_segment = segment;
  return NULL;
}

static void free_remove(pl_memory_list *list, int32_t segment) {
  bin_remove(list, segment);
  tree_remove(list, segment);
}

/* Puts a free segment [address, address + bytes) after `prev` (-1: first), whose successor is `next`. */
static planc_status insert_free(pl_memory_list *list, int64_t address, int64_t bytes, int32_t prev, int32_t next,
                                int32_t *out_segment) {
  int32_t segment;
  pl_segment fresh = {.address = address, .bytes = bytes, .owner = PL_NO_OWNER, .prev = prev, .next = next};
  if (list->spare.len) {
    segment = list->spare.data[--list->spare.len];
    list->segments.data[segment] = fresh;
  } else {
    segment = (int32_t)list->segments.len;
    VEC_PUSH(&list->segments, fresh);
  }
  if (prev >= 0) {
    list->segments.data[prev].next = segment;
  } else {
    list->first = segment;
  }
  if (next >= 0) list->segments.data[next].prev = segment;
  free_insert(list, segment);
  *out_segment = segment;
  return NULL;
}

/* Lets `segment` swallow its right neighbour. */
static planc_status swallow_next(pl_memory_list *list, int32_t segment) {
  pl_segment *s = &list->segments.data[segment];
  int32_t gone = s->next;
  const pl_segment *g = &list->segments.data[gone];
  s->bytes += g->bytes;
  s->next = g->next;
  if (g->next >= 0) list->segments.data[g->next].prev = segment;
  VEC_PUSH(&list->spare, gone);
  return NULL;
}

planc_status pl_memory_list_release(pl_memory_list *list, int32_t segment, int32_t *out_segment) {
  pl_segment *s = &list->segments.data[segment];
  if (s->owner == PL_NO_OWNER) return planc_error(PLANC_INTERNAL, "memory list: segment %d is free", segment);
  s->owner = PL_NO_OWNER;
  list->free_bytes += s->bytes;
  if (s->next >= 0 && list->segments.data[s->next].owner == PL_NO_OWNER) {
    free_remove(list, s->next);
    PLANC_TRY(swallow_next(list, segment));
  }
  int32_t prev = list->segments.data[segment].prev;
  if (prev >= 0 && list->segments.data[prev].owner == PL_NO_OWNER) {
    free_remove(list, prev);
    PLANC_TRY(swallow_next(list, prev));
    segment = prev;
  }
  free_insert(list, segment);
  if (out_segment) *out_segment = segment;
  return NULL;
}

planc_status pl_memory_list_add(pl_memory_list *list, int64_t address, int64_t bytes, int32_t *out_segment) {
  list->capacity += bytes;
  list->free_bytes += bytes;
  return insert_free(list, address, bytes, -1, -1, out_segment);
}

planc_status pl_memory_list_drop(pl_memory_list *list, int32_t segment) {
  const pl_segment *s = &list->segments.data[segment];
  if (s->owner != PL_NO_OWNER || s->prev >= 0 || s->next >= 0) {
    return planc_error(PLANC_INTERNAL, "memory list: segment %d is no free region", segment);
  }
  list->capacity -= s->bytes;
  list->free_bytes -= s->bytes;
  free_remove(list, segment);
  VEC_PUSH(&list->spare, segment);
  return NULL;
}
