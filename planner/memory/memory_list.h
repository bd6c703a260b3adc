/* The device memory as a list of segments in address order (moDNN, IV-B1): each is free or has one owner. Policies
 * that decide by address plan on it and state the addresses it gives. Sizes are rounded up to PLANC_ALIGNMENT. No two
 * free segments touch. Free segments are also in a treap by size and then address, in which the best fit takes
 * logarithmic time, and in bins by size, in which those of a bin stand with the newest first. */
#ifndef PLANC_MEMORY_MEMORY_LIST_H
#define PLANC_MEMORY_MEMORY_LIST_H

#include <stdint.h>

#include "util/vec.h"

enum { PL_NO_OWNER = -1, PL_MEMORY_BINS = 256 };

typedef struct pl_segment {
  int64_t address, bytes;
  int32_t owner;              /* PL_NO_OWNER: it is free; else the caller's number */
  int32_t prev, next;         /* in address order, -1 at the ends */
  int32_t bin_prev, bin_next; /* free segments of one bin */
  int32_t smaller, larger;    /* children in the treap, -1 = none; no child's rank is higher */
  uint32_t rank;
} pl_segment;

typedef struct pl_memory_list {
  VEC(pl_segment) segments; /* some of them spare */
  VEC(int32_t) spare;
  int32_t first; /* the segment at address 0 */
  int32_t bins[PL_MEMORY_BINS];
  int32_t by_size; /* root of the treap, -1 = nothing is free */
  uint32_t seed;
  int64_t capacity, free_bytes;
} pl_memory_list;

/* `capacity` is rounded down to PLANC_ALIGNMENT. */
planc_status pl_memory_list_init(pl_memory_list *list, int64_t capacity);
void pl_memory_list_free(pl_memory_list *list);

/* The smallest free segment of at least `bytes` (ties: lowest address), or -1. */
int32_t pl_memory_list_best_fit(const pl_memory_list *list, int64_t bytes);
/* Gives [address, address + bytes), which must lie in free segment `segment`, to `owner`; *out_segment holds it. */
planc_status pl_memory_list_take(pl_memory_list *list, int32_t segment, int64_t address, int64_t bytes, int32_t owner,
                                 int32_t *out_segment);
/* Frees an occupied segment and merges it with its free neighbours; *out_segment (may be NULL) is the result. */
planc_status pl_memory_list_release(pl_memory_list *list, int32_t segment, int32_t *out_segment);

/* A list may also consist of regions, which do not merge: such a one is made empty, of capacity 0. Adds a free region;
 * *out_segment holds it, and later what begins where it begins. */
planc_status pl_memory_list_add(pl_memory_list *list, int64_t address, int64_t bytes, int32_t *out_segment);
/* Takes out a region all of which is free. */
planc_status pl_memory_list_drop(pl_memory_list *list, int32_t segment);

#endif
