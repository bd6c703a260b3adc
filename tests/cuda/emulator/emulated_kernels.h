/* Kernels on the CPU: this header goes in front of a .cu file (-include) that a C++ compiler then takes for C++. Blocks
 * run one after the other in a shuffled order, threads of a block as fibers that change at barriers and shuffles.
 * Shared memory begins as NaNs and is guarded; a barrier or shuffle that not all threads reach aborts. */
#ifndef TESTS_CUDA_EMULATOR_KERNELS_H
#define TESTS_CUDA_EMULATOR_KERNELS_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>

#include "emulator.h"

#undef __launch_bounds__
#define __launch_bounds__(...)

namespace emulator {

/* Where the running thread stands. */
struct Place {
  uint3 thread, block, block_size, grid_size;
};
extern __thread Place place;

/* Enqueues a grid, every thread of which calls `thread`. */
cudaError_t launch_grid(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> thread);
/* The block's memory for the declaration that `key` stands for. */
void *shared_memory(const void *key, size_t bytes);
void barrier();
/* For all lanes of a warp at once: gives `own` of lane `from`. */
uint64_t exchange(uint64_t own, unsigned from);

template <class T>
T exchanged(T own, unsigned from) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a word");
  uint64_t bits = 0;
  memcpy(&bits, &own, sizeof own);
  bits = exchange(bits, from);
  memcpy(&own, &bits, sizeof own);
  return own;
}

uint64_t clock_ns();
void sleep_ns(unsigned ns);

}  // namespace emulator

#define threadIdx emulator::place.thread
#define blockIdx emulator::place.block
#define blockDim emulator::place.block_size
#define gridDim emulator::place.grid_size

#define RT_LAUNCH(kernel, grid, block, shared, stream, ...) \
  emulator::launch_grid((grid), (block), (shared), (stream), [=] { (kernel)(__VA_ARGS__); })
#define RT_SHARED(type, name, count) \
  static char name##_key;            \
  type *const name = static_cast<type *>(emulator::shared_memory(&name##_key, sizeof(type) * (count)))
#define RT_CLOCK(to) (to) = emulator::clock_ns()

/* --- What the device has and C++ has not -------------------------------------------------------------------------- */

inline void __syncthreads() {
  emulator::barrier();
}
inline void __nanosleep(unsigned ns) {
  emulator::sleep_ns(ns);
}

inline unsigned emulated_lane() {
  return threadIdx.x % 32;
}
template <class T>
T __shfl_sync(unsigned, T value, int from) {
  return emulator::exchanged(value, static_cast<unsigned>(from) % 32);
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned distance) {
  unsigned from = emulated_lane() + distance;
  return emulator::exchanged(value, from < 32 ? from : emulated_lane());
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned distance) {
  return emulator::exchanged(value, emulated_lane() < distance ? emulated_lane() : emulated_lane() - distance);
}

inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(static_cast<uint64_t>(a) * b >> 32);
}
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

#endif
