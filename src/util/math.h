/* Checked int64 arithmetic: true on overflow, as the compiler's builtins. */
#ifndef PLANC_UTIL_MATH_H
#define PLANC_UTIL_MATH_H

#include <stdbool.h>
#include <stdint.h>

/* One in parts per million; a second in nanoseconds. */
enum { PL_PPM = 1000000, PL_NS = 1000000000 };

/* JSON readers that use doubles keep integers up to this one exactly. */
#define PL_EXACT_MAX (INT64_C(1) << 53)

static inline bool pl_add_overflow(int64_t a, int64_t b, int64_t *out) {
  return __builtin_add_overflow(a, b, out);
}
static inline bool pl_mul_overflow(int64_t a, int64_t b, int64_t *out) {
  return __builtin_mul_overflow(a, b, out);
}

/* Products of two int64_t. */
__extension__ typedef __int128 pl_signed_wide;
__extension__ typedef unsigned __int128 pl_wide;

/* floor(a * b / c) and ceil(a * b / c) without intermediate overflow, saturating at INT64_MAX; a, b >= 0, c > 0. Most
 * products have 64 bits, and dividing these takes a fifth of what dividing 128 bits does. */
static inline int64_t pl_muldiv_floor(int64_t a, int64_t b, int64_t c) {
  uint64_t product, by = (uint64_t)c;
  bool is_wide = __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &product);
  pl_wide quotient = is_wide ? (pl_wide)a * (pl_wide)b / by : product / by;
  return quotient > (pl_wide)INT64_MAX ? INT64_MAX : (int64_t)quotient;
}
static inline int64_t pl_muldiv_ceil(int64_t a, int64_t b, int64_t c) {
  uint64_t product, by = (uint64_t)c;
  bool is_wide = __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &product);
  pl_wide quotient = is_wide ? ((pl_wide)a * (pl_wide)b + by - 1) / by : product / by + (product % by != 0);
  return quotient > (pl_wide)INT64_MAX ? INT64_MAX : (int64_t)quotient;
}

/* Saturating sum of two non-negative numbers. */
static inline int64_t pl_add_saturate(int64_t a, int64_t b) {
  int64_t sum;
  return pl_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Saturating product of two non-negative numbers. */
static inline int64_t pl_mul_saturate(int64_t a, int64_t b) {
  int64_t product;
  return pl_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t pl_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t pl_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* least <= most. */
static inline int64_t pl_clamp(int64_t value, int64_t least, int64_t most) {
  return pl_max(least, pl_min(value, most));
}

static inline int64_t pl_align_up(int64_t value, int64_t alignment) {
  return value > INT64_MAX - alignment ? INT64_MAX / alignment * alignment
                                       : (value + alignment - 1) / alignment * alignment;
}

#endif
