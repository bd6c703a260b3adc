/* Time that only goes forward. */
#ifndef PLANC_UTIL_CLOCK_H
#define PLANC_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t pl_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
