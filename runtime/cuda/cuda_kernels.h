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
typedef enum rt_cuda_dtype { RT_CUDA_F32, RT_CUDA_BF16 } rt_cuda_dtype;

/* A tensor with a channel dimension: element (o, c, i) is number (o * channels + c) * inner + i. */
typedef struct rt_cuda_channels {
  int64_t outer, channels, inner;
} rt_cuda_channels;

/* --- Elementwise (elementwise.cu): all of these may work in place ------------------------------------------------- */

cudaError_t rt_cuda_relu(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y);
cudaError_t rt_cuda_relu_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *y, const void *dy,
                              void *dx);
cudaError_t rt_cuda_gelu(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y);
cudaError_t rt_cuda_gelu_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, const void *dy,
                              void *dx);
cudaError_t rt_cuda_sigmoid(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y);
cudaError_t rt_cuda_sigmoid_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *y, const void *dy,
                                 void *dx);
cudaError_t rt_cuda_tanh(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y);
cudaError_t rt_cuda_tanh_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *y, const void *dy,
                              void *dx);
cudaError_t rt_cuda_add(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *a, const void *b, void *y);
cudaError_t rt_cuda_mul(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *a, const void *b, void *y);
/* y = scale x + shift. */
cudaError_t rt_cuda_affine(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, double scale, double shift,
                           const void *x, void *y);
/* y = scale (a - b). */
cudaError_t rt_cuda_difference(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, double scale, const void *a,
                               const void *b, void *y);
/* y = x, or y += x, as another type or the same. */
cudaError_t rt_cuda_convert(cudaStream_t stream, rt_cuda_dtype from, rt_cuda_dtype to, int64_t n, const void *x,
                            void *y, bool accumulate);

typedef struct rt_cuda_dropout {
  double p;
  uint64_t seed;
  int64_t per_sample, job_batch, sample_offset; /* elements; samples */
  int64_t iteration, iterations;                /* within the period; per period */
} rt_cuda_dropout;
cudaError_t rt_cuda_drop(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, const void *x, void *y,
                         const rt_cuda_dropout *of, rt_cuda_step_source step);

/* --- Optimizers (optimizer.cu), in place; `rate` where the step has none ------------------------------------------ */

cudaError_t rt_cuda_sgd(cudaStream_t stream, rt_cuda_dtype grad_dtype, int64_t n, float *w, const void *grad,
                        double rate, rt_cuda_step_source step);
cudaError_t rt_cuda_momentum(cudaStream_t stream, rt_cuda_dtype grad_dtype, int64_t n, float *w, float *v,
                             const void *grad, double rate, double decay, rt_cuda_step_source step);
typedef struct rt_cuda_adam_options {
  double rate, beta1, beta2, epsilon;
  int64_t iteration, iterations; /* within the period; per period */
} rt_cuda_adam_options;
cudaError_t rt_cuda_adam(cudaStream_t stream, rt_cuda_dtype grad_dtype, int64_t n, float *w, float *m, float *v,
                         const void *grad, const rt_cuda_adam_options *of, rt_cuda_step_source step);

/* --- Biases, positions, tokens (bias.cu, sums.cu) ----------------------------------------------------------------- */

/* y = x + b by channel; may work in place. */
cudaError_t rt_cuda_bias(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype bias_dtype, rt_cuda_channels shape,
                         const void *x, const void *b, void *y);
/* sums[c] = or += the sum over channel c. */
cudaError_t rt_cuda_channel_sums(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype sum_dtype,
                                 rt_cuda_channels shape, const void *x, void *sums, bool accumulate, void *workspace);
int64_t rt_cuda_channel_sums_workspace(rt_cuda_channels shape);
/* y[o, c] = the sum, or the `mean`, over t of x[o, t, c]. */
cudaError_t rt_cuda_token_sum(cudaStream_t stream, rt_cuda_dtype dtype, int64_t outer, int64_t tokens, int64_t width,
                              bool mean, const void *x, void *y);
/* y[o, t, c] = x[o, c], of a `mean` divided by tokens. */
cudaError_t rt_cuda_spread(cudaStream_t stream, rt_cuda_dtype dtype, int64_t outer, int64_t tokens, int64_t width,
                           bool mean, const void *x, void *y);

/* --- Normalisation (batchnorm.cu, layernorm.cu) ------------------------------------------------------------------- */

typedef struct rt_cuda_norm {
  float momentum, epsilon;
} rt_cuda_norm;
typedef struct rt_cuda_batchnorm_operands {
  const void *x;
  const float *gamma, *beta;
  void *y;
  float *mean, *invstd;
  float *running_mean, *running_var;
} rt_cuda_batchnorm_operands;
/* With the batch's statistics, which move the running ones, unless those are NULL. */
cudaError_t rt_cuda_batchnorm(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_channels shape, const rt_cuda_norm *of,
                              const rt_cuda_batchnorm_operands *at, void *workspace);
int64_t rt_cuda_batchnorm_workspace(rt_cuda_channels shape);
/* With the running statistics, which stay; `mean` may be NULL. */
cudaError_t rt_cuda_batchnorm_given(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_channels shape,
                                    const rt_cuda_norm *of, const rt_cuda_batchnorm_operands *at);

typedef struct rt_cuda_norm_gradients {
  const void *x, *dy;
  const float *gamma, *mean, *invstd; /* mean and invstd by channel, or by row */
  void *dx;
  float *dgamma, *dbeta;
  bool accumulate_gamma, accumulate_beta;
} rt_cuda_norm_gradients;
cudaError_t rt_cuda_batchnorm_grad(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_channels shape,
                                   const rt_cuda_norm_gradients *at, void *workspace);
int64_t rt_cuda_batchnorm_grad_workspace(rt_cuda_channels shape);

cudaError_t rt_cuda_layernorm(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width, double epsilon,
                              const void *x, const float *gamma, const float *beta, void *y, float *means,
                              float *invstds);
cudaError_t rt_cuda_layernorm_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width,
                                   const rt_cuda_norm_gradients *at, void *workspace);
int64_t rt_cuda_layernorm_grad_workspace(int64_t rows, int64_t width);

/* --- Softmax (softmax.cu, in place too) and the loss (loss.cu) ---------------------------------------------------- */

cudaError_t rt_cuda_softmax(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width, const void *x,
                            void *y);
cudaError_t rt_cuda_softmax_grad(cudaStream_t stream, rt_cuda_dtype dtype, int64_t rows, int64_t width, const void *y,
                                 const void *dy, void *dx);
/* The loss is the sum over positions times `scale`. */
cudaError_t rt_cuda_loss(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype probs_dtype, rt_cuda_channels shape,
                         double scale, const void *logits, const int64_t *labels, float *loss, void *probs,
                         void *workspace);
int64_t rt_cuda_loss_workspace(rt_cuda_channels shape);
cudaError_t rt_cuda_loss_grad(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype probs_dtype,
                              rt_cuda_channels shape, double scale, const void *probs, const int64_t *labels,
                              void *grads);

/* The loss is the sum of squares of x - target times `scale`. */
cudaError_t rt_cuda_squares(cudaStream_t stream, rt_cuda_dtype dtype, int64_t n, double scale, const void *x,
                            const void *target, float *loss, void *workspace);
int64_t rt_cuda_squares_workspace(int64_t n);

/* --- Windows (pool.cu, upsample.cu) ------------------------------------------------------------------------------- */

typedef struct rt_cuda_image {
  int64_t n, c, h, w;
} rt_cuda_image;
typedef struct rt_cuda_pooling {
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  rt_cuda_image in, out;
  bool channels_last;
} rt_cuda_pooling;
cudaError_t rt_cuda_maxpool(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *x,
                            void *y);
/* y is what the forward op made of x. */
cudaError_t rt_cuda_maxpool_grad(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *x,
                                 const void *y, const void *dy, void *dx);
cudaError_t rt_cuda_avgpool(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *x,
                            void *y);
cudaError_t rt_cuda_avgpool_grad(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_pooling *of, const void *dy,
                                 void *dx);

typedef enum rt_cuda_blending { RT_CUDA_NEAREST, RT_CUDA_BILINEAR, RT_CUDA_ALIGNED } rt_cuda_blending;
typedef struct rt_cuda_upsampling {
  int64_t scale;
  rt_cuda_blending blending;
  bool channels_last;
  rt_cuda_image in, out;
} rt_cuda_upsampling;
cudaError_t rt_cuda_upsample(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_upsampling *of, const void *x,
                             void *y);
cudaError_t rt_cuda_upsample_grad(cudaStream_t stream, rt_cuda_dtype dtype, const rt_cuda_upsampling *of,
                                  const void *dy, void *dx);

/* --- Copies (copy.cu) and embeddings (embedding.cu): sizes in bytes, even ----------------------------------------- */

cudaError_t rt_cuda_copy_rows(cudaStream_t stream, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                              int64_t rows, int64_t bytes);
/* Row r of `to` is row ids[r] of the table, or zeros where it has none. */
cudaError_t rt_cuda_gather_rows(cudaStream_t stream, void *to, const void *table, const int64_t *ids, int64_t rows,
                                int64_t entries, int64_t bytes);
/* Planes of h x w pixels of `bytes` bytes; in the lattice are those that a stride meets, rows x columns of them. */
typedef struct rt_cuda_lattice {
  int64_t planes, h, w, rows, columns, stride_h, stride_w, bytes;
} rt_cuda_lattice;
/* `to` has the lattice's pixels side by side. */
cudaError_t rt_cuda_pick(cudaStream_t stream, const rt_cuda_lattice *of, const void *from, void *to);
/* Puts such pixels into the lattice, and zeros between them. */
cudaError_t rt_cuda_set_apart(cudaStream_t stream, const rt_cuda_lattice *of, const void *from, void *to);
/* to[o, j, i] = from[o, i, j] for elements of `bytes` bytes, `from` having `rows` times `columns` of them. */
cudaError_t rt_cuda_transpose(cudaStream_t stream, int64_t outer, int64_t rows, int64_t columns, int64_t bytes,
                              const void *from, void *to);
/* table[e] = or += the sum of the rows of `grads` with id e. */
cudaError_t rt_cuda_embedding_grad(cudaStream_t stream, rt_cuda_dtype dtype, rt_cuda_dtype table_dtype, int64_t rows,
                                   int64_t entries, int64_t width, const int64_t *ids, const void *grads, void *table,
                                   bool accumulate, void *workspace);
int64_t rt_cuda_embedding_grad_workspace(int64_t rows);

/* --- Beside ops (device.cu) --------------------------------------------------------------------------------------- */

/* Adds to *sum (device memory, 0 before the first of a digest) a hash of `bytes` bytes at `data` and of `seed`: sums of
 * mixed words, so that the order in which blocks run does not matter. */
cudaError_t rt_cuda_digest(cudaStream_t stream, uint64_t seed, const void *data, int64_t bytes, uint64_t *sum);
/* Fills memory with bytes drawn from *key, which is in device memory, and `salt`. */
cudaError_t rt_cuda_draw(cudaStream_t stream, const uint64_t *key, uint64_t salt, void *out, int64_t bytes);
cudaError_t rt_cuda_set_word(cudaStream_t stream, uint64_t *at, uint64_t value);
/* Keeps the stream busy for about `ns`. */
cudaError_t rt_cuda_delay(cudaStream_t stream, int64_t ns);
/* Writes `value` to device memory, from the launch's own arguments: nothing of the host's is read later. */
cudaError_t rt_cuda_set_step(cudaStream_t stream, rt_cuda_step *at, const rt_cuda_step *value);

#ifdef __cplusplus
}
#endif

#endif
