/* Max and average pooling over windows of a padded image. Gradients are gathered: every input adds up, in the order of
 * the outputs, what the windows that it lies in give it. */
#include "images.cuh"

namespace planrt {
namespace {

/* The part of an output's window that lies in the image. */
struct Window {
  int64_t top, bottom, left, right;
  __device__ Window(const planrt_cuda_pooling &of, const Strides &x, int64_t p, int64_t q) {
    top = p * of.stride_h - of.pad_h, left = q * of.stride_w - of.pad_w;
    bottom = top + of.kernel_h, right = left + of.kernel_w;
    top = top > 0 ? top : 0, left = left > 0 ? left : 0;
    bottom = bottom < x.h ? bottom : x.h, right = right < x.w ? right : x.w;
  }
};

/* The outputs whose windows hold a row or column of the image: first .. last. */
struct Holders {
  int64_t first, last;
  __device__ Holders(int64_t at, int64_t kernel, int64_t stride, int64_t pad, int64_t outputs) {
    int64_t padded = at + pad;
    first = padded < kernel ? 0 : (padded - kernel) / stride + 1;
    last = padded / stride < outputs ? padded / stride : outputs - 1;
  }
};

/* --- Largest ------------------------------------------------------------------------------------------------------ */

template <typename T>
struct MaxPool {
  planrt_cuda_pooling of;
  Strides in, out;
  const T *x;
  T *y;
  template <int W>
  __device__ void apply(int64_t n, int64_t c, int64_t p, int64_t q, bool vector) const {
    Window w(of, in, p, q);
    const T *image = x + n * in.sn + c * in.sc;
    float best[W], v[W];
    load<W>(image + w.top * in.sy + w.left * in.sx, vector, best);
    for (int64_t i = w.top; i < w.bottom; i++)
      for (int64_t j = w.left; j < w.right; j++) {
        load<W>(image + i * in.sy + j * in.sx, vector, v);
        for (int k = 0; k < W; k++) best[k] = v[k] > best[k] ? v[k] : best[k];
      }
    store<W>(y + out.at(n, c, p, q), vector, best);
  }
};

/* An input gets a window's gradient when it is the first that equals the window's maximum; one that is not a number is
 * the window's first element, which nothing was larger than. */
template <typename T>
struct MaxPoolGrad {
  planrt_cuda_pooling of;
  Strides in, out;
  const T *x, *y, *dy;
  T *dx;

  __device__ bool is_first(const T *channel, const Window &w, int64_t row, int64_t column, float most) const {
    if (isnan(most)) return row == w.top && column == w.left;
    for (int64_t i = w.top; i <= row; i++)
      for (int64_t j = w.left; j < (i < row ? w.right : column); j++)
        if (to_float(channel[i * in.sy + j * in.sx]) == most) return false;
    return true;
  }

  template <int W>
  __device__ void apply(int64_t n, int64_t c, int64_t row, int64_t column, bool vector) const {
    Holders rows(row, of.kernel_h, of.stride_h, of.pad_h, out.h);
    Holders columns(column, of.kernel_w, of.stride_w, of.pad_w, out.w);
    float sum[W] = {}, own[W], most[W];
    load<W>(x + in.at(n, c, row, column), vector, own);
    for (int64_t p = rows.first; p <= rows.last; p++)
      for (int64_t q = columns.first; q <= columns.last; q++) {
        int64_t at = out.at(n, c, p, q);
        load<W>(y + at, vector, most);
        for (int k = 0; k < W; k++) {
          if (own[k] != most[k] && !isnan(most[k])) continue;
          const T *channel = x + n * in.sn + (c + k) * in.sc;
          if (is_first(channel, Window(of, in, p, q), row, column, most[k])) sum[k] += to_float(dy[at + k * out.sc]);
        }
      }
    store<W>(dx + in.at(n, c, row, column), vector, sum);
  }
};

/* --- Average ------------------------------------------------------------------------------------------------------ */

template <typename T>
struct AvgPool {
  planrt_cuda_pooling of;
  Strides in, out;
  const T *x;
  T *y;
  float area;
  template <int W>
  __device__ void apply(int64_t n, int64_t c, int64_t p, int64_t q, bool vector) const {
    Window w(of, in, p, q);
    const T *image = x + n * in.sn + c * in.sc;
    float sum[W] = {}, v[W];
    for (int64_t i = w.top; i < w.bottom; i++)
      for (int64_t j = w.left; j < w.right; j++) {
        load<W>(image + i * in.sy + j * in.sx, vector, v);
        for (int k = 0; k < W; k++) sum[k] += v[k];
      }
    for (int k = 0; k < W; k++) sum[k] /= area;
    store<W>(y + out.at(n, c, p, q), vector, sum);
  }
};

template <typename T>
struct AvgPoolGrad {
  planrt_cuda_pooling of;
  Strides in, out;
  const T *dy;
  T *dx;
  float area;
  template <int W>
  __device__ void apply(int64_t n, int64_t c, int64_t row, int64_t column, bool vector) const {
    Holders rows(row, of.kernel_h, of.stride_h, of.pad_h, out.h);
    Holders columns(column, of.kernel_w, of.stride_w, of.pad_w, out.w);
    float sum[W] = {}, v[W];
    for (int64_t p = rows.first; p <= rows.last; p++)
      for (int64_t q = columns.first; q <= columns.last; q++) {
        load<W>(dy + out.at(n, c, p, q), vector, v);
        for (int k = 0; k < W; k++) sum[k] += v[k] / area;
      }
    store<W>(dx + in.at(n, c, row, column), vector, sum);
  }
};

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t planrt_cuda_maxpool(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                const void *x, void *y) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    MaxPool<T> op{*of, Strides(of->in, of->channels_last), Strides(of->out, of->channels_last),
                  static_cast<const T *>(x), static_cast<T *>(y)};
    return for_image<vector_width<T>()>(stream, of->out, of->channels_last, aligned(x, y), op);
  });
}

cudaError_t planrt_cuda_maxpool_grad(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                     const void *x, const void *y, const void *dy, void *dx) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    MaxPoolGrad<T> op{*of,
                      Strides(of->in, of->channels_last),
                      Strides(of->out, of->channels_last),
                      static_cast<const T *>(x),
                      static_cast<const T *>(y),
                      static_cast<const T *>(dy),
                      static_cast<T *>(dx)};
    return for_image<vector_width<T>()>(stream, of->in, of->channels_last, aligned(x, y, dx), op);
  });
}

cudaError_t planrt_cuda_avgpool(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                const void *x, void *y) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    AvgPool<T> op{*of,
                  Strides(of->in, of->channels_last),
                  Strides(of->out, of->channels_last),
                  static_cast<const T *>(x),
                  static_cast<T *>(y),
                  static_cast<float>(of->kernel_h * of->kernel_w)};
    return for_image<vector_width<T>()>(stream, of->out, of->channels_last, aligned(x, y), op);
  });
}

cudaError_t planrt_cuda_avgpool_grad(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                     const void *dy, void *dx) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    AvgPoolGrad<T> op{*of,
                      Strides(of->in, of->channels_last),
                      Strides(of->out, of->channels_last),
                      static_cast<const T *>(dy),
                      static_cast<T *>(dx),
                      static_cast<float>(of->kernel_h * of->kernel_w)};
    return for_image<vector_width<T>()>(stream, of->in, of->channels_last, aligned(dy, dx), op);
  });
}
