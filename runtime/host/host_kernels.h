/* The host's kernels: plain C, one thread, one order of summation, so that the same operands give the same bits
 * wherever they lie. f32, labels i64. Shapes are those the graph's checks admit (planc-graph(5), "Op types"). */
#ifndef PLANRT_HOST_KERNELS_H
#define PLANRT_HOST_KERNELS_H

#include "graph/optypes.h"
#include "runtime/shape.h"

typedef struct rt_kernel {
  void (*run)(const rt_call *call, const rt_launch *launch);
} rt_kernel;

/* The kernel for an op type, or NULL. */
const rt_kernel *rt_kernel_find(pl_optype_id type);
extern const rt_kernel rt_accumulate_kernel; /* for the role ACCUMULATE */
extern const rt_kernel rt_exchange_kernel;   /* for the role EXCHANGE */
extern const rt_kernel rt_synthetic_kernel;  /* the stand-in for any op */

/* One file per family. */
void rt_conv2d(const rt_call *call, const rt_launch *launch);
void rt_conv2d_dgrad(const rt_call *call, const rt_launch *launch);
void rt_conv2d_wgrad(const rt_call *call, const rt_launch *launch);
void rt_linear(const rt_call *call, const rt_launch *launch);
void rt_linear_dgrad(const rt_call *call, const rt_launch *launch);
void rt_linear_wgrad(const rt_call *call, const rt_launch *launch);
void rt_linear_bgrad(const rt_call *call, const rt_launch *launch);
void rt_bias(const rt_call *call, const rt_launch *launch);
void rt_bias_grad(const rt_call *call, const rt_launch *launch);
void rt_relu(const rt_call *call, const rt_launch *launch);
void rt_relu_grad(const rt_call *call, const rt_launch *launch);
void rt_sigmoid(const rt_call *call, const rt_launch *launch);
void rt_sigmoid_grad(const rt_call *call, const rt_launch *launch);
void rt_tanh(const rt_call *call, const rt_launch *launch);
void rt_tanh_grad(const rt_call *call, const rt_launch *launch);
void rt_mul(const rt_call *call, const rt_launch *launch);
void rt_add(const rt_call *call, const rt_launch *launch);
void rt_affine(const rt_call *call, const rt_launch *launch);
void rt_affine_grad(const rt_call *call, const rt_launch *launch);
void rt_cast(const rt_call *call, const rt_launch *launch);
void rt_concat(const rt_call *call, const rt_launch *launch);
void rt_split(const rt_call *call, const rt_launch *launch);
void rt_concat_grad(const rt_call *call, const rt_launch *launch);
void rt_dropout(const rt_call *call, const rt_launch *launch);
void rt_maxpool2d(const rt_call *call, const rt_launch *launch);
void rt_maxpool2d_grad(const rt_call *call, const rt_launch *launch);
void rt_avgpool2d(const rt_call *call, const rt_launch *launch);
void rt_avgpool2d_grad(const rt_call *call, const rt_launch *launch);
void rt_batchnorm(const rt_call *call, const rt_launch *launch);
void rt_batchnorm_grad(const rt_call *call, const rt_launch *launch);
void rt_batchnorm_infer(const rt_call *call, const rt_launch *launch);
void rt_upsample(const rt_call *call, const rt_launch *launch);
void rt_upsample_grad(const rt_call *call, const rt_launch *launch);
void rt_layernorm(const rt_call *call, const rt_launch *launch);
void rt_layernorm_grad(const rt_call *call, const rt_launch *launch);
void rt_gelu(const rt_call *call, const rt_launch *launch);
void rt_gelu_grad(const rt_call *call, const rt_launch *launch);
void rt_matmul(const rt_call *call, const rt_launch *launch);
void rt_matmul_nt(const rt_call *call, const rt_launch *launch);
void rt_matmul_tn(const rt_call *call, const rt_launch *launch);
void rt_softmax(const rt_call *call, const rt_launch *launch);
void rt_softmax_grad(const rt_call *call, const rt_launch *launch);
void rt_embedding(const rt_call *call, const rt_launch *launch);
void rt_embedding_grad(const rt_call *call, const rt_launch *launch);
void rt_position(const rt_call *call, const rt_launch *launch);
void rt_position_grad(const rt_call *call, const rt_launch *launch);
void rt_mean(const rt_call *call, const rt_launch *launch);
void rt_mean_grad(const rt_call *call, const rt_launch *launch);
void rt_expand(const rt_call *call, const rt_launch *launch);
void rt_expand_grad(const rt_call *call, const rt_launch *launch);
void rt_transpose(const rt_call *call, const rt_launch *launch);
void rt_softmax_xent(const rt_call *call, const rt_launch *launch);
void rt_mse(const rt_call *call, const rt_launch *launch);
void rt_mse_grad(const rt_call *call, const rt_launch *launch);
void rt_softmax_xent_grad(const rt_call *call, const rt_launch *launch);
void rt_sgd(const rt_call *call, const rt_launch *launch);
void rt_momentum(const rt_call *call, const rt_launch *launch);
void rt_adam(const rt_call *call, const rt_launch *launch);

/* Stores, or adds to, an element of an output. */
static inline void rt_put(const rt_operand *out, int64_t index, float value) {
  float *at = (float *)out->data + index;
  *at = out->accumulate ? *at + value : value;
}

#endif
