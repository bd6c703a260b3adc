/* Medians (median.h). */
#include "util/median.h"

#include <stdlib.h>

#include "util/ascending.h"

int64_t pl_median(int64_t *values, int32_t n) {
  qsort(values, (size_t)n, sizeof *values, pl_ascending);
  int64_t lower = values[(n - 1) / 2], upper = values[n / 2];
  return lower + (int64_t)(((uint64_t)upper - (uint64_t)lower) / 2);
}
