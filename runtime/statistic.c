/* Median and spread of times (measure.h). */
#include <stdlib.h>

#include "runtime/measure.h"

static int compare_ns(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t median_of(int64_t *times, int32_t n) {
  qsort(times, (size_t)n, sizeof *times, compare_ns);
  return n % 2 ? times[n / 2] : times[n / 2 - 1] + (times[n / 2] - times[n / 2 - 1]) / 2;
}

planrt_statistic planrt_statistic_of(int64_t *times, int32_t n) {
  if (n == 0) return (planrt_statistic){0};
  planrt_statistic out = {.median_ns = median_of(times, n)};
  for (int32_t i = 0; i < n; i++) times[i] = llabs(times[i] - out.median_ns);
  out.spread_ns = median_of(times, n);
  return out;
}
