/* The host's kernels: plain C, one thread, one order of summation, so that the same operands give the same bits
 * wherever they lie. f32, labels i64. Shapes are those the graph's checks admit (planc-graph(5), "Op types"). */
#ifndef PLANRT_HOST_KERNELS_H
#define PLANRT_HOST_KERNELS_H

#include "runtime/shape.h"

typedef struct planrt_kernel {
  const char *type;
  void (*run)(const planrt_call *call, const planrt_launch *launch);
} planrt_kernel;

/* The kernel for an op type, or NULL. */
const planrt_kernel *planrt_kernel_find(const char *type);
extern const planrt_kernel planrt_accumulate_kernel; /* for the role ACCUMULATE */
extern const planrt_kernel planrt_exchange_kernel;   /* for the role EXCHANGE */
extern const planrt_kernel planrt_synthetic_kernel;  /* the stand-in for any op */

/* One file per family. */
void planrt_conv2d(const planrt_call *call, const planrt_launch *launch);
void planrt_conv2d_dgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_conv2d_wgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_linear(const planrt_call *call, const planrt_launch *launch);
void planrt_linear_dgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_linear_wgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_linear_bgrad(const planrt_call *call, const planrt_launch *launch);
void planrt_bias(const planrt_call *call, const planrt_launch *launch);
void planrt_bias_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_relu(const planrt_call *call, const planrt_launch *launch);
void planrt_relu_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_add(const planrt_call *call, const planrt_launch *launch);
void planrt_cast(const planrt_call *call, const planrt_launch *launch);
void planrt_concat(const planrt_call *call, const planrt_launch *launch);
void planrt_concat_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_dropout(const planrt_call *call, const planrt_launch *launch);
void planrt_maxpool2d(const planrt_call *call, const planrt_launch *launch);
void planrt_maxpool2d_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_avgpool2d(const planrt_call *call, const planrt_launch *launch);
void planrt_avgpool2d_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_batchnorm(const planrt_call *call, const planrt_launch *launch);
void planrt_batchnorm_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_batchnorm_infer(const planrt_call *call, const planrt_launch *launch);
void planrt_upsample(const planrt_call *call, const planrt_launch *launch);
void planrt_upsample_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_layernorm(const planrt_call *call, const planrt_launch *launch);
void planrt_layernorm_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_gelu(const planrt_call *call, const planrt_launch *launch);
void planrt_gelu_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_matmul(const planrt_call *call, const planrt_launch *launch);
void planrt_matmul_nt(const planrt_call *call, const planrt_launch *launch);
void planrt_matmul_tn(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_embedding(const planrt_call *call, const planrt_launch *launch);
void planrt_embedding_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_position(const planrt_call *call, const planrt_launch *launch);
void planrt_position_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_mean(const planrt_call *call, const planrt_launch *launch);
void planrt_mean_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_transpose(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax_xent(const planrt_call *call, const planrt_launch *launch);
void planrt_softmax_xent_grad(const planrt_call *call, const planrt_launch *launch);
void planrt_sgd(const planrt_call *call, const planrt_launch *launch);
void planrt_momentum(const planrt_call *call, const planrt_launch *launch);
void planrt_adam(const planrt_call *call, const planrt_launch *launch);

/* Stores, or adds to, an element of an output. */
static inline void planrt_put(const planrt_operand *out, int64_t index, float value) {
  float *at = (float *)out->data + index;
  *at = out->accumulate ? *at + value : value;
}

#endif
