/* The op table's functions, one file per family, and what they share. */
#ifndef PLANRT_CUDA_OP_FAMILIES_H
#define PLANRT_CUDA_OP_FAMILIES_H

#include "runtime/cuda/ops.h"
#include "runtime/shape.h"

#define RT_CUDA_RUN(name) cudaError_t rt_cuda_op_##name(const rt_call *call, const rt_cuda_launch *launch)
#define RT_CUDA_WORKSPACE(name) int64_t rt_cuda_workspace_##name(const rt_call *call)

/* ops_elementwise.c */
RT_CUDA_RUN(relu);
RT_CUDA_RUN(relu_grad);
RT_CUDA_RUN(gelu);
RT_CUDA_RUN(gelu_grad);
RT_CUDA_RUN(sigmoid);
RT_CUDA_RUN(sigmoid_grad);
RT_CUDA_RUN(tanh);
RT_CUDA_RUN(tanh_grad);
RT_CUDA_RUN(add);
RT_CUDA_RUN(mul);
RT_CUDA_RUN(affine);
RT_CUDA_RUN(affine_grad);
RT_CUDA_RUN(cast);
RT_CUDA_RUN(dropout);
RT_CUDA_RUN(sgd);
RT_CUDA_RUN(momentum);
RT_CUDA_RUN(adam);
/* ops_norm.c */
RT_CUDA_RUN(bias);
RT_CUDA_RUN(bias_grad);
RT_CUDA_WORKSPACE(bias_grad);
RT_CUDA_RUN(linear_bgrad);
RT_CUDA_WORKSPACE(linear_bgrad);
RT_CUDA_RUN(batchnorm);
RT_CUDA_WORKSPACE(batchnorm);
RT_CUDA_RUN(batchnorm_infer);
RT_CUDA_WORKSPACE(batchnorm_infer);
RT_CUDA_RUN(batchnorm_grad);
RT_CUDA_WORKSPACE(batchnorm_grad);
RT_CUDA_RUN(layernorm);
RT_CUDA_RUN(layernorm_grad);
RT_CUDA_WORKSPACE(layernorm_grad);
/* ops_image.c */
RT_CUDA_RUN(maxpool2d);
RT_CUDA_RUN(maxpool2d_grad);
RT_CUDA_RUN(avgpool2d);
RT_CUDA_RUN(avgpool2d_grad);
RT_CUDA_RUN(upsample);
RT_CUDA_RUN(upsample_grad);
/* ops_sequence.c */
RT_CUDA_RUN(softmax);
RT_CUDA_RUN(softmax_grad);
RT_CUDA_RUN(softmax_xent);
RT_CUDA_WORKSPACE(softmax_xent);
RT_CUDA_RUN(softmax_xent_grad);
RT_CUDA_RUN(mse);
RT_CUDA_WORKSPACE(mse);
RT_CUDA_RUN(mse_grad);
RT_CUDA_RUN(embedding);
RT_CUDA_RUN(embedding_grad);
RT_CUDA_WORKSPACE(embedding_grad);
RT_CUDA_RUN(position);
RT_CUDA_RUN(position_grad);
RT_CUDA_WORKSPACE(position_grad);
RT_CUDA_RUN(mean);
RT_CUDA_RUN(mean_grad);
RT_CUDA_RUN(expand);
RT_CUDA_RUN(expand_grad);
RT_CUDA_RUN(transpose);
RT_CUDA_RUN(concat);
RT_CUDA_RUN(concat_grad);
RT_CUDA_RUN(split);
/* ops_synthetic.c */
RT_CUDA_RUN(synthetic);

/* --- Operands ----------------------------------------------------------------------------------------------------- */

static inline rt_cuda_dtype rt_cuda_dtype_of(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_bf16 ? RT_CUDA_BF16 : RT_CUDA_F32;
}

static inline rt_cuda_channels rt_cuda_channels_of(const rt_call *call, const rt_operand *operand) {
  rt_channels shape = rt_channels_of(call, operand);
  return (rt_cuda_channels){shape.outer, shape.channels, shape.inner};
}

/* An operand as rows of its last dimension. */
static inline rt_cuda_channels rt_cuda_rows_of(const rt_operand *operand) {
  int64_t width = operand->dims[operand->rank - 1];
  return (rt_cuda_channels){width > 0 ? operand->elements / width : 0, width, 1};
}

#endif
