/* Activations, sums and copies of whole tensors, and dropout. */
#include "elementwise.cuh"
#include "runtime/random.h"

namespace planrt {
namespace {

/* y = f(x). */
template <typename T, typename F>
struct Map {
  static constexpr int WIDTH = vector_width<T>();
  F f;
  const T *x;
  T *y;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float v[W];
    load<W>(x + i, vector, v);
    for (int k = 0; k < W; k++) v[k] = f(v[k]);
    store<W>(y + i, vector, v);
  }
};

/* y = f(a, b). */
template <typename T, typename F>
struct Zip {
  static constexpr int WIDTH = vector_width<T>();
  F f;
  const T *a, *b;
  T *y;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float u[W], v[W];
    load<W>(a + i, vector, u);
    load<W>(b + i, vector, v);
    for (int k = 0; k < W; k++) v[k] = f(u[k], v[k]);
    store<W>(y + i, vector, v);
  }
};

template <typename F>
cudaError_t map(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y, F f) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    return elementwise(stream, n, aligned(x, y), Map<T, F>{f, static_cast<const T *>(x), static_cast<T *>(y)});
  });
}

template <typename F>
cudaError_t zip(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *a, const void *b, void *y, F f) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    return elementwise(stream, n, aligned(a, b, y),
                       Zip<T, F>{f, static_cast<const T *>(a), static_cast<const T *>(b), static_cast<T *>(y)});
  });
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

struct Relu {
  __device__ float operator()(float x) const { return x > 0.0F ? x : 0.0F; }
};

struct ReluGrad {
  __device__ float operator()(float y, float dy) const { return y > 0.0F ? dy : 0.0F; }
};

/* x times the standard normal distribution below x. */
struct Gelu {
  __device__ float operator()(float x) const { return 0.5F * x * (1.0F + erff(x * 0.70710678F)); }
};

struct GeluGrad {
  __device__ float operator()(float x, float dy) const {
    float below = 0.5F * (1.0F + erff(x * 0.70710678F)), density = 0.39894228F * expf(-0.5F * x * x);
    return dy * (below + x * density);
  }
};

struct Sigmoid {
  __device__ float operator()(float x) const { return 1.0F / (1.0F + expf(-x)); }
};

struct SigmoidGrad {
  __device__ float operator()(float y, float dy) const { return dy * (y * (1.0F - y)); }
};

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

struct TanhGrad {
  __device__ float operator()(float y, float dy) const { return dy * (1.0F - y * y); }
};

struct Affine {
  float scale, shift;
  __device__ float operator()(float x) const { return x * scale + shift; }
};

struct Difference {
  float scale;
  __device__ float operator()(float a, float b) const { return (a - b) * scale; }
};

struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/* --- Copies ------------------------------------------------------------------------------------------------------- */

template <typename T, typename U>
struct Convert {
  static constexpr int WIDTH = vector_width<T, U>();
  const T *x;
  U *y;
  bool accumulate;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float v[W], sum[W];
    load<W>(x + i, vector, v);
    if (accumulate) {
      load<W>(y + i, vector, sum);
      for (int k = 0; k < W; k++) v[k] = sum[k] + v[k];
    }
    store<W>(y + i, vector, v);
  }
};

/* --- Dropout ------------------------------------------------------------------------------------------------------ */

/* What the counter (global sample, element within it) drops becomes 0, the rest is scaled: no mask is stored, and a
 * round draws what the whole batch would. */
template <typename T>
struct Dropout {
  static constexpr int WIDTH = vector_width<T>();
  const T *x;
  T *y;
  rt_cuda_dropout of;
  float p, scale;
  rt_cuda_step_source step;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    rt_cuda_step now = step_of(step);
    uint64_t key = rt_mix(now.seed ^ rt_mix(of.seed + 1));
    int64_t iteration = now.period * of.iterations + of.iteration + now.ahead;
    uint64_t counter = static_cast<uint64_t>((iteration * of.job_batch + of.sample_offset) * of.per_sample + i);
    float v[W];
    load<W>(x + i, vector, v);
    for (int k = 0; k < W; k++) v[k] = rt_uniform(key, counter + static_cast<uint64_t>(k)) < p ? 0.0F : v[k] * scale;
    store<W>(y + i, vector, v);
  }
};

}  // namespace
}  // namespace planrt

/* --- Launchers ---------------------------------------------------------------------------------------------------- */

using namespace planrt;

cudaError_t rt_cuda_relu(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y) {
  return map(stream, dtype, n, x, y, Relu{});
}

cudaError_t rt_cuda_relu_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *y, const void *dy,
                              void *dx) {
  return zip(stream, dtype, n, y, dy, dx, ReluGrad{});
}

cudaError_t rt_cuda_gelu(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y) {
  return map(stream, dtype, n, x, y, Gelu{});
}

cudaError_t rt_cuda_gelu_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, const void *dy,
                              void *dx) {
  return zip(stream, dtype, n, x, dy, dx, GeluGrad{});
}

cudaError_t rt_cuda_sigmoid(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y) {
  return map(stream, dtype, n, x, y, Sigmoid{});
}

cudaError_t rt_cuda_sigmoid_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *y, const void *dy,
                                 void *dx) {
  return zip(stream, dtype, n, y, dy, dx, SigmoidGrad{});
}

cudaError_t rt_cuda_tanh(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y) {
  return map(stream, dtype, n, x, y, Tanh{});
}

cudaError_t rt_cuda_tanh_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *y, const void *dy,
                              void *dx) {
  return zip(stream, dtype, n, y, dy, dx, TanhGrad{});
}

cudaError_t rt_cuda_add(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *a, const void *b, void *y) {
  return zip(stream, dtype, n, a, b, y, Sum{});
}

cudaError_t rt_cuda_affine(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, double scale, double shift,
                           const void *x, void *y) {
  return map(stream, dtype, n, x, y, Affine{static_cast<float>(scale), static_cast<float>(shift)});
}

cudaError_t rt_cuda_difference(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, double scale, const void *a,
                               const void *b, void *y) {
  return zip(stream, dtype, n, a, b, y, Difference{static_cast<float>(scale)});
}

cudaError_t rt_cuda_mul(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *a, const void *b, void *y) {
  return zip(stream, dtype, n, a, b, y, Product{});
}

cudaError_t rt_cuda_convert(cudaStream_t stream, rt_cuda_dtype from, rt_cuda_dtype to, int64_t n, const void *x,
                            void *y, bool accumulate) {
  return with_type(from, [&](auto from_tag) {
    return with_type(to, [&](auto to_tag) {
      using T = decltype(from_tag);
      using U = decltype(to_tag);
      return elementwise(stream, n, aligned(x, y),
                         Convert<T, U>{static_cast<const T *>(x), static_cast<U *>(y), accumulate});
    });
  });
}

cudaError_t rt_cuda_drop(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y,
                         const rt_cuda_dropout *of, rt_cuda_step_source step) {
  float p = static_cast<float>(of->p);
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    return elementwise(stream, n, aligned(x, y),
                       Dropout<T>{static_cast<const T *>(x), static_cast<T *>(y), *of, p, 1.0F / (1.0F - p), step});
  });
}
