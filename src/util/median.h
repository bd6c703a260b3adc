/* Medians of measurements. */
#ifndef PLANC_UTIL_MEDIAN_H
#define PLANC_UTIL_MEDIAN_H

#include <stdint.h>

/* Sorts the values, of which there is at least one; of an even number the middle of the middle two,
 * rounded down. */
int64_t pl_median(int64_t *values, int32_t n);

#endif
