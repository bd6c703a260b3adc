/* The losses, means over the iteration's batch. Of a softmax with cross-entropy a label outside the classes is ignored:
 * no loss, no gradient. Every block adds up the losses of the positions it takes; one block adds up the blocks'. */
#include "channels.cuh"
#include "elementwise.cuh"
#include "rows.cuh"

namespace planrt {
namespace {

constexpr int64_t LOSS_BLOCKS = limit(1024, 260);

__device__ inline float loss_of(const Exponentials &all, float logit) {
  return logf(all.sum) + all.largest - logit;
}

/* Classes side by side: a group of threads for every position. */
template <int GROUP, int W, typename T, typename P>
__global__ void __launch_bounds__(BLOCK) loss_rows_kernel(const T *logits, const int64_t *labels, P *probs,
                                                          int64_t rows, int64_t classes, bool vector, float *parts) {
  constexpr int GROUPS = BLOCK / GROUP;
  int thread = static_cast<int>(threadIdx.x) % GROUP;
  Totals<1> loss = {};
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * GROUPS + threadIdx.x / GROUP; r < rows;
       r += static_cast<int64_t>(gridDim.x) * GROUPS) {
    const T *z = logits + r * classes;
    Exponentials all = gather_row<ExponentialsOf, GROUP, W>(
        classes, thread, [&](int64_t c, float(&to)[1][W]) { load<W>(z + c, vector, to[0]); });
    int64_t label = labels[r];
    if (thread == 0 && label >= 0 && label < classes) loss.at[0] += loss_of(all, to_float(z[label]));
    for (int64_t c = static_cast<int64_t>(thread) * W; c < classes; c += GROUP * W) {
      float v[W];
      load<W>(z + c, vector, v);
      for (int k = 0; k < W; k++) v[k] = expf(v[k] - all.largest) / all.sum;
      store<W>(probs + r * classes + c, vector, v);
    }
  }
  loss = merged<BLOCK>(loss);
  if (threadIdx.x == 0) parts[blockIdx.x] = loss.at[0];
}

/* Classes apart: a thread for every position. */
template <typename T, typename P>
__global__ void __launch_bounds__(BLOCK) loss_runs_kernel(const T *logits, const int64_t *labels, P *probs,
                                                          Channels shape, int64_t positions, float *parts) {
  Totals<1> loss = {};
  for (int64_t i = first_thread(); i < positions; i += all_threads()) {
    int64_t within = i, o = shape.by_inner.split(within), first = o * shape.channels * shape.inner + within;
    ExponentialsOf gather;
    for (int64_t c = 0; c < shape.channels; c++) {
      float z[1][1] = {{to_float(logits[first + c * shape.inner])}};
      gather.add(z);
    }
    Exponentials all = gather.part();
    int64_t label = labels[i];
    if (label >= 0 && label < shape.channels) loss.at[0] += loss_of(all, to_float(logits[first + label * shape.inner]));
    for (int64_t c = 0; c < shape.channels; c++) {
      int64_t at = first + c * shape.inner;
      probs[at] = from_float<P>(expf(to_float(logits[at]) - all.largest) / all.sum);
    }
  }
  loss = merged<BLOCK>(loss);
  if (threadIdx.x == 0) parts[blockIdx.x] = loss.at[0];
}

__global__ void __launch_bounds__(BLOCK) loss_kernel(const float *parts, int64_t count, double scale, float *loss) {
  Totals<1> sum = {};
  for (int64_t i = threadIdx.x; i < count; i += BLOCK) sum.at[0] += parts[i];
  sum = merged<BLOCK>(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(static_cast<double>(sum.at[0]) * scale);
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) squares_kernel(const T *x, const T *target, int64_t n, float *parts) {
  Totals<1> sum = {};
  for (int64_t i = first_thread(); i < n; i += all_threads()) {
    float off = to_float(x[i]) - to_float(target[i]);
    sum.at[0] += off * off;
  }
  sum = merged<BLOCK>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum.at[0];
}

/* (probability - 1 for the label's class) * scale. */
template <typename P, typename T>
struct LossGrad {
  static constexpr int WIDTH = vector_width<P, T>();
  Channels shape;
  const P *probs;
  const int64_t *labels;
  T *grads;
  float scale;
  template <int W>
  __device__ void apply(int64_t i, bool vector) const {
    int64_t within = i, plane = shape.by_inner.split(within), c = plane, o = shape.by_channels.split(c);
    float v[W];
    load<W>(probs + i, vector, v);
    for (int k = 0; k < W; k++, within++) {
      if (within == shape.inner) {
        within = 0;
        if (++c == shape.channels) c = 0, o++;
      }
      int64_t label = labels[o * shape.inner + within];
      bool counts = label >= 0 && label < shape.channels;
      v[k] = counts ? (v[k] - (c == label ? 1.0F : 0.0F)) * scale : 0.0F;
    }
    store<W>(grads + i, vector, v);
  }
};

int64_t squares_blocks(int64_t n) {
  return blocks_for(n, BLOCK, LOSS_BLOCKS);
}

int64_t loss_blocks(const rt_cuda_channels &shape) {
  int64_t positions = shape.outer * shape.inner;
  int64_t a_block = shape.inner > 1 ? BLOCK : shape.channels <= WARP_WIDTH ? BLOCK / WARP : 1;
  return blocks_for(positions, a_block, LOSS_BLOCKS);
}

template <typename T, typename P>
cudaError_t loss_parts(cudaStream_t stream, const rt_cuda_channels &shape, const void *logits, const int64_t *labels,
                       void *probs, float *parts) {
  const T *z = static_cast<const T *>(logits);
  P *p = static_cast<P *>(probs);
  unsigned blocks = static_cast<unsigned>(loss_blocks(shape));
  if (shape.inner != 1) {
    auto kernel = &loss_runs_kernel<T, P>;
    return RT_LAUNCH(kernel, blocks, BLOCK, 0, stream, z, labels, p, Channels(shape), shape.outer * shape.inner, parts);
  }
  return with_width(shape.channels, [&](auto constant) {
    constexpr int W = decltype(constant)::value;
    bool vector = aligned(logits, probs);
    auto kernel = shape.channels <= WARP_WIDTH ? &loss_rows_kernel<WARP, W, T, P> : &loss_rows_kernel<BLOCK, W, T, P>;
    return RT_LAUNCH(kernel, blocks, BLOCK, 0, stream, z, labels, p, shape.outer, shape.channels, vector, parts);
  });
}

}  // namespace
}  // namespace planrt

using namespace planrt;

int64_t rt_cuda_loss_workspace(rt_cuda_channels shape) {
  return loss_blocks(shape) * static_cast<int64_t>(sizeof(float));
}

cudaError_t rt_cuda_loss(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype probs_dtype, rt_cuda_channels shape,
                         double scale, const void *logits, const int64_t *labels, float *loss, void *probs,
                         void *workspace) {
  float *parts = static_cast<float *>(workspace);
  cudaError_t code = with_types(dtype, probs_dtype, [&](auto tag, auto probs_tag) {
    return loss_parts<decltype(tag), decltype(probs_tag)>(stream, shape, logits, labels, probs, parts);
  });
  if (code != cudaSuccess) return code;
  return RT_LAUNCH(loss_kernel, 1, BLOCK, 0, stream, parts, loss_blocks(shape), scale, loss);
}

cudaError_t rt_cuda_loss_grad(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype probs_dtype,
                              rt_cuda_channels shape, double scale, const void *probs, const int64_t *labels,
                              void *grads) {
  return with_types(dtype, probs_dtype, [&](auto tag, auto probs_tag) {
    using T = decltype(tag);
    using P = decltype(probs_tag);
    LossGrad<P, T> op{Channels(shape), static_cast<const P *>(probs), labels, static_cast<T *>(grads),
                      static_cast<float>(scale)};
    return elementwise(stream, elements_of(shape), aligned(probs, grads), op);
  });
}

int64_t rt_cuda_squares_workspace(int64_t n) {
  return squares_blocks(n) * static_cast<int64_t>(sizeof(float));
}

cudaError_t rt_cuda_squares(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, double scale, const void *x,
                            const void *target, float *loss, void *workspace) {
  float *parts = static_cast<float *>(workspace);
  int64_t blocks = squares_blocks(n);
  cudaError_t code = with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    auto kernel = &squares_kernel<T>;
    return RT_LAUNCH(kernel, static_cast<unsigned>(blocks), BLOCK, 0, stream, static_cast<const T *>(x),
                     static_cast<const T *>(target), n, parts);
  });
  if (code != cudaSuccess) return code;
  return RT_LAUNCH(loss_kernel, 1, BLOCK, 0, stream, parts, blocks, scale, loss);
}
