/* Gradients of biases and positions: sums over all of a channel. Sums and means over tokens. */
#include "elementwise.cuh"
#include "reduce.cuh"

namespace planrt {
namespace {

template <typename T>
struct Values {
  using Gather = TotalsOf<1>;
  const T *x;
  bool vector;
  template <int W>
  __device__ void terms(int64_t i, int64_t, int64_t, float (&to)[1][W]) const {
    load<W>(x + i, vector, to[0]);
  }
};

template <typename P>
struct PutTotal {
  P *out;
  bool accumulate;
  __device__ void operator()(int64_t c, const Totals<1> &sum) const { put(out + c, sum.at[0], accumulate); }
};

/* y[o, c] = the sum over t of x[o, t, c], divided by `divisor`; an element of y at a time, as there are many. */
template <typename T>
struct TokenSum {
  static constexpr int WIDTH = vector_width<T>();
  int64_t tokens, width;
  Divisor by_width;
  float divisor;
  const T *x;
  T *y;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float sum[W] = {}, v[W];
    if (width % W == 0) {
      int64_t c = i, o = by_width.split(c);
      const T *from = x + o * tokens * width + c;
      for (int64_t t = 0; t < tokens; t++) {
        load<W>(from + t * width, vector, v);
        for (int k = 0; k < W; k++) sum[k] += v[k];
      }
    } else {
      for (int k = 0; k < W; k++) {
        int64_t c = i + k, o = by_width.split(c);
        const T *from = x + o * tokens * width + c;
        for (int64_t t = 0; t < tokens; t++) sum[k] += to_float(from[t * width]);
      }
    }
    for (int k = 0; k < W; k++) sum[k] /= divisor;
    store<W>(y + i, vector, sum);
  }
};

}  // namespace
}  // namespace planrt

using namespace planrt;

int64_t rt_cuda_channel_sums_workspace(rt_cuda_channels shape) {
  return parts_bytes<TotalsOf<1>>(shape);
}

cudaError_t rt_cuda_channel_sums(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype sum_dtype,
                                 rt_cuda_channels shape, const void *x, void *sums, bool accumulate, void *workspace) {
  return with_types(dtype, sum_dtype, [&](auto tag, auto sum_tag) {
    using T = decltype(tag);
    using P = decltype(sum_tag);
    return reduce(stream, shape, Values<T>{static_cast<const T *>(x), aligned(x)},
                  PutTotal<P>{static_cast<P *>(sums), accumulate}, workspace);
  });
}

cudaError_t rt_cuda_token_sum(cudaStream_t stream, rt_cuda_dtype dtype, int64_t outer, int64_t tokens, int64_t width,
                              bool mean, const void *x, void *y) {
  float divisor = mean ? static_cast<float>(tokens) : 1.0F;
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    TokenSum<T> op{tokens, width, Divisor(width), divisor, static_cast<const T *>(x), static_cast<T *>(y)};
    return elementwise(stream, outer * width, aligned(x, y), op);
  });
}
