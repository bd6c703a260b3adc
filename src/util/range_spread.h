/* What is given to ranges of numbers, each spread over those of its range that are about the least. */
#ifndef PLANC_UTIL_RANGE_SPREAD_H
#define PLANC_UTIL_RANGE_SPREAD_H

#include "util/range_least.h"

typedef struct pl_range_spread {
  const pl_range_least *of;
  int64_t about;  /* so much more than the least still counts */
  int32_t *near;  /* by node of the tree: how many of it are about its least */
  int64_t *given; /* by node: what its own are to have in equal parts */
} pl_range_spread;

/* For n numbers, in memory of `arena`. */
planc_status pl_range_spread_new(pl_arena *arena, int32_t n, pl_range_spread *out);
/* Of a tree that has been built, which is borrowed; nothing is given yet. */
void pl_range_spread_build(pl_range_spread *spread, const pl_range_least *of, int64_t about);
/* To values[first .. end - 1], of which `least` is the place of the least. All together has 62 bits. */
void pl_range_spread_give(pl_range_spread *spread, int32_t first, int32_t end, int32_t least, int64_t amount);
/* Passes on what has been given, down to the numbers; then it is there what each has. */
void pl_range_spread_settle(pl_range_spread *spread);
static inline int64_t pl_range_spread_at(const pl_range_spread *spread, int32_t i) {
  return spread->given[spread->of->n + i];
}

#endif
