/* Softmax of rows. May work in place: every element is read again and written by the same thread. */
#include "rows.cuh"

namespace planrt {
namespace {

template <typename T>
struct Softmax {
  int64_t width;
  const T *x;
  T *y;
  bool vector;

  template <int GROUP, int W>
  __device__ void row(int64_t r, int thread) const {
    const T *from = x + r * width;
    Exponentials all = gather_row<ExponentialsOf, GROUP, W>(
        width, thread, [&](int64_t c, float(&to)[1][W]) { load<W>(from + c, vector, to[0]); });
    for (int64_t c = static_cast<int64_t>(thread) * W; c < width; c += GROUP * W) {
      float v[W];
      load<W>(from + c, vector, v);
      for (int k = 0; k < W; k++) v[k] = expf(v[k] - all.largest) / all.sum;
      store<W>(y + r * width + c, vector, v);
    }
  }
};

/* dx = y (dy - sum(y dy)). */
template <typename T>
struct SoftmaxGrad {
  int64_t width;
  const T *y, *dy;
  T *dx;
  bool vector;

  template <int GROUP, int W>
  __device__ void row(int64_t r, int thread) const {
    const T *probs = y + r * width, *grads = dy + r * width;
    Totals<1> sum = gather_row<TotalsOf<1>, GROUP, W>(width, thread, [&](int64_t c, float(&to)[1][W]) {
      float p[W];
      load<W>(probs + c, vector, p);
      load<W>(grads + c, vector, to[0]);
      for (int k = 0; k < W; k++) to[0][k] = p[k] * to[0][k];
    });
    for (int64_t c = static_cast<int64_t>(thread) * W; c < width; c += GROUP * W) {
      float p[W], g[W];
      load<W>(probs + c, vector, p);
      load<W>(grads + c, vector, g);
      for (int k = 0; k < W; k++) g[k] = p[k] * (g[k] - sum.at[0]);
      store<W>(dx + r * width + c, vector, g);
    }
  }
};

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_softmax(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width, const void *x,
                            void *y) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    return for_rows(stream, rows, width,
                    Softmax<T>{width, static_cast<const T *>(x), static_cast<T *>(y), aligned(x, y)});
  });
}

cudaError_t rt_cuda_softmax_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width, const void *y,
                                 const void *dy, void *dx) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    return for_rows(stream, rows, width,
                    SoftmaxGrad<T>{width, static_cast<const T *>(y), static_cast<const T *>(dy), static_cast<T *>(dx),
                                   aligned(y, dy, dx)});
  });
}
