/* Numbers in ascending order. */
#ifndef PLANC_UTIL_ASCENDING_H
#define PLANC_UTIL_ASCENDING_H

#include <stdint.h>

/* For qsort and bsearch over int64_t. */
static inline int pl_ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

#endif
