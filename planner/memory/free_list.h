/* The free address ranges of a sweep: disjoint, never adjacent, the last one without end. A treap by address in which
 * every node knows the longest range below it, so that each call takes logarithmic time. */
#ifndef PLANC_MEMORY_FREE_LIST_H
#define PLANC_MEMORY_FREE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"
#include "util/vec.h"

typedef struct pl_range {
  int64_t start, end;
} pl_range;

struct pl_free_range {
  pl_range range;
  int64_t longest; /* of the subtree */
  int32_t left, right;
  uint32_t rank; /* no child's is higher */
};

typedef struct pl_free_list {
  VEC(struct pl_free_range) nodes;
  VEC(int32_t) spare; /* nodes that are not in the tree */
  int32_t root;
  uint32_t seed;
} pl_free_list;

/* Makes everything from address 0 on free, or from another one on; `list` is zeroed or in use. */
planc_status pl_free_list_reset(pl_free_list *list);
planc_status pl_free_list_reset_from(pl_free_list *list, int64_t address);
void pl_free_list_free(pl_free_list *list);

/* The lowest free range that has `bytes` at or above `address`; it may begin below. Without one both of
 * its ends are INT64_MAX, beyond every limit. */
pl_range pl_free_list_first(const pl_free_list *list, int64_t address, int64_t bytes);
/* The highest free range that has `bytes` below `address`; it may end above. Without one *out_found is false. */
pl_range pl_free_list_last(const pl_free_list *list, int64_t address, int64_t bytes, bool *out_found);
/* Takes a range out of the free range that holds all of it; without one *out_taken is false. */
planc_status pl_free_list_take(pl_free_list *list, pl_range range, bool *out_taken);
/* The same, of a range that is free. */
planc_status pl_free_list_take_free(pl_free_list *list, pl_range range);
/* Gives back a range that was taken. */
planc_status pl_free_list_give(pl_free_list *list, pl_range range);

#endif
