/* Rank-4 tensors in either layout, an output element, or vector of channels where they lie side by side, per thread. An
 * op is a struct with
 *   template <int W> void apply(int64_t n, int64_t c, int64_t y, int64_t x, bool vector)
 * which makes elements (n, c .. c + W - 1, y, x). */
#ifndef PLANRT_CUDA_IMAGES_CUH
#define PLANRT_CUDA_IMAGES_CUH

#include "common.cuh"

namespace planrt {

/* Element (n, c, y, x) of a tensor is number n * sn + c * sc + y * sy + x * sx. */
struct Strides {
  int64_t c, h, w, sn, sc, sy, sx;
  Strides(const planrt_cuda_image &of, bool channels_last)
      : c(of.c),
        h(of.h),
        w(of.w),
        sn(of.c * of.h * of.w),
        sc(channels_last ? 1 : of.h * of.w),
        sy(channels_last ? of.w * of.c : of.w),
        sx(channels_last ? of.c : 1) {}
  __device__ int64_t at(int64_t n, int64_t ch, int64_t y, int64_t x) const {
    return n * sn + ch * sc + y * sy + x * sx;
  }
};

/* Takes the number of an element, or of W channels' elements, apart. */
struct Coordinates {
  bool channels_last;
  Divisor by_c, by_h, by_w;
};

template <int W, typename Op>
__global__ void __launch_bounds__(BLOCK) images_kernel(Op op, Coordinates of, int64_t pieces, bool vector) {
  for (int64_t i = first_thread(); i < pieces; i += all_threads()) {
    int64_t rest = i, n, c, y, x;
    if (of.channels_last) {
      c = rest, rest = of.by_c.split(c);
      x = rest, rest = of.by_w.split(x);
      y = rest, n = of.by_h.split(y);
      c *= W;
    } else {
      x = rest, rest = of.by_w.split(x);
      y = rest, rest = of.by_h.split(y);
      c = rest, n = of.by_c.split(c);
    }
    op.template apply<W>(n, c, y, x, vector);
  }
}

/* For all elements of an image; `vector`: the op's pointers are aligned. */
template <int W, typename Op>
cudaError_t for_image(cudaStream_t stream, const planrt_cuda_image &of, bool channels_last, bool vector, const Op &op) {
  int64_t pieces = of.n * of.c * of.h * of.w;
  if (pieces <= 0) return cudaSuccess;
  bool wide = channels_last && vector && of.c % W == 0;
  if (wide) pieces /= W;
  Coordinates coordinates{channels_last, Divisor(wide ? of.c / W : of.c), Divisor(of.h), Divisor(of.w)};
  auto kernel = wide ? &images_kernel<W, Op> : &images_kernel<1, Op>;
  return PLANRT_LAUNCH(kernel, blocks_for(pieces), BLOCK, 0, stream, op, coordinates, pieces, wide);
}

}  // namespace planrt

#endif
