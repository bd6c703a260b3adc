/* Sizes and times as people write them: 12G = 12GiB = 12 * 2^30, 12GB = 12 * 10^9; K, M, G, T; "1.5G"; a bare number is
 * bytes. */
#ifndef PLANC_UTIL_SIZE_H
#define PLANC_UTIL_SIZE_H

#include <stdint.h>

#include "planc/status.h"

/* USAGE when `text` is no size or does not fit int64. A fraction is rounded down to a byte. */
planc_status pl_size_parse(const char *text, int64_t *out_bytes);

enum { PL_SIZE_TEXT = 32 };
/* "11.74 GiB"; exact below 1 KiB. Returns `buffer`. */
const char *pl_size_format(int64_t bytes, char buffer[PL_SIZE_TEXT]);
/* "50ms", "1.5s", "200us", "10ns", "0": USAGE when `text` is no time or does not fit int64. Rounds down to a
 * nanosecond. */
planc_status pl_time_parse(const char *text, int64_t *out_ns);
/* "12.345 ms". */
const char *pl_time_format(int64_t ns, char buffer[PL_SIZE_TEXT]);

#endif
