/* The least of a range of numbers: a tree over them that is built once in linear time. */
#ifndef PLANC_UTIL_RANGE_LEAST_H
#define PLANC_UTIL_RANGE_LEAST_H

#include "util/arena.h"

typedef struct pl_range_least {
  int32_t n;
  const int64_t *values;
  int32_t *least; /* node k is of its children 2k and 2k + 1; leaf n + i is i */
} pl_range_least;

/* For n numbers, in memory of `arena`. */
planc_status pl_range_least_new(pl_arena *arena, int32_t n, pl_range_least *out);
/* Borrows n numbers, which do not change from then on. */
void pl_range_least_build(pl_range_least *tree, const int64_t *values);
/* The place of the least of values[first .. end - 1], of several any, always the same; first < end. */
int32_t pl_range_least_of(const pl_range_least *tree, int32_t first, int32_t end);

#endif
