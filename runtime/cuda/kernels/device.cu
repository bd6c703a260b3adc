/* Kernels beside ops: digests, stand-ins for ops, delays and the step. */
#include "merge.cuh"
#include "runtime/random.h"

namespace planrt {
namespace {

constexpr int WORD = 8;

/* Eight bytes, the first one lowest; past the end there are zeros. */
__device__ inline uint64_t word_at(const unsigned char *data, int64_t bytes, int64_t index) {
  int64_t at = index * WORD;
  uint64_t word = 0;
  for (int64_t k = 0; k < WORD && at + k < bytes; k++) word |= static_cast<uint64_t>(data[at + k]) << (8 * k);
  return word;
}

struct alignas(2 * WORD) Words {
  uint64_t first, second;
};

struct Sum {
  uint64_t of;
  __device__ void merge(const Sum &other) { of += other.of; }
};

__device__ inline uint64_t mixed(uint64_t key, int64_t place, uint64_t word) {
  return rt_mix((key + static_cast<uint64_t>(place) * UINT64_C(0x9e3779b97f4a7c15)) ^ word);
}

/* Sums of words, each mixed with its place: they commute, so the order of blocks does not matter. `pairs` of them are
 * loaded together. */
__global__ void __launch_bounds__(BLOCK)
    digest_kernel(uint64_t seed, const unsigned char *data, int64_t bytes, int64_t pairs, unsigned long long *sum) {
  uint64_t key = rt_mix(seed), mine = first_thread() == 0 ? rt_random(key, static_cast<uint64_t>(bytes)) : 0;
  const Words *of = reinterpret_cast<const Words *>(data);
  for (int64_t i = first_thread(); i < pairs; i += all_threads()) {
    Words words = of[i];
    mine += mixed(key, 2 * i, words.first) + mixed(key, 2 * i + 1, words.second);
  }
  int64_t words = bytes / WORD + (bytes % WORD != 0);
  for (int64_t i = 2 * pairs + first_thread(); i < words; i += all_threads())
    mine += mixed(key, i, word_at(data, bytes, i));
  Sum all = merged<BLOCK>(Sum{mine});
  if (threadIdx.x == 0) atomicAdd(sum, static_cast<unsigned long long>(all.of));
}

/* Pseudo-random bytes of a key that is in device memory. */
__global__ void __launch_bounds__(BLOCK)
    draw_kernel(const uint64_t *key, uint64_t salt, unsigned char *out, int64_t bytes, bool vector) {
  uint64_t mixed = rt_random(*key, salt);
  int64_t words = bytes / WORD + (bytes % WORD != 0);
  for (int64_t i = first_thread(); i < words; i += all_threads()) {
    uint64_t word = rt_random(mixed, static_cast<uint64_t>(i));
    int64_t at = i * WORD;
    if (vector && at + WORD <= bytes) {
      *reinterpret_cast<uint64_t *>(out + at) = word;
    } else {
      for (int64_t k = 0; k < WORD && at + k < bytes; k++) out[at + k] = static_cast<unsigned char>(word >> (8 * k));
    }
  }
}

__global__ void set_word_kernel(uint64_t *at, uint64_t value) {
  *at = value;
}

__global__ void set_step_kernel(rt_cuda_step *at, rt_cuda_step value) {
  *at = value;
}

__global__ void delay_kernel(int64_t ns) {
  uint64_t start, now;
  RT_CLOCK(start);
  do {
    __nanosleep(500);
    RT_CLOCK(now);
  } while (now - start < static_cast<uint64_t>(ns));
}

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_digest(cudaStream_t stream, uint64_t seed, const void *data, int64_t bytes, uint64_t *sum) {
  const unsigned char *from = static_cast<const unsigned char *>(data);
  int64_t pairs = aligned(data) ? bytes / (2 * WORD) : 0;
  unsigned blocks = blocks_for(pairs > 0 ? pairs : bytes / WORD, BLOCK, FEWER_BLOCKS);
  return RT_LAUNCH(digest_kernel, blocks, BLOCK, 0, stream, seed, from, bytes, pairs,
                   reinterpret_cast<unsigned long long *>(sum));
}

cudaError_t rt_cuda_draw(cudaStream_t stream, const uint64_t *key, uint64_t salt, void *out, int64_t bytes) {
  if (bytes <= 0) return cudaSuccess;
  unsigned char *to = static_cast<unsigned char *>(out);
  return RT_LAUNCH(draw_kernel, blocks_for(bytes / WORD), BLOCK, 0, stream, key, salt, to, bytes, aligned(out));
}

cudaError_t rt_cuda_set_word(cudaStream_t stream, uint64_t *at, uint64_t value) {
  return RT_LAUNCH(set_word_kernel, 1, 1, 0, stream, at, value);
}

cudaError_t rt_cuda_set_step(cudaStream_t stream, rt_cuda_step *at, const rt_cuda_step *value) {
  rt_cuda_step copy = *value;
  return RT_LAUNCH(set_step_kernel, 1, 1, 0, stream, at, copy);
}

cudaError_t rt_cuda_delay(cudaStream_t stream, int64_t ns) {
  if (ns <= 0) return cudaSuccess;
  return RT_LAUNCH(delay_kernel, 1, 1, 0, stream, ns);
}
