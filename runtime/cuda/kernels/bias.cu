/* One value per channel, added to all of the channel; and one per column, spread over rows. */
#include "channels.cuh"
#include "elementwise.cuh"

namespace planrt {
namespace {

template <typename T, typename P, bool WITHIN>
struct Bias {
  static constexpr int WIDTH = vector_width<T>();
  Channels shape;
  const T *x;
  const P *b;
  T *y;
  bool vector_b;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float v[W], bias[W];
    load<W>(x + i, vector, v);
    ChannelsAt<W, WITHIN>(shape, i).values(b, vector_b, bias);
    for (int k = 0; k < W; k++) v[k] = v[k] + bias[k];
    store<W>(y + i, vector, v);
  }
};

/* y[o, t, c] = share * x[o, c]. */
template <typename T>
struct Spread {
  static constexpr int WIDTH = vector_width<T>();
  int64_t width;
  Divisor by_width, by_tokens;
  const T *x;
  T *y;
  float share;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    int64_t c = i, row = by_width.split(c), o = by_tokens.quotient(row);
    float v[W];
    if (width % W == 0) {
      load<W>(x + o * width + c, vector, v);
    } else {
      for (int k = 0; k < W; k++, c++) {
        if (c == width) c = 0, o = by_tokens.quotient(++row);
        v[k] = to_float(x[o * width + c]);
      }
    }
    for (int k = 0; k < W; k++) v[k] = v[k] * share;
    store<W>(y + i, vector, v);
  }
};

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_bias(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype bias_dtype, rt_cuda_channels shape,
                         const void *x, const void *b, void *y) {
  return with_types(dtype, bias_dtype, [&](auto tag, auto bias_tag) {
    using T = decltype(tag);
    using P = decltype(bias_tag);
    return with_within<vector_width<T>()>(shape, [&](auto within) {
      Bias<T, P, decltype(within)::value> op{Channels(shape), static_cast<const T *>(x), static_cast<const P *>(b),
                                             static_cast<T *>(y), aligned(b)};
      return elementwise(stream, elements_of(shape), aligned(x, y), op);
    });
  });
}

cudaError_t rt_cuda_spread(cudaStream_t stream, rt_cuda_dtype dtype, int64_t outer, int64_t tokens, int64_t width,
                           bool mean, const void *x, void *y) {
  float share = 1.0F / static_cast<float>(mean && tokens > 0 ? tokens : 1);
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    Spread<T> op{width, Divisor(width), Divisor(tokens), static_cast<const T *>(x), static_cast<T *>(y), share};
    return elementwise(stream, outer * tokens * width, aligned(x, y), op);
  });
}
