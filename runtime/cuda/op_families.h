/* The op table's functions, one file per family, and what they share. */
#ifndef PLANRT_CUDA_OP_FAMILIES_H
#define PLANRT_CUDA_OP_FAMILIES_H

#include "runtime/cuda/ops.h"
#include "runtime/shape.h"

#define PLANRT_CUDA_RUN(name) \
  cudaError_t planrt_cuda_op_##name(const planrt_call *call, const planrt_cuda_launch *launch)
#define PLANRT_CUDA_WORKSPACE(name) int64_t planrt_cuda_workspace_##name(const planrt_call *call)

/* ops_elementwise.c */
PLANRT_CUDA_RUN(relu);
PLANRT_CUDA_RUN(relu_grad);
PLANRT_CUDA_RUN(gelu);
PLANRT_CUDA_RUN(gelu_grad);
PLANRT_CUDA_RUN(add);
PLANRT_CUDA_RUN(cast);
PLANRT_CUDA_RUN(dropout);
PLANRT_CUDA_RUN(sgd);
PLANRT_CUDA_RUN(momentum);
PLANRT_CUDA_RUN(adam);
/* ops_norm.c */
PLANRT_CUDA_RUN(bias);
PLANRT_CUDA_RUN(bias_grad);
PLANRT_CUDA_WORKSPACE(bias_grad);
PLANRT_CUDA_RUN(linear_bgrad);
PLANRT_CUDA_WORKSPACE(linear_bgrad);
PLANRT_CUDA_RUN(batchnorm);
PLANRT_CUDA_WORKSPACE(batchnorm);
PLANRT_CUDA_RUN(batchnorm_infer);
PLANRT_CUDA_WORKSPACE(batchnorm_infer);
PLANRT_CUDA_RUN(batchnorm_grad);
PLANRT_CUDA_WORKSPACE(batchnorm_grad);
PLANRT_CUDA_RUN(layernorm);
PLANRT_CUDA_RUN(layernorm_grad);
PLANRT_CUDA_WORKSPACE(layernorm_grad);
/* ops_image.c */
PLANRT_CUDA_RUN(maxpool2d);
PLANRT_CUDA_RUN(maxpool2d_grad);
PLANRT_CUDA_RUN(avgpool2d);
PLANRT_CUDA_RUN(avgpool2d_grad);
PLANRT_CUDA_RUN(upsample);
PLANRT_CUDA_RUN(upsample_grad);
/* ops_sequence.c */
PLANRT_CUDA_RUN(softmax);
PLANRT_CUDA_RUN(softmax_grad);
PLANRT_CUDA_RUN(softmax_xent);
PLANRT_CUDA_WORKSPACE(softmax_xent);
PLANRT_CUDA_RUN(softmax_xent_grad);
PLANRT_CUDA_RUN(embedding);
PLANRT_CUDA_RUN(embedding_grad);
PLANRT_CUDA_WORKSPACE(embedding_grad);
PLANRT_CUDA_RUN(position);
PLANRT_CUDA_RUN(position_grad);
PLANRT_CUDA_WORKSPACE(position_grad);
PLANRT_CUDA_RUN(mean);
PLANRT_CUDA_RUN(mean_grad);
PLANRT_CUDA_RUN(transpose);
PLANRT_CUDA_RUN(concat);
PLANRT_CUDA_RUN(concat_grad);
/* ops_synthetic.c */
PLANRT_CUDA_RUN(synthetic);

/* --- Operands --------------------------------------------------------------------------------------------------- */

static inline planrt_cuda_dtype planrt_cuda_dtype_of(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_bf16 ? PLANRT_CUDA_BF16 : PLANRT_CUDA_F32;
}

static inline planrt_cuda_channels planrt_cuda_channels_of(const planrt_call *call, const planrt_operand *operand) {
  planrt_channels shape = planrt_channels_of(call, operand);
  return (planrt_cuda_channels){shape.outer, shape.channels, shape.inner};
}

/* An operand as rows of its last dimension. */
static inline planrt_cuda_channels planrt_cuda_rows_of(const planrt_operand *operand) {
  int64_t width = operand->dims[operand->rank - 1];
  return (planrt_cuda_channels){width > 0 ? operand->elements / width : 0, width, 1};
}

#endif
