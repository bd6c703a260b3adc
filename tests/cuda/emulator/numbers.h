/* Numbers of device memory: f32 and bf16, read as f32 and rounded to nearest even when written. */
#ifndef TESTS_CUDA_EMULATOR_NUMBERS_H
#define TESTS_CUDA_EMULATOR_NUMBERS_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulator {

enum class Number { f32, bf16 };

inline int64_t size_of(Number type) {
  return type == Number::f32 ? 4 : 2;
}

/* Keeps the upper bits of a float's 32, rounded; NaNs stay NaNs. */
inline float round_to(float value, int bits_dropped) {
  if (std::isnan(value)) return value;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t half = (uint32_t{1} << (bits_dropped - 1)) - 1 + ((bits >> bits_dropped) & 1);
  bits = (bits + half) >> bits_dropped << bits_dropped;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

/* What a tensor core makes of an f32 operand. */
inline float to_tf32(float value) {
  return round_to(value, 13);
}

inline float load(Number type, const char *base, int64_t index) {
  float value;
  if (type == Number::f32) {
    memcpy(&value, base + index * 4, 4);
    return value;
  }
  uint16_t upper;
  memcpy(&upper, base + index * 2, 2);
  uint32_t bits = uint32_t{upper} << 16;
  memcpy(&value, &bits, 4);
  return value;
}

inline void store(Number type, char *base, int64_t index, float value) {
  if (type == Number::f32) {
    memcpy(base + index * 4, &value, 4);
    return;
  }
  value = round_to(value, 16);
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint16_t upper = static_cast<uint16_t>((bits >> 16) | (std::isnan(value) ? 1u : 0u));
  memcpy(base + index * 2, &upper, 2);
}

}  // namespace emulator

#endif
