/* Median and spread of times (measure.h). */
#include <stdlib.h>

#include "runtime/profile/measure.h"
#include "util/median.h"

rt_statistic rt_statistic_of(int64_t *times, int32_t n) {
  if (n == 0) return (rt_statistic){0};
  rt_statistic out = {.median_ns = pl_median(times, n)};
  for (int32_t i = 0; i < n; i++) times[i] = llabs(times[i] - out.median_ns);
  out.spread_ns = pl_median(times, n);
  return out;
}
