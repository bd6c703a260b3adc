/* Biases and normalisation: what is one per channel or per row. */
#include "runtime/cuda/op_families.h"

/* --- Biases ------------------------------------------------------------------------------------------------------- */

RT_CUDA_RUN(bias) {
  const rt_operand *x = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  return rt_cuda_bias(launch->stream, rt_cuda_dtype_of(x->dtype), rt_cuda_dtype_of(b->dtype),
                      rt_cuda_channels_of(call, x), x->data, b->data, y->data);
}

static cudaError_t sum_channels(const rt_call *call, const rt_cuda_launch *launch, rt_cuda_channels shape) {
  const rt_operand *dy = &call->in[0], *db = &call->out[0];
  return rt_cuda_channel_sums(launch->stream, rt_cuda_dtype_of(dy->dtype), rt_cuda_dtype_of(db->dtype), shape, dy->data,
                              db->data, db->accumulate, call->workspace);
}

RT_CUDA_RUN(bias_grad) {
  return sum_channels(call, launch, rt_cuda_channels_of(call, &call->in[0]));
}
RT_CUDA_WORKSPACE(bias_grad) {
  return rt_cuda_channel_sums_workspace(rt_cuda_channels_of(call, &call->in[0]));
}

RT_CUDA_RUN(linear_bgrad) {
  return sum_channels(call, launch, rt_cuda_rows_of(&call->in[0]));
}
RT_CUDA_WORKSPACE(linear_bgrad) {
  return rt_cuda_channel_sums_workspace(rt_cuda_rows_of(&call->in[0]));
}

/* --- Batch normalisation ------------------------------------------------------------------------------------------ */

static rt_cuda_norm norm_of(const rt_call *call) {
  return (rt_cuda_norm){.momentum = (float)planc_op_real(call->op, "momentum", 0.1),
                        .epsilon = (float)planc_op_real(call->op, "epsilon", 1e-5)};
}

/* In an inference pass the running statistics, its side effects, stand for the batch's. */
RT_CUDA_RUN(batchnorm) {
  rt_cuda_batchnorm_operands at = {.x = call->in[0].data,
                                   .gamma = call->in[1].data,
                                   .beta = call->in[2].data,
                                   .y = call->out[0].data,
                                   .mean = call->out[1].data,
                                   .invstd = call->out[2].data,
                                   .running_mean = call->effects[0].data,
                                   .running_var = call->effects[1].data};
  rt_cuda_norm norm = norm_of(call);
  rt_cuda_channels shape = rt_cuda_channels_of(call, &call->in[0]);
  rt_cuda_dtype dtype = rt_cuda_dtype_of(call->in[0].dtype);
  if (launch->inference) return rt_cuda_batchnorm_given(launch->stream, dtype, shape, &norm, &at);
  return rt_cuda_batchnorm(launch->stream, dtype, shape, &norm, &at, call->workspace);
}
RT_CUDA_WORKSPACE(batchnorm) {
  return rt_cuda_batchnorm_workspace(rt_cuda_channels_of(call, &call->in[0]));
}

/* The workspace takes the inverse deviations. */
RT_CUDA_RUN(batchnorm_infer) {
  rt_cuda_batchnorm_operands at = {.x = call->in[0].data,
                                   .gamma = call->in[1].data,
                                   .beta = call->in[2].data,
                                   .y = call->out[0].data,
                                   .invstd = call->workspace,
                                   .running_mean = call->in[3].data,
                                   .running_var = call->in[4].data};
  rt_cuda_norm norm = norm_of(call);
  return rt_cuda_batchnorm_given(launch->stream, rt_cuda_dtype_of(call->in[0].dtype),
                                 rt_cuda_channels_of(call, &call->in[0]), &norm, &at);
}
RT_CUDA_WORKSPACE(batchnorm_infer) {
  return call->in[3].bytes;
}

/* Of x, gamma, mean, invstd and dy, as both gradients have them. */
static rt_cuda_norm_gradients norm_gradients_of(const rt_call *call) {
  return (rt_cuda_norm_gradients){.x = call->in[0].data,
                                  .gamma = call->in[1].data,
                                  .mean = call->in[2].data,
                                  .invstd = call->in[3].data,
                                  .dy = call->in[4].data,
                                  .dx = call->out[0].data,
                                  .dgamma = call->out[1].data,
                                  .dbeta = call->out[2].data,
                                  .accumulate_gamma = call->out[1].accumulate,
                                  .accumulate_beta = call->out[2].accumulate};
}

RT_CUDA_RUN(batchnorm_grad) {
  rt_cuda_norm_gradients at = norm_gradients_of(call);
  return rt_cuda_batchnorm_grad(launch->stream, rt_cuda_dtype_of(call->in[0].dtype),
                                rt_cuda_channels_of(call, &call->in[0]), &at, call->workspace);
}
RT_CUDA_WORKSPACE(batchnorm_grad) {
  return rt_cuda_batchnorm_grad_workspace(rt_cuda_channels_of(call, &call->in[0]));
}

/* --- Layer normalisation ------------------------------------------------------------------------------------------ */

RT_CUDA_RUN(layernorm) {
  const rt_operand *x = &call->in[0];
  rt_cuda_channels shape = rt_cuda_rows_of(x);
  return rt_cuda_layernorm(launch->stream, rt_cuda_dtype_of(x->dtype), shape.outer, shape.channels,
                           planc_op_real(call->op, "epsilon", 1e-5), x->data, call->in[1].data, call->in[2].data,
                           call->out[0].data, call->out[1].data, call->out[2].data);
}

RT_CUDA_RUN(layernorm_grad) {
  rt_cuda_channels shape = rt_cuda_rows_of(&call->in[0]);
  rt_cuda_norm_gradients at = norm_gradients_of(call);
  return rt_cuda_layernorm_grad(launch->stream, rt_cuda_dtype_of(call->in[0].dtype), shape.outer, shape.channels, &at,
                                call->workspace);
}
RT_CUDA_WORKSPACE(layernorm_grad) {
  rt_cuda_channels shape = rt_cuda_rows_of(&call->in[0]);
  return rt_cuda_layernorm_grad_workspace(shape.outer, shape.channels);
}
