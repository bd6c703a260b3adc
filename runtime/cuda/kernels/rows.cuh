/* Ops on rows of neighbouring elements: a warp takes a row, a thread a short one, a block a long one. Which of them
 * follows from the row's width alone, so that equal rows give equal bits however many there are. A row op is a struct
 * with template <int GROUP, int W> void row(int64_t r, int thread) to be called by a whole group for row r, thread
 * being the caller's place in the group. */
#ifndef RT_CUDA_ROWS_CUH
#define RT_CUDA_ROWS_CUH

#include "merge.cuh"

namespace planrt {

constexpr int64_t THREAD_WIDTH = 32; /* the longest row for a thread: of a warp most lanes would have nothing to do */
constexpr int64_t WARP_WIDTH = 2048; /* the longest row for a warp */

template <int GROUP, int W, typename Op>
__global__ void __launch_bounds__(BLOCK) rows_kernel(Op op, int64_t rows) {
  constexpr int GROUPS = BLOCK / GROUP;
  int thread = static_cast<int>(threadIdx.x) % GROUP;
  int64_t first = static_cast<int64_t>(blockIdx.x) * GROUPS + threadIdx.x / GROUP;
  for (int64_t r = first; r < rows; r += static_cast<int64_t>(gridDim.x) * GROUPS) op.template row<GROUP, W>(r, thread);
}

template <typename Op>
cudaError_t for_rows(cudaStream_t stream, int64_t rows, int64_t width, const Op &op) {
  if (rows <= 0 || width <= 0) return cudaSuccess;
  return with_width(width, [&](auto constant) {
    constexpr int W = decltype(constant)::value;
    int group = width <= THREAD_WIDTH ? 1 : width <= WARP_WIDTH ? WARP : BLOCK;
    auto kernel = group == 1      ? &rows_kernel<1, W, Op>
                  : group == WARP ? &rows_kernel<WARP, W, Op>
                                  : &rows_kernel<BLOCK, W, Op>;
    return RT_LAUNCH(kernel, blocks_for(rows, BLOCK / group), BLOCK, 0, stream, op, rows);
  });
}

/* Gathers a row's terms: `terms(c, to)` gives those of elements c .. c + W - 1. All threads get the result. */
template <typename Gather, int GROUP, int W, typename Terms>
__device__ inline typename Gather::Part gather_row(int64_t width, int thread, const Terms &terms) {
  Gather gather;
  for (int64_t c = static_cast<int64_t>(thread) * W; c < width; c += GROUP * W) {
    float of[Gather::TERMS][W];
    terms(c, of);
    gather.add(of);
  }
  return merged<GROUP>(gather.part());
}

}  // namespace planrt

#endif
