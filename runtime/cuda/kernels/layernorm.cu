/* Layer normalisation: of rows. */
#include "reduce.cuh"
#include "rows.cuh"

namespace planrt {
namespace {

template <typename T>
struct LayerNorm {
  int64_t width;
  float epsilon;
  const T *x;
  const float *gamma, *beta;
  T *y;
  float *means, *invstds;
  bool vector, vector_parameters;

  template <int GROUP, int W>
  __device__ void row(int64_t r, int thread) const {
    const T *from = x + r * width;
    Moments all = gather_row<MomentsOf, GROUP, W>(
        width, thread, [&](int64_t c, float(&to)[1][W]) { load<W>(from + c, vector, to[0]); });
    float mean = all.mean(), invstd = 1.0F / sqrtf(all.squares / static_cast<float>(width) + epsilon);
    if (thread == 0) {
      means[r] = mean;
      invstds[r] = invstd;
    }
    for (int64_t c = static_cast<int64_t>(thread) * W; c < width; c += GROUP * W) {
      float v[W], g[W], b[W];
      load<W>(from + c, vector, v);
      load<W>(gamma + c, vector_parameters, g);
      load<W>(beta + c, vector_parameters, b);
      for (int k = 0; k < W; k++) v[k] = (v[k] - mean) * invstd * g[k] + b[k];
      store<W>(y + r * width + c, vector, v);
    }
  }
};

/* dx = invstd (g - mean(g) - n mean(g n)) with n the normalised row and g = gamma dy. */
template <typename T>
struct LayerNormGrad {
  int64_t width;
  const T *x, *dy;
  const float *gamma, *means, *invstds;
  T *dx;
  bool vector, vector_gamma;

  /* n and g. */
  template <int W>
  __device__ void of(int64_t r, int64_t c, float (&n)[W], float (&g)[W]) const {
    float d[W], mean = means[r], invstd = invstds[r];
    load<W>(x + r * width + c, vector, n);
    load<W>(dy + r * width + c, vector, d);
    load<W>(gamma + c, vector_gamma, g);
    for (int k = 0; k < W; k++) {
      n[k] = (n[k] - mean) * invstd;
      g[k] = g[k] * d[k];
    }
  }

  template <int GROUP, int W>
  __device__ void row(int64_t r, int thread) const {
    Totals<2> sums = gather_row<TotalsOf<2>, GROUP, W>(width, thread, [&](int64_t c, float(&to)[2][W]) {
      of<W>(r, c, to[1], to[0]);
      for (int k = 0; k < W; k++) to[1][k] = to[0][k] * to[1][k];
    });
    float mean_g = sums.at[0] / static_cast<float>(width), mean_gn = sums.at[1] / static_cast<float>(width);
    float invstd = invstds[r];
    for (int64_t c = static_cast<int64_t>(thread) * W; c < width; c += GROUP * W) {
      float n[W], g[W];
      of<W>(r, c, n, g);
      for (int k = 0; k < W; k++) g[k] = invstd * (g[k] - mean_g - n[k] * mean_gn);
      store<W>(dx + r * width + c, vector, g);
    }
  }
};

/* By column, dy n and dy. */
template <typename T>
struct ParameterTerms {
  using Gather = TotalsOf<2>;
  const T *x, *dy;
  const float *means, *invstds;
  bool vector;
  template <int W>
  __device__ void terms(int64_t i, int64_t row, int64_t, float (&to)[2][W]) const {
    float mean = means[row], invstd = invstds[row];
    load<W>(x + i, vector, to[0]);
    load<W>(dy + i, vector, to[1]);
    for (int k = 0; k < W; k++) to[0][k] = to[1][k] * ((to[0][k] - mean) * invstd);
  }
};

struct PutParameters {
  float *dgamma, *dbeta;
  bool accumulate_gamma, accumulate_beta;
  __device__ void operator()(int64_t c, const Totals<2> &sums) const {
    put(dgamma + c, sums.at[0], accumulate_gamma);
    put(dbeta + c, sums.at[1], accumulate_beta);
  }
};

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_layernorm(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width, double epsilon,
                              const void *x, const float *gamma, const float *beta, void *y, float *means,
                              float *invstds) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    LayerNorm<T> op{width,
                    static_cast<float>(epsilon),
                    static_cast<const T *>(x),
                    gamma,
                    beta,
                    static_cast<T *>(y),
                    means,
                    invstds,
                    aligned(x, y),
                    aligned(gamma, beta)};
    return for_rows(stream, rows, width, op);
  });
}

int64_t rt_cuda_layernorm_grad_workspace(int64_t rows, int64_t width) {
  return parts_bytes<TotalsOf<2>>({rows, width, 1});
}

cudaError_t rt_cuda_layernorm_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width,
                                   const rt_cuda_norm_gradients *at, void *workspace) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *x = static_cast<const T *>(at->x), *dy = static_cast<const T *>(at->dy);
    LayerNormGrad<T> op{width,
                        x,
                        dy,
                        at->gamma,
                        at->mean,
                        at->invstd,
                        static_cast<T *>(at->dx),
                        aligned(x, dy, at->dx),
                        aligned(at->gamma)};
    cudaError_t code = for_rows(stream, rows, width, op);
    if (code != cudaSuccess) return code;
    return reduce(stream, {rows, width, 1}, ParameterTerms<T>{x, dy, at->mean, at->invstd, aligned(x, dy)},
                  PutParameters{at->dgamma, at->dbeta, at->accumulate_gamma, at->accumulate_beta}, workspace);
  });
}
