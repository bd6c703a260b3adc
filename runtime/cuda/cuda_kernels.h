/* The backend's own kernels, as functions that enqueue them. Nothing here knows planc: operands are device memory of
 * stated shapes. A function that has nothing to do launches nothing. Sums run along fixed trees: equal operands give
 * equal bits wherever they lie, and whatever else runs. `n`, `rows` and the like count elements. */
#ifndef PLANRT_CUDA_KERNELS_H
#define PLANRT_CUDA_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cuda/kernels/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of activations and what goes with them; what has a type of its own here is of theirs, or f32. */
typedef enum planrt_cuda_dtype { PLANRT_CUDA_F32, PLANRT_CUDA_BF16 } planrt_cuda_dtype;

/* A tensor with a channel dimension: element (o, c, i) is number (o * channels + c) * inner + i. */
typedef struct planrt_cuda_channels {
  int64_t outer, channels, inner;
} planrt_cuda_channels;

/* --- Elementwise (elementwise.cu): all of these may work in place ------------------------------------------------- */

cudaError_t planrt_cuda_relu(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t n, const void *x, void *y);
cudaError_t planrt_cuda_relu_grad(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t n, const void *y,
                                  const void *dy, void *dx);
cudaError_t planrt_cuda_gelu(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t n, const void *x, void *y);
cudaError_t planrt_cuda_gelu_grad(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t n, const void *x,
                                  const void *dy, void *dx);
cudaError_t planrt_cuda_add(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t n, const void *a, const void *b,
                            void *y);
/* y = x, or y += x, as another type or the same. */
cudaError_t planrt_cuda_convert(cudaStream_t stream, planrt_cuda_dtype from, planrt_cuda_dtype to, int64_t n,
                                const void *x, void *y, bool accumulate);

typedef struct planrt_cuda_dropout {
  double p;
  uint64_t seed;
  int64_t per_sample, job_batch, sample_offset; /* elements; samples */
  int64_t iteration, iterations;                /* within the period; per period */
} planrt_cuda_dropout;
cudaError_t planrt_cuda_drop(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t n, const void *x, void *y,
                             const planrt_cuda_dropout *of, planrt_cuda_step_source step);

/* --- Optimizers (optimizer.cu), in place; `rate` where the step has none --------------------------------------------
 */

cudaError_t planrt_cuda_sgd(cudaStream_t stream, planrt_cuda_dtype grad_dtype, int64_t n, float *w, const void *grad,
                            double rate, planrt_cuda_step_source step);
cudaError_t planrt_cuda_momentum(cudaStream_t stream, planrt_cuda_dtype grad_dtype, int64_t n, float *w, float *v,
                                 const void *grad, double rate, double decay, planrt_cuda_step_source step);
typedef struct planrt_cuda_adam_options {
  double rate, beta1, beta2, epsilon;
  int64_t iteration, iterations; /* within the period; per period */
} planrt_cuda_adam_options;
cudaError_t planrt_cuda_adam(cudaStream_t stream, planrt_cuda_dtype grad_dtype, int64_t n, float *w, float *m, float *v,
                             const void *grad, const planrt_cuda_adam_options *of, planrt_cuda_step_source step);

/* --- Biases, positions, tokens (bias.cu, sums.cu) --------------------------------------------------------------------
 */

/* y = x + b by channel; may work in place. */
cudaError_t planrt_cuda_bias(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_dtype bias_dtype,
                             planrt_cuda_channels shape, const void *x, const void *b, void *y);
/* sums[c] = or += the sum over channel c. */
cudaError_t planrt_cuda_channel_sums(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_dtype sum_dtype,
                                     planrt_cuda_channels shape, const void *x, void *sums, bool accumulate,
                                     void *workspace);
int64_t planrt_cuda_channel_sums_workspace(planrt_cuda_channels shape);
/* y[o, c] = the mean over t of x[o, t, c]. */
cudaError_t planrt_cuda_token_mean(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t outer, int64_t tokens,
                                   int64_t width, const void *x, void *y);
/* dx[o, t, c] = dy[o, c] / tokens. */
cudaError_t planrt_cuda_spread(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t outer, int64_t tokens,
                               int64_t width, const void *dy, void *dx);

/* --- Normalisation (batchnorm.cu, layernorm.cu) ----------------------------------------------------------------------
 */

typedef struct planrt_cuda_norm {
  float momentum, epsilon;
} planrt_cuda_norm;
typedef struct planrt_cuda_batchnorm_operands {
  const void *x;
  const float *gamma, *beta;
  void *y;
  float *mean, *invstd;
  float *running_mean, *running_var;
} planrt_cuda_batchnorm_operands;
/* With the batch's statistics, which move the running ones, unless those are NULL. */
cudaError_t planrt_cuda_batchnorm(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_channels shape,
                                  const planrt_cuda_norm *of, const planrt_cuda_batchnorm_operands *at,
                                  void *workspace);
int64_t planrt_cuda_batchnorm_workspace(planrt_cuda_channels shape);
/* With the running statistics, which stay; `mean` may be NULL. */
cudaError_t planrt_cuda_batchnorm_given(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_channels shape,
                                        const planrt_cuda_norm *of, const planrt_cuda_batchnorm_operands *at);

typedef struct planrt_cuda_norm_gradients {
  const void *x, *dy;
  const float *gamma, *mean, *invstd; /* mean and invstd by channel, or by row */
  void *dx;
  float *dgamma, *dbeta;
  bool accumulate_gamma, accumulate_beta;
} planrt_cuda_norm_gradients;
cudaError_t planrt_cuda_batchnorm_grad(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_channels shape,
                                       const planrt_cuda_norm_gradients *at, void *workspace);
int64_t planrt_cuda_batchnorm_grad_workspace(planrt_cuda_channels shape);

cudaError_t planrt_cuda_layernorm(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t rows, int64_t width,
                                  double epsilon, const void *x, const float *gamma, const float *beta, void *y,
                                  float *means, float *invstds);
cudaError_t planrt_cuda_layernorm_grad(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t rows, int64_t width,
                                       const planrt_cuda_norm_gradients *at, void *workspace);
int64_t planrt_cuda_layernorm_grad_workspace(int64_t rows, int64_t width);

/* --- Softmax (softmax.cu, in place too) and the loss (loss.cu)
 * -------------------------------------------------------- */

cudaError_t planrt_cuda_softmax(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t rows, int64_t width,
                                const void *x, void *y);
cudaError_t planrt_cuda_softmax_grad(cudaStream_t stream, planrt_cuda_dtype dtype, int64_t rows, int64_t width,
                                     const void *y, const void *dy, void *dx);
/* The loss is the sum over positions times `scale`. */
cudaError_t planrt_cuda_loss(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_dtype probs_dtype,
                             planrt_cuda_channels shape, double scale, const void *logits, const int64_t *labels,
                             float *loss, void *probs, void *workspace);
int64_t planrt_cuda_loss_workspace(planrt_cuda_channels shape);
cudaError_t planrt_cuda_loss_grad(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_dtype probs_dtype,
                                  planrt_cuda_channels shape, double scale, const void *probs, const int64_t *labels,
                                  void *grads);

/* --- Windows (pool.cu, upsample.cu)
 * ------------------------------------------------------------------------------------ */

typedef struct planrt_cuda_image {
  int64_t n, c, h, w;
} planrt_cuda_image;
typedef struct planrt_cuda_pooling {
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  planrt_cuda_image in, out;
  bool channels_last;
} planrt_cuda_pooling;
cudaError_t planrt_cuda_maxpool(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                const void *x, void *y);
/* y is what the forward op made of x. */
cudaError_t planrt_cuda_maxpool_grad(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                     const void *x, const void *y, const void *dy, void *dx);
cudaError_t planrt_cuda_avgpool(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                const void *x, void *y);
cudaError_t planrt_cuda_avgpool_grad(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_pooling *of,
                                     const void *dy, void *dx);

typedef enum planrt_cuda_blending {
  PLANRT_CUDA_NEAREST,
  PLANRT_CUDA_BILINEAR,
  PLANRT_CUDA_ALIGNED
} planrt_cuda_blending;
typedef struct planrt_cuda_upsampling {
  int64_t scale;
  planrt_cuda_blending blending;
  bool channels_last;
  planrt_cuda_image in, out;
} planrt_cuda_upsampling;
cudaError_t planrt_cuda_upsample(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_upsampling *of,
                                 const void *x, void *y);
cudaError_t planrt_cuda_upsample_grad(cudaStream_t stream, planrt_cuda_dtype dtype, const planrt_cuda_upsampling *of,
                                      const void *dy, void *dx);

/* --- Copies (copy.cu) and embeddings (embedding.cu): sizes in bytes, even
 * ---------------------------------------------- */

cudaError_t planrt_cuda_copy_rows(cudaStream_t stream, void *to, int64_t to_stride, const void *from,
                                  int64_t from_stride, int64_t rows, int64_t bytes);
/* Row r of `to` is row ids[r] of the table, or zeros where it has none. */
cudaError_t planrt_cuda_gather_rows(cudaStream_t stream, void *to, const void *table, const int64_t *ids, int64_t rows,
                                    int64_t entries, int64_t bytes);
/* to[o, j, i] = from[o, i, j] for elements of `bytes` bytes, `from` having `rows` times `columns` of them. */
cudaError_t planrt_cuda_transpose(cudaStream_t stream, int64_t outer, int64_t rows, int64_t columns, int64_t bytes,
                                  const void *from, void *to);
/* table[e] = or += the sum of the rows of `grads` with id e. */
cudaError_t planrt_cuda_embedding_grad(cudaStream_t stream, planrt_cuda_dtype dtype, planrt_cuda_dtype table_dtype,
                                       int64_t rows, int64_t entries, int64_t width, const int64_t *ids,
                                       const void *grads, void *table, bool accumulate, void *workspace);
int64_t planrt_cuda_embedding_grad_workspace(int64_t rows);

/* --- Beside ops (device.cu)
 * --------------------------------------------------------------------------------------------- */

/* Adds to *sum (device memory, 0 before the first of a digest) a hash of `bytes` bytes at `data` and of `seed`: sums of
 * mixed words, so that the order in which blocks run does not matter. */
cudaError_t planrt_cuda_digest(cudaStream_t stream, uint64_t seed, const void *data, int64_t bytes, uint64_t *sum);
/* Fills memory with bytes drawn from *key, which is in device memory, and `salt`. */
cudaError_t planrt_cuda_draw(cudaStream_t stream, const uint64_t *key, uint64_t salt, void *out, int64_t bytes);
cudaError_t planrt_cuda_set_word(cudaStream_t stream, uint64_t *at, uint64_t value);
/* Keeps the stream busy for about `ns`. */
cudaError_t planrt_cuda_delay(cudaStream_t stream, int64_t ns);
/* Writes `value` to device memory, from the launch's own arguments: nothing of the host's is read later. */
cudaError_t planrt_cuda_set_step(cudaStream_t stream, planrt_cuda_step *at, const planrt_cuda_step *value);

#ifdef __cplusplus
}
#endif

#endif
