/* Ops that treat every element by itself, and optimizers. */
#include "runtime/cuda/op_families.h"

RT_CUDA_RUN(relu) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  return rt_cuda_relu(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, x->data, y->data);
}

RT_CUDA_RUN(relu_grad) {
  const rt_operand *y = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  return rt_cuda_relu_grad(launch->stream, rt_cuda_dtype_of(dx->dtype), dx->elements, y->data, dy->data, dx->data);
}

RT_CUDA_RUN(gelu) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  return rt_cuda_gelu(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, x->data, y->data);
}

RT_CUDA_RUN(gelu_grad) {
  const rt_operand *x = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  return rt_cuda_gelu_grad(launch->stream, rt_cuda_dtype_of(dx->dtype), dx->elements, x->data, dy->data, dx->data);
}

RT_CUDA_RUN(sigmoid) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  return rt_cuda_sigmoid(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, x->data, y->data);
}

RT_CUDA_RUN(sigmoid_grad) {
  const rt_operand *y = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  return rt_cuda_sigmoid_grad(launch->stream, rt_cuda_dtype_of(dx->dtype), dx->elements, y->data, dy->data, dx->data);
}

RT_CUDA_RUN(tanh) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  return rt_cuda_tanh(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, x->data, y->data);
}

RT_CUDA_RUN(tanh_grad) {
  const rt_operand *y = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  return rt_cuda_tanh_grad(launch->stream, rt_cuda_dtype_of(dx->dtype), dx->elements, y->data, dy->data, dx->data);
}

RT_CUDA_RUN(add) {
  const rt_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  return rt_cuda_add(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, a->data, b->data, y->data);
}

static cudaError_t scale_and_shift(const rt_call *call, const rt_cuda_launch *launch, double shift) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  return rt_cuda_affine(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, planc_op_real(call->op, "scale", 1.0),
                        shift, x->data, y->data);
}

RT_CUDA_RUN(affine) {
  return scale_and_shift(call, launch, planc_op_real(call->op, "shift", 0.0));
}

RT_CUDA_RUN(affine_grad) {
  return scale_and_shift(call, launch, 0);
}

RT_CUDA_RUN(mul) {
  const rt_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  return rt_cuda_mul(launch->stream, rt_cuda_dtype_of(y->dtype), y->elements, a->data, b->data, y->data);
}

/* Also the role ACCUMULATE, whose output accumulates always. */
RT_CUDA_RUN(cast) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  return rt_cuda_convert(launch->stream, rt_cuda_dtype_of(x->dtype), rt_cuda_dtype_of(y->dtype), y->elements, x->data,
                         y->data, y->accumulate);
}

/* Forward and backward alike. */
RT_CUDA_RUN(dropout) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  rt_cuda_dtype dtype = rt_cuda_dtype_of(y->dtype);
  if (launch->inference) {
    if (x->data == y->data) return cudaSuccess;
    return rt_cuda_convert(launch->stream, dtype, dtype, y->elements, x->data, y->data, false);
  }
  rt_cuda_dropout of = {.p = planc_op_real(call->op, "p", 0.0),
                        .seed = (uint64_t)planc_op_int(call->op, "seed", 0, 0),
                        .per_sample = call->batch > 0 ? y->elements / call->batch : y->elements,
                        .job_batch = call->job_batch,
                        .sample_offset = call->sample_offset,
                        .iteration = call->iteration,
                        .iterations = call->iterations};
  return rt_cuda_drop(launch->stream, dtype, y->elements, x->data, y->data, &of, launch->step);
}

/* --- Optimizers --------------------------------------------------------------------------------------------------- */

RT_CUDA_RUN(sgd) {
  const rt_operand *grad = &call->in[1], *w = &call->out[0];
  return rt_cuda_sgd(launch->stream, rt_cuda_dtype_of(grad->dtype), w->elements, w->data, grad->data,
                     planc_op_real(call->op, "lr", 0.01), launch->step);
}

RT_CUDA_RUN(momentum) {
  const rt_operand *grad = &call->in[1], *w = &call->out[0];
  return rt_cuda_momentum(launch->stream, rt_cuda_dtype_of(grad->dtype), w->elements, w->data, call->out[1].data,
                          grad->data, planc_op_real(call->op, "lr", 0.01), planc_op_real(call->op, "momentum", 0.9),
                          launch->step);
}

RT_CUDA_RUN(adam) {
  const rt_operand *grad = &call->in[1], *w = &call->out[0];
  rt_cuda_adam_options of = {.rate = planc_op_real(call->op, "lr", 0.001),
                             .beta1 = planc_op_real(call->op, "beta1", 0.9),
                             .beta2 = planc_op_real(call->op, "beta2", 0.999),
                             .epsilon = planc_op_real(call->op, "epsilon", 1e-8),
                             .iteration = call->iteration,
                             .iterations = call->iterations};
  return rt_cuda_adam(launch->stream, rt_cuda_dtype_of(grad->dtype), w->elements, w->data, call->out[1].data,
                      call->out[2].data, grad->data, &of, launch->step);
}
