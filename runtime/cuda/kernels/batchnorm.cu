/* Batch normalisation over all positions of a channel: statistics, then one pass over the elements. */
#include "elementwise.cuh"
#include "reduce.cuh"

namespace planrt {
namespace {

__device__ inline float inverse_deviation(float variance, float epsilon) {
  return 1.0F / sqrtf(variance + epsilon);
}

/* --- Forward ------------------------------------------------------------------------------------------------------ */

template <typename T>
struct Statistics {
  using Gather = MomentsOf;
  const T *x;
  bool vector;
  template <int W>
  __device__ void terms(int64_t i, int64_t, int64_t, float (&to)[1][W]) const {
    load<W>(x + i, vector, to[0]);
  }
};

/* The batch's statistics; the running ones move towards them, once, unless this is a recompute. */
struct PutStatistics {
  rt_cuda_norm of;
  float *mean, *invstd, *running_mean, *running_var;
  __device__ void operator()(int64_t c, const Moments &all) const {
    float variance = all.count > 0.0F ? all.squares / all.count : 0.0F;
    mean[c] = all.mean();
    invstd[c] = inverse_deviation(variance, of.epsilon);
    if (!running_mean) return;
    float unbiased = all.count > 1.0F ? all.squares / (all.count - 1.0F) : variance;
    running_mean[c] += of.momentum * (all.mean() - running_mean[c]);
    running_var[c] += of.momentum * (unbiased - running_var[c]);
  }
};

/* Statistics that are given: the mean where it is wanted (`mean_out` not NULL), and the inverse deviation. */
struct GivenStatistics {
  static constexpr int WIDTH = 1;
  const float *mean, *variance;
  float *mean_out, *invstd, epsilon;
  template <int W>
  __device__ void apply(int64_t c, bool) const {
    if (mean_out) mean_out[c] = mean[c];
    invstd[c] = inverse_deviation(variance[c], epsilon);
  }
};

template <typename T, bool WITHIN>
struct Normalise {
  static constexpr int WIDTH = vector_width<T>();
  Channels shape;
  const T *x;
  const float *gamma, *beta, *mean, *invstd;
  T *y;
  bool vector_parameters;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    ChannelsAt<W, WITHIN> at(shape, i);
    float v[W], m[W], s[W], g[W], b[W];
    load<W>(x + i, vector, v);
    at.values(mean, vector_parameters, m);
    at.values(invstd, vector_parameters, s);
    at.values(gamma, vector_parameters, g);
    at.values(beta, vector_parameters, b);
    for (int k = 0; k < W; k++) v[k] = (v[k] - m[k]) * s[k] * g[k] + b[k];
    store<W>(y + i, vector, v);
  }
};

template <typename T>
cudaError_t normalise(cudaStream_t stream, rt_cuda_channels shape, const void *x, const float *gamma, const float *beta,
                      const float *mean, const float *invstd, void *y) {
  return with_within<vector_width<T>()>(shape, [&](auto within) {
    Normalise<T, decltype(within)::value> op{
        Channels(shape),     static_cast<const T *>(x),         gamma, beta, mean, invstd,
        static_cast<T *>(y), aligned(gamma, beta, mean, invstd)};
    return elementwise(stream, elements_of(shape), aligned(x, y), op);
  });
}

/* --- Backward ----------------------------------------------------------------------------------------------------- */

/* Sums of dy and of dy (x - mean). */
template <typename T>
struct Products {
  using Gather = TotalsOf<2>;
  Channels shape;
  const T *x, *dy;
  const float *mean;
  bool vector, vector_mean;
  template <int W>
  __device__ void terms(int64_t i, int64_t, int64_t channel, float (&to)[2][W]) const {
    float v[W], m[W];
    load<W>(x + i, vector, v);
    load<W>(dy + i, vector, to[0]);
    if (shape.inner == 1) {
      load<W>(mean + channel, vector_mean, m);
    } else {
      for (int k = 0; k < W; k++) m[k] = mean[channel];
    }
    for (int k = 0; k < W; k++) to[1][k] = to[0][k] * (v[k] - m[k]);
  }
};

/* Gradients of gamma and beta, and for the last pass the means over the channel of dy and of dy times the normalised
 * x. */
struct PutProducts {
  float count;
  const float *invstd;
  float *dgamma, *dbeta, *mean_dy, *mean_product;
  bool accumulate_gamma, accumulate_beta;
  __device__ void operator()(int64_t c, const Totals<2> &sums) const {
    float product = sums.at[1] * invstd[c];
    mean_dy[c] = sums.at[0] / count;
    mean_product[c] = product / count;
    put(dgamma + c, product, accumulate_gamma);
    put(dbeta + c, sums.at[0], accumulate_beta);
  }
};

template <typename T, bool WITHIN>
struct InputGradient {
  static constexpr int WIDTH = vector_width<T>();
  Channels shape;
  const T *x, *dy;
  const float *gamma, *mean, *invstd, *mean_dy, *mean_product;
  T *dx;
  bool vector_parameters;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    ChannelsAt<W, WITHIN> at(shape, i);
    float v[W], d[W], g[W], m[W], s[W], md[W], mp[W];
    load<W>(x + i, vector, v);
    load<W>(dy + i, vector, d);
    at.values(gamma, vector_parameters, g);
    at.values(mean, vector_parameters, m);
    at.values(invstd, vector_parameters, s);
    at.values(mean_dy, vector_parameters, md);
    at.values(mean_product, vector_parameters, mp);
    for (int k = 0; k < W; k++) v[k] = g[k] * s[k] * (d[k] - md[k] - (v[k] - m[k]) * s[k] * mp[k]);
    store<W>(dx + i, vector, v);
  }
};

/* The workspace of the gradient: two floats a channel, then the parts of the sums. */
int64_t means_bytes(const rt_cuda_channels &shape) {
  return 2 * shape.channels * static_cast<int64_t>(sizeof(float));
}

}  // namespace
}  // namespace planrt

using namespace planrt;

int64_t rt_cuda_batchnorm_workspace(rt_cuda_channels shape) {
  return parts_bytes<MomentsOf>(shape);
}

cudaError_t rt_cuda_batchnorm(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_channels shape, const rt_cuda_norm *of,
                              const rt_cuda_batchnorm_operands *at, void *workspace) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    cudaError_t code = reduce(stream, shape, Statistics<T>{static_cast<const T *>(at->x), aligned(at->x)},
                              PutStatistics{*of, at->mean, at->invstd, at->running_mean, at->running_var}, workspace);
    if (code != cudaSuccess) return code;
    return normalise<T>(stream, shape, at->x, at->gamma, at->beta, at->mean, at->invstd, at->y);
  });
}

cudaError_t rt_cuda_batchnorm_given(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_channels shape,
                                    const rt_cuda_norm *of, const rt_cuda_batchnorm_operands *at) {
  cudaError_t code = elementwise(stream, shape.channels, false,
                                 GivenStatistics{at->running_mean, at->running_var, at->mean, at->invstd, of->epsilon});
  if (code != cudaSuccess) return code;
  const float *mean = at->mean ? at->mean : at->running_mean;
  return with_type(dtype, [&](auto tag) {
    return normalise<decltype(tag)>(stream, shape, at->x, at->gamma, at->beta, mean, at->invstd, at->y);
  });
}

int64_t rt_cuda_batchnorm_grad_workspace(rt_cuda_channels shape) {
  return means_bytes(shape) + parts_bytes<TotalsOf<2>>(shape);
}

cudaError_t rt_cuda_batchnorm_grad(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_channels shape,
                                   const rt_cuda_norm_gradients *at, void *workspace) {
  float *mean_dy = static_cast<float *>(workspace), *mean_product = mean_dy + shape.channels;
  void *parts = static_cast<char *>(workspace) + means_bytes(shape);
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *x = static_cast<const T *>(at->x), *dy = static_cast<const T *>(at->dy);
    PutProducts finish{static_cast<float>(shape.outer * shape.inner),
                       at->invstd,
                       at->dgamma,
                       at->dbeta,
                       mean_dy,
                       mean_product,
                       at->accumulate_gamma,
                       at->accumulate_beta};
    cudaError_t code = reduce(
        stream, shape, Products<T>{Channels(shape), x, dy, at->mean, aligned(x, dy), aligned(at->mean)}, finish, parts);
    if (code != cudaSuccess) return code;
    return with_within<vector_width<T>()>(shape, [&](auto within) {
      InputGradient<T, decltype(within)::value> op{Channels(shape),
                                                   x,
                                                   dy,
                                                   at->gamma,
                                                   at->mean,
                                                   at->invstd,
                                                   mean_dy,
                                                   mean_product,
                                                   static_cast<T *>(at->dx),
                                                   aligned(at->gamma, at->mean, at->invstd, mean_dy, mean_product)};
      return elementwise(stream, elements_of(shape), aligned(x, dy, at->dx), op);
    });
  });
}
