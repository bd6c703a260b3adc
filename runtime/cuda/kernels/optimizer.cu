/* Optimizer steps, in place on weights and state: one pass over all of them. */
#include "elementwise.cuh"

namespace planrt {
namespace {

/* The learning rate of a step, or the op's own. */
__device__ inline float rate_of(const rt_cuda_step &step, double own) {
  return static_cast<float>(isnan(step.learning_rate) ? own : step.learning_rate);
}

template <typename G>
struct Sgd {
  static constexpr int WIDTH = vector_width<G>();
  float *w;
  const G *grad;
  double rate;
  rt_cuda_step_source step;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float r = rate_of(step_of(step), rate), weight[W], g[W];
    load<W>(w + i, vector, weight);
    load<W>(grad + i, vector, g);
    for (int k = 0; k < W; k++) weight[k] -= r * g[k];
    store<W>(w + i, vector, weight);
  }
};

template <typename G>
struct Momentum {
  static constexpr int WIDTH = vector_width<G>();
  float *w, *velocity;
  const G *grad;
  double rate;
  float decay;
  rt_cuda_step_source step;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    float r = rate_of(step_of(step), rate), weight[W], v[W], g[W];
    load<W>(w + i, vector, weight);
    load<W>(velocity + i, vector, v);
    load<W>(grad + i, vector, g);
    for (int k = 0; k < W; k++) {
      v[k] = decay * v[k] + g[k];
      weight[k] -= r * v[k];
    }
    store<W>(velocity + i, vector, v);
    store<W>(w + i, vector, weight);
  }
};

/* Kingma and Ba, Algorithm 1; the step is the iteration counted from 1. */
template <typename G>
struct Adam {
  static constexpr int WIDTH = vector_width<G>();
  float *w, *m, *v;
  const G *grad;
  rt_cuda_adam_options of;
  rt_cuda_step_source step;

  /* What depends on the step: the corrected rate, and the correction of the second moment's root. */
  struct Factors {
    float rate, correction;
  };
  __device__ Factors factors() const {
    rt_cuda_step now = step_of(step);
    double t = static_cast<double>(now.period * of.iterations + of.iteration + now.ahead) + 1.0;
    return {static_cast<float>(static_cast<double>(rate_of(now, of.rate)) / (1.0 - pow(of.beta1, t))),
            static_cast<float>(1.0 / sqrt(1.0 - pow(of.beta2, t)))};
  }

  template <int W>
  __device__ void apply(int64_t i, bool vector, const Factors &f) const {
    float epsilon = static_cast<float>(of.epsilon), b1 = static_cast<float>(of.beta1),
          b2 = static_cast<float>(of.beta2), weight[W], first[W], second[W], g[W];
    load<W>(w + i, vector, weight);
    load<W>(m + i, vector, first);
    load<W>(v + i, vector, second);
    load<W>(grad + i, vector, g);
    for (int k = 0; k < W; k++) {
      first[k] = b1 * first[k] + (1.0F - b1) * g[k];
      second[k] = b2 * second[k] + (1.0F - b2) * g[k] * g[k];
      weight[k] -= f.rate * first[k] / (sqrtf(second[k]) * f.correction + epsilon);
    }
    store<W>(m + i, vector, first);
    store<W>(v + i, vector, second);
    store<W>(w + i, vector, weight);
  }
};

/* As elementwise_kernel, with factors that are dear to compute and the same for all: once per block. */
template <typename Op>
__global__ void __launch_bounds__(BLOCK) factored_kernel(Op op, int64_t packs, int64_t n) {
  RT_SHARED(typename Op::Factors, factors, 1);
  if (threadIdx.x == 0) factors[0] = op.factors();
  __syncthreads();
  typename Op::Factors f = factors[0];
  for (int64_t i = first_thread(); i < packs; i += all_threads()) op.template apply<Op::WIDTH>(i * Op::WIDTH, true, f);
  for (int64_t i = packs * Op::WIDTH + first_thread(); i < n; i += all_threads()) op.template apply<1>(i, false, f);
}

}  // namespace
}  // namespace planrt

using namespace planrt;

cudaError_t rt_cuda_sgd(cudaStream_t stream, rt_cuda_dtype grad_dtype, int64_t n, float *w, const void *grad,
                        double rate, rt_cuda_step_source step) {
  return with_type(grad_dtype, [&](auto tag) {
    using G = decltype(tag);
    return elementwise(stream, n, aligned(w, grad), Sgd<G>{w, static_cast<const G *>(grad), rate, step});
  });
}

cudaError_t rt_cuda_momentum(cudaStream_t stream, rt_cuda_dtype grad_dtype, int64_t n, float *w, float *v,
                             const void *grad, double rate, double decay, rt_cuda_step_source step) {
  return with_type(grad_dtype, [&](auto tag) {
    using G = decltype(tag);
    return elementwise(stream, n, aligned(w, v, grad),
                       Momentum<G>{w, v, static_cast<const G *>(grad), rate, static_cast<float>(decay), step});
  });
}

cudaError_t rt_cuda_adam(cudaStream_t stream, rt_cuda_dtype grad_dtype, int64_t n, float *w, float *m, float *v,
                         const void *grad, const rt_cuda_adam_options *of, rt_cuda_step_source step) {
  if (n <= 0) return cudaSuccess;
  return with_type(grad_dtype, [&](auto tag) {
    using G = decltype(tag);
    Adam<G> op{w, m, v, static_cast<const G *>(grad), *of, step};
    int64_t packs = aligned(w, m, v, grad) ? n / Adam<G>::WIDTH : 0;
    unsigned blocks = blocks_for(packs > 0 ? packs : n, BLOCK, FEWER_BLOCKS);
    return RT_LAUNCH(factored_kernel<Adam<G>>, blocks, BLOCK, 0, stream, op, packs, n);
  });
}
