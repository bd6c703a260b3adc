/* The free address ranges of a sweep: disjoint, never adjacent, the last one without end. A treap by address in which
 * every node knows the longest gap below it, so that each call takes logarithmic time. */
#ifndef PLANC_MEMORY_FREE_LIST_H
#define PLANC_MEMORY_FREE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"
#include "util/vec.h"

typedef struct planc_range {
  int64_t start, end;
} planc_range;

struct planc_gap_node {
  planc_range gap;
  int64_t longest; /* of the subtree */
  int32_t left, right;
  uint32_t rank; /* no child's is higher */
};

typedef struct planc_free_list {
  VEC(struct planc_gap_node) nodes;
  VEC(int32_t) spare; /* nodes that are not in the tree */
  int32_t root;
  uint32_t seed;
} planc_free_list;

/* Makes everything from address 0 on free; `list` is zeroed or in use. */
planc_status planc_free_list_reset(planc_free_list *list);
void planc_free_list_free(planc_free_list *list);

/* The lowest gap that has `bytes` at or above `address`; it may begin below. There always is one. */
planc_range planc_free_list_first(const planc_free_list *list, int64_t address, int64_t bytes);
/* The highest gap that has `bytes` below `address`; it may end above. Without one *out_found is false. */
planc_range planc_free_list_last(const planc_free_list *list, int64_t address, int64_t bytes, bool *out_found);
/* Takes a range out of the gap that holds all of it; without such a gap *out_taken is false. */
planc_status planc_free_list_take(planc_free_list *list, planc_range range, bool *out_taken);
/* Gives back a range that was taken. */
planc_status planc_free_list_give(planc_free_list *list, planc_range range);

#endif
