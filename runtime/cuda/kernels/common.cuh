/* What the kernels have in common: number types, vector loads, division by launch constants, blocks.
 *
 * Everything is computed in float, without contraction of multiplications and additions (-fmad=false): the kernels wait
 * for memory in any case, and so the same source gives the same bits in each of its instantiations. */
#ifndef RT_CUDA_COMMON_CUH
#define RT_CUDA_COMMON_CUH

#include <cuda_bf16.h>

#include <type_traits>

#include "runtime/cuda/cuda_kernels.h"

namespace planrt {

constexpr int BLOCK = 256;  // threads, of every kernel
constexpr int WARP = 32;

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

using bf16 = __nv_bfloat16;

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(bf16 x) {
  return __bfloat162float(x);
}

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
/* To the nearest, ties to even. */
template <>
__device__ inline bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}

/* Stores, or adds to, an element of an output. */
template <typename T>
__device__ inline void put(T *at, float value, bool accumulate) {
  *at = from_float<T>(accumulate ? to_float(*at) + value : value);
}

/* Calls `launch` with a value of the type that `dtype` names. */
template <typename F>
cudaError_t with_type(rt_cuda_dtype dtype, F launch) {
  return dtype == RT_CUDA_BF16 ? launch(bf16()) : launch(float());
}
/* The same for activations and what goes with them, which is of their type or f32. */
template <typename F>
cudaError_t with_types(rt_cuda_dtype activation, rt_cuda_dtype parameter, F launch) {
  if (activation == RT_CUDA_F32) return launch(float(), float());
  return with_type(parameter, [&](auto tag) { return launch(bf16(), tag); });
}

/* --- Vectors ------------------------------------------------------------------------------------------------------ */

/* W neighbours, loaded and stored in pieces of 16 bytes, or whole where they are fewer. */
template <typename T, int W>
struct alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) Lanes {
  T at[W];
};

constexpr uintptr_t VECTOR_BYTES = 16;

template <typename... Pointers>
bool aligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % VECTOR_BYTES == 0) && ...);
}

/* Elements of a vector that fills 16 bytes of the smallest of the types. */
template <typename... T>
constexpr int vector_width() {
  return ((sizeof(T) == 2) || ...) ? 8 : 4;
}

/* Loads W elements; `vector`: they are aligned. The values do not depend on it. */
template <int W, typename T>
__device__ inline void load(const T *from, bool vector, float (&to)[W]) {
  if (vector) {
    Lanes<T, W> lanes = *reinterpret_cast<const Lanes<T, W> *>(from);
    for (int k = 0; k < W; k++) to[k] = to_float(lanes.at[k]);
  } else {
    for (int k = 0; k < W; k++) to[k] = to_float(from[k]);
  }
}

template <int W, typename T>
__device__ inline void store(T *to, bool vector, const float (&from)[W]) {
  if (vector) {
    Lanes<T, W> lanes;
    for (int k = 0; k < W; k++) lanes.at[k] = from_float<T>(from[k]);
    *reinterpret_cast<Lanes<T, W> *>(to) = lanes;
  } else {
    for (int k = 0; k < W; k++) to[k] = from_float<T>(from[k]);
  }
}

/* --- Division ----------------------------------------------------------------------------------------------------- */

__device__ inline uint32_t high_product(uint32_t a, uint32_t b) {
  return __umulhi(a, b);
}
__device__ inline uint64_t high_product(uint64_t a, uint64_t b) {
  return __umul64hi(a, b);
}

/* Division by a number that a launch does not change, as a multiplication (Granlund and Montgomery, Division by
 * Invariant Integers using Multiplication, 1994, Fig. 4.1). Exact for all numerators from 0 to the index type's
 * largest. */
template <typename Index>
struct DivisorOf {
  using Word = std::make_unsigned_t<Index>;
  static constexpr int BITS = 8 * sizeof(Word);
  Word divisor, multiplier;
  int shift;

  explicit DivisorOf(int64_t by) : divisor(by > 0 ? static_cast<Word>(by) : 1), multiplier(1), shift(0) {
    while (shift < BITS - 1 && (Word{1} << shift) < divisor) shift++;
    /* floor(2^BITS (2^shift - divisor) / divisor) + 1, bit by bit. */
    Word rest = (Word{1} << shift) - divisor, quotient = 0;
    for (int bit = 0; bit < BITS; bit++) {
      bool carries = rest >> (BITS - 1) != 0;
      rest <<= 1;
      bool fits = carries || rest >= divisor;
      if (fits) rest -= divisor;
      quotient = quotient << 1 | (fits ? 1 : 0);
    }
    multiplier += quotient;
  }

  __device__ Index quotient(Index of) const {
    Word n = static_cast<Word>(of);
    return static_cast<Index>((high_product(n, multiplier) + n) >> shift);
  }
  /* Gives the quotient, and leaves the remainder. */
  __device__ Index split(Index &n) const {
    Index q = quotient(n);
    n -= q * static_cast<Index>(divisor);
    return q;
  }
};

using Divisor = DivisorOf<int64_t>;
using SmallDivisor = DivisorOf<int32_t>;

/* --- Blocks ------------------------------------------------------------------------------------------------------- */

/* What bounds a launch: as it is on a device, or so small that tests of small shapes go beyond it. */
#ifdef RT_CUDA_SMALL_LIMITS
constexpr int64_t limit(int64_t, int64_t in_tests) {
  return in_tests;
}
#else
constexpr int64_t limit(int64_t on_device, int64_t) {
  return on_device;
}
#endif

constexpr int64_t MOST_BLOCKS = limit(1 << 16, 3);
/* Of kernels whose every block has work to do beside its elements'. */
constexpr int64_t FEWER_BLOCKS = limit(2048, 3);

inline int64_t divide_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* Enough blocks for one thread per piece of work; beyond the limit threads take several. */
inline unsigned blocks_for(int64_t work, int64_t per_block = BLOCK, int64_t most = MOST_BLOCKS) {
  int64_t blocks = divide_up(work, per_block);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

__device__ inline int64_t first_thread() {
  return static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
}
__device__ inline int64_t all_threads() {
  return static_cast<int64_t>(gridDim.x) * BLOCK;
}

__device__ inline rt_cuda_step step_of(const rt_cuda_step_source &source) {
  return source.at ? *source.at : source.value;
}

}  // namespace planrt

#endif
