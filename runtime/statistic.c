/* Median and spread of times (measure.h). */
#include <stdlib.h>

#include "runtime/measure.h"
#include "util/median.h"

planrt_statistic planrt_statistic_of(int64_t *times, int32_t n) {
  if (n == 0) return (planrt_statistic){0};
  planrt_statistic out = {.median_ns = planc_median(times, n)};
  for (int32_t i = 0; i < n; i++) times[i] = llabs(times[i] - out.median_ns);
  out.spread_ns = planc_median(times, n);
  return out;
}
