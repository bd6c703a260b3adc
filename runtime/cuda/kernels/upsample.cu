/* Up-sampling by an integer factor: nearest, or bilinear between pixel centres, the corners aligned or not. The
 * gradient is gathered, in the order of the outputs. */
#include "images.cuh"

namespace planrt {
namespace {

template <typename Index>
struct Scaling {
  Index scale;
  DivisorOf<Index> by_scale;
  rt_cuda_blending blending;
  Strides<Index> in, out;
  explicit Scaling(const rt_cuda_upsampling &of)
      : scale(static_cast<Index>(of.scale)),
        by_scale(of.scale),
        blending(of.blending),
        in(of.in, of.channels_last),
        out(of.out, of.channels_last) {}
};

/* One axis: an output is (1 - share) * in[low] + share * in[high]. */
template <typename Index>
struct Blend {
  Index low, high;
  float share;
  __device__ Blend(Index out, Index size, const Scaling<Index> &of) {
    if (of.blending == RT_CUDA_NEAREST) {
      low = high = of.by_scale.quotient(out);
      share = 0.0F;
      return;
    }
    bool aligned = of.blending == RT_CUDA_ALIGNED;
    float scale = static_cast<float>(of.scale);
    float centre = aligned ? static_cast<float>(out) / scale : (static_cast<float>(out) + 0.5F) / scale - 0.5F;
    centre = centre < 0.0F ? 0.0F : centre;
    low = static_cast<Index>(centre);
    low = low < size - 1 ? low : size - 1;
    high = low < size - 1 ? low + 1 : low;
    share = centre - static_cast<float>(low);
  }
};

template <typename T, typename Index>
struct Upsample {
  Scaling<Index> of;
  const T *x;
  T *y;
  template <int W>
  __device__ void apply(Index n, Index c, Index p, Index q, bool vector) const {
    const Strides<Index> &in = of.in;
    Blend<Index> v(p, in.h, of), h(q, in.w, of);
    float low_low[W], low_high[W], high_low[W], high_high[W];
    load<W>(x + in.at(n, c, v.low, h.low), vector, low_low);
    load<W>(x + in.at(n, c, v.low, h.high), vector, low_high);
    load<W>(x + in.at(n, c, v.high, h.low), vector, high_low);
    load<W>(x + in.at(n, c, v.high, h.high), vector, high_high);
    for (int k = 0; k < W; k++) {
      float upper = low_low[k] * (1.0F - h.share) + low_high[k] * h.share;
      float lower = high_low[k] * (1.0F - h.share) + high_high[k] * h.share;
      low_low[k] = upper * (1.0F - v.share) + lower * v.share;
    }
    store<W>(y + of.out.at(n, c, p, q), vector, low_low);
  }
};

/* The outputs that an input can have a part in: first .. last. */
template <typename Index>
struct Reach {
  Index first, last;
  __device__ Reach(Index at, Index outputs, const Scaling<Index> &of) {
    first = at * of.scale;
    last = first + of.scale - 1;
    if (of.blending == RT_CUDA_NEAREST) return;
    first = first - of.scale > 0 ? first - of.scale : 0;
    last = last + of.scale < outputs ? last + of.scale : outputs - 1;
  }
};

template <typename T, typename Index>
struct UpsampleGrad {
  Scaling<Index> of;
  const T *dy;
  T *dx;
  template <int W>
  __device__ void apply(Index n, Index c, Index row, Index column, bool vector) const {
    Reach<Index> rows(row, of.out.h, of), columns(column, of.out.w, of);
    float sum[W] = {}, g[W];
    for (Index p = rows.first; p <= rows.last; p++) {
      Blend<Index> v(p, of.in.h, of);
      if (v.low != row && v.high != row) continue;
      for (Index q = columns.first; q <= columns.last; q++) {
        Blend<Index> h(q, of.in.w, of);
        if (h.low != column && h.high != column) continue;
        load<W>(dy + of.out.at(n, c, p, q), vector, g);
        for (int k = 0; k < W; k++) {
          if (v.low == row && h.low == column) sum[k] += g[k] * (1.0F - v.share) * (1.0F - h.share);
          if (v.low == row && h.high == column) sum[k] += g[k] * (1.0F - v.share) * h.share;
          if (v.high == row && h.low == column) sum[k] += g[k] * v.share * (1.0F - h.share);
          if (v.high == row && h.high == column) sum[k] += g[k] * v.share * h.share;
        }
      }
    }
    store<W>(dx + of.in.at(n, c, row, column), vector, sum);
  }
};

bool few(const rt_cuda_upsampling &of) {
  return few_elements(of.in, of.out) && of.scale <= SMALL;
}

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_upsample(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_upsampling *of, const void *x,
                             void *y) {
  return with_numbers(dtype, few(*of), [&](auto tag, auto index) {
    using T = decltype(tag);
    using Index = decltype(index);
    Upsample<T, Index> op{Scaling<Index>(*of), static_cast<const T *>(x), static_cast<T *>(y)};
    return for_image<vector_width<T>(), Index>(stream, of->out, of->channels_last, aligned(x, y), op);
  });
}

cudaError_t rt_cuda_upsample_grad(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_upsampling *of,
                                  const void *dy, void *dx) {
  return with_numbers(dtype, few(*of), [&](auto tag, auto index) {
    using T = decltype(tag);
    using Index = decltype(index);
    UpsampleGrad<T, Index> op{Scaling<Index>(*of), static_cast<const T *>(dy), static_cast<T *>(dx)};
    return for_image<vector_width<T>(), Index>(stream, of->in, of->channels_last, aligned(dy, dx), op);
  });
}
