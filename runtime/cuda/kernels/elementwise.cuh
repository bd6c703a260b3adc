/* A kernel for ops that treat every element by itself. An op is a struct with
 *   static constexpr int WIDTH;                          elements at a time where all its pointers are aligned
 *   template <int W> void apply(int64_t i, bool vector)  does elements i .. i + W - 1
 * `apply` reads its elements before it writes them: any of its outputs may lie over an input. */
#ifndef RT_CUDA_ELEMENTWISE_CUH
#define RT_CUDA_ELEMENTWISE_CUH

#include "common.cuh"

namespace planrt {

/* `packs` vectors, then what is left of n elements. */
template <typename Op>
__global__ void __launch_bounds__(BLOCK) elementwise_kernel(Op op, int64_t packs, int64_t n) {
  for (int64_t i = first_thread(); i < packs; i += all_threads()) op.template apply<Op::WIDTH>(i * Op::WIDTH, true);
  for (int64_t i = packs * Op::WIDTH + first_thread(); i < n; i += all_threads()) op.template apply<1>(i, false);
}

/* `vector`: all pointers are aligned. */
template <typename Op>
cudaError_t elementwise(cudaStream_t stream, int64_t n, bool vector, const Op &op) {
  if (n <= 0) return cudaSuccess;
  int64_t packs = vector ? n / Op::WIDTH : 0;
  return RT_LAUNCH(elementwise_kernel<Op>, blocks_for(vector ? packs : n), BLOCK, 0, stream, op, packs, n);
}

}  // namespace planrt

#endif
