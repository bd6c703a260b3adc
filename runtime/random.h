/* Counter-based random numbers: the value at a counter depends on nothing but key and counter. */
#ifndef PLANRT_RANDOM_H
#define PLANRT_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__
#define RT_ON_DEVICE_TOO __host__ __device__
#else
#define RT_ON_DEVICE_TOO
#endif

/* The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): a bijection in which every input bit reaches all others.
 */
static RT_ON_DEVICE_TOO inline uint64_t rt_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static RT_ON_DEVICE_TOO inline uint64_t rt_random(uint64_t key, uint64_t counter) {
  return rt_mix(rt_mix(key) + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/* Uniform in [0, 1), a multiple of 2^-24: exact in a float. */
static RT_ON_DEVICE_TOO inline float rt_uniform(uint64_t key, uint64_t counter) {
  return (float)(rt_random(key, counter) >> 40) * 0x1p-24F;
}

/* A key of `key` and the characters of `text`. */
static RT_ON_DEVICE_TOO inline uint64_t rt_key(uint64_t key, const char *text) {
  for (; *text; text++) key = rt_mix(key + (unsigned char)*text + UINT64_C(0x9e3779b97f4a7c15));
  return key;
}

#endif
