/* Rank-4 tensors in either layout, an output element, or vector of channels where they lie side by side, per thread. An
 * op is a struct with
 *   template <int W> void apply(Index n, Index c, Index y, Index x, bool vector)
 * which makes elements (n, c .. c + W - 1, y, x). Index is int32_t where elements are few enough, or else int64_t,
 * which takes several times the instructions, and more of them than the memory leaves time for. */
#ifndef RT_CUDA_IMAGES_CUH
#define RT_CUDA_IMAGES_CUH

#include "common.cuh"

namespace planrt {

/* --- Indices ------------------------------------------------------------------------------------------------------ */

/* What int32_t can number: elements of tensors below COUNTABLE, in windows and at distances of up to SMALL. Between the
 * two and the type's largest there is room for a coordinate outside an image and for a grid's step past the end. */
constexpr int64_t COUNTABLE = (int64_t{1} << 31) - (int64_t{1} << 26), SMALL = int64_t{1} << 24;
constexpr int64_t FEW_ELEMENTS = limit(COUNTABLE, 1000);

inline int64_t elements_of(const rt_cuda_image &image) {
  return image.n * image.c * image.h * image.w;
}

inline bool few_elements(const rt_cuda_image &in, const rt_cuda_image &out) {
  return elements_of(in) < FEW_ELEMENTS && elements_of(out) < FEW_ELEMENTS;
}

/* Calls `launch` with a value of the elements' type, and one of the indices': int32_t if `few`. */
template <typename F>
cudaError_t with_numbers(rt_cuda_dtype dtype, bool few, F launch) {
  return with_type(dtype, [&](auto tag) { return few ? launch(tag, int32_t()) : launch(tag, int64_t()); });
}

/* Element (n, c, y, x) of a tensor is number n * sn + c * sc + y * sy + x * sx. */
template <typename Index>
struct Strides {
  Index h, w, sn, sc, sy, sx;
  Strides(const rt_cuda_image &of, bool channels_last)
      : h(static_cast<Index>(of.h)),
        w(static_cast<Index>(of.w)),
        sn(static_cast<Index>(of.c * of.h * of.w)),
        sc(static_cast<Index>(channels_last ? 1 : of.h * of.w)),
        sy(static_cast<Index>(channels_last ? of.w * of.c : of.w)),
        sx(static_cast<Index>(channels_last ? of.c : 1)) {}
  __device__ Index at(Index n, Index ch, Index y, Index x) const { return n * sn + ch * sc + y * sy + x * sx; }
};

/* --- All elements ------------------------------------------------------------------------------------------------- */

/* Takes the number of an element, or of W channels' elements, apart. */
template <typename Index>
struct Coordinates {
  bool channels_last;
  DivisorOf<Index> by_c, by_h, by_w;
};

template <int W, typename Index, typename Op>
__global__ void __launch_bounds__(BLOCK) images_kernel(Op op, Coordinates<Index> of, Index pieces, bool vector) {
  Index step = static_cast<Index>(all_threads());
  for (Index i = static_cast<Index>(first_thread()); i < pieces; i += step) {
    Index rest = i, n, c, y, x;
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
template <int W, typename Index, typename Op>
cudaError_t for_image(cudaStream_t stream, const rt_cuda_image &of, bool channels_last, bool vector, const Op &op) {
  using By = DivisorOf<Index>;
  int64_t pieces = elements_of(of);
  if (pieces <= 0) return cudaSuccess;
  bool wide = channels_last && vector && of.c % W == 0;
  if (wide) pieces /= W;
  Coordinates<Index> coordinates{channels_last, By(wide ? of.c / W : of.c), By(of.h), By(of.w)};
  auto kernel = wide ? &images_kernel<W, Index, Op> : &images_kernel<1, Index, Op>;
  return RT_LAUNCH(kernel, blocks_for(pieces), BLOCK, 0, stream, op, coordinates, static_cast<Index>(pieces), wide);
}

}  // namespace planrt

#endif
