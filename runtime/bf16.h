/* bf16 numbers, the upper halves of f32's, and operands of either type read and written as f32. */
#ifndef PLANRT_BF16_H
#define PLANRT_BF16_H

#include <stdint.h>
#include <string.h>

#include "planc/graph.h"

static inline float rt_from_bf16(uint16_t number) {
  uint32_t bits = (uint32_t)number << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* To the nearest, of two equally near the even one; a NaN stays one. */
static inline uint16_t rt_to_bf16(float value) {
  enum { QUIET = 0x40, HALF = 0x7fff };
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t rounded = bits + HALF + (bits >> 16 & 1);
  return (uint16_t)(value != value ? bits >> 16 | QUIET : rounded >> 16);
}

/* True for the two types that the functions below take. */
static inline bool rt_is_real(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_f32 || dtype == PLANC_DTYPE_bf16;
}

static inline float rt_real_at(planc_dtype dtype, const void *data, int64_t index) {
  if (dtype == PLANC_DTYPE_bf16) return rt_from_bf16(((const uint16_t *)data)[index]);
  return ((const float *)data)[index];
}

static inline void rt_real_put(planc_dtype dtype, void *data, int64_t index, float value) {
  if (dtype == PLANC_DTYPE_bf16)
    ((uint16_t *)data)[index] = rt_to_bf16(value);
  else
    ((float *)data)[index] = value;
}

#endif
