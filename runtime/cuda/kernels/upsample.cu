/* Up-sampling by an integer factor: nearest, or bilinear between pixel centres, the corners aligned or not. The
 * gradient is gathered, in the order of the outputs. */
#include "images.cuh"

namespace planrt {
namespace {

/* One axis: an output is (1 - share) * in[low] + share * in[high]. */
struct Blend {
  int64_t low, high;
  float share;
  __device__ Blend(int64_t out, int64_t scale, int64_t size, planrt_cuda_blending blending) {
    if (blending == PLANRT_CUDA_NEAREST) {
      low = high = out / scale;
      share = 0.0F;
      return;
    }
    bool aligned = blending == PLANRT_CUDA_ALIGNED;
    float centre = aligned ? static_cast<float>(out) / static_cast<float>(scale)
                           : (static_cast<float>(out) + 0.5F) / static_cast<float>(scale) - 0.5F;
    centre = centre < 0.0F ? 0.0F : centre;
    low = static_cast<int64_t>(centre);
    low = low < size - 1 ? low : size - 1;
    high = low < size - 1 ? low + 1 : low;
    share = centre - static_cast<float>(low);
  }
};

template <typename T>
struct Upsample {
  Strides in, out;
  int64_t scale;
  planrt_cuda_blending blending;
  const T *x;
  T *y;
  template <int W>
  __device__ void apply(int64_t n, int64_t c, int64_t p, int64_t q, bool vector) const {
    Blend v(p, scale, in.h, blending), h(q, scale, in.w, blending);
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
    store<W>(y + out.at(n, c, p, q), vector, low_low);
  }
};

/* The outputs that an input can have a part in: first .. last. */
struct Reach {
  int64_t first, last;
  __device__ Reach(int64_t at, int64_t scale, int64_t outputs, planrt_cuda_blending blending) {
    first = at * scale;
    last = first + scale - 1;
    if (blending == PLANRT_CUDA_NEAREST) return;
    first = first - scale > 0 ? first - scale : 0;
    last = last + scale < outputs ? last + scale : outputs - 1;
  }
};

template <typename T>
struct UpsampleGrad {
  Strides in, out;
  int64_t scale;
  planrt_cuda_blending blending;
  const T *dy;
  T *dx;
  template <int W>
  __device__ void apply(int64_t n, int64_t c, int64_t row, int64_t column, bool vector) const {
    Reach rows(row, scale, out.h, blending), columns(column, scale, out.w, blending);
    float sum[W] = {}, g[W];
    for (int64_t p = rows.first; p <= rows.last; p++) {
      Blend v(p, scale, in.h, blending);
      if (v.low != row && v.high != row) continue;
      for (int64_t q = columns.first; q <= columns.last; q++) {
        Blend h(q, scale, in.w, blending);
        if (h.low != column && h.high != column) continue;
        load<W>(dy + out.at(n, c, p, q), vector, g);
        for (int k = 0; k < W; k++) {
          if (v.low == row && h.low == column) sum[k] += g[k] * (1.0F - v.share) * (1.0F - h.share);
          if (v.low == row && h.high == column) sum[k] += g[k] * (1.0F - v.share) * h.share;
          if (v.high == row && h.low == column) sum[k] += g[k] * v.share * (1.0F - h.share);
          if (v.high == row && h.high == column) sum[k] += g[k] * v.share * h.share;
        }
      }
    }
    store<W>(dx + in.at(n, c, row, column), vector, sum);
  }
};

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t planrt_cuda_upsample(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_upsampling *of,
                                 const void *x, void *y) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    Upsample<T> op{Strides(of->in, of->channels_last),
                   Strides(of->out, of->channels_last),
                   of->scale,
                   of->blending,
                   static_cast<const T *>(x),
                   static_cast<T *>(y)};
    return for_image<vector_width<T>()>(stream, of->out, of->channels_last, aligned(x, y), op);
  });
}

cudaError_t planrt_cuda_upsample_grad(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_upsampling *of,
                                      const void *dy, void *dx) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    UpsampleGrad<T> op{Strides(of->in, of->channels_last),
                       Strides(of->out, of->channels_last),
                       of->scale,
                       of->blending,
                       static_cast<const T *>(dy),
                       static_cast<T *>(dx)};
    return for_image<vector_width<T>()>(stream, of->in, of->channels_last, aligned(dy, dx), op);
  });
}
