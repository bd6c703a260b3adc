/* Ops that treat every element by itself, and optimizers. */
#include "runtime/cuda/op_families.h"

PLANRT_CUDA_RUN(relu) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  return planrt_cuda_relu(launch->stream, planrt_cuda_dtype_of(y->dtype), y->elements, x->data, y->data);
}

PLANRT_CUDA_RUN(relu_grad) {
  const planrt_operand *y = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  return planrt_cuda_relu_grad(launch->stream, planrt_cuda_dtype_of(dx->dtype), dx->elements, y->data, dy->data,
                               dx->data);
}

PLANRT_CUDA_RUN(gelu) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  return planrt_cuda_gelu(launch->stream, planrt_cuda_dtype_of(y->dtype), y->elements, x->data, y->data);
}

PLANRT_CUDA_RUN(gelu_grad) {
  const planrt_operand *x = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  return planrt_cuda_gelu_grad(launch->stream, planrt_cuda_dtype_of(dx->dtype), dx->elements, x->data, dy->data,
                               dx->data);
}

PLANRT_CUDA_RUN(add) {
  const planrt_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  return planrt_cuda_add(launch->stream, planrt_cuda_dtype_of(y->dtype), y->elements, a->data, b->data, y->data);
}

/* Also the role ACCUMULATE, whose output accumulates always. */
PLANRT_CUDA_RUN(cast) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  return planrt_cuda_convert(launch->stream, planrt_cuda_dtype_of(x->dtype), planrt_cuda_dtype_of(y->dtype),
                             y->elements, x->data, y->data, y->accumulate);
}

/* Forward and backward alike. */
PLANRT_CUDA_RUN(dropout) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  planrt_cuda_dtype dtype = planrt_cuda_dtype_of(y->dtype);
  if (launch->inference) {
    if (x->data == y->data) return cudaSuccess;
    return planrt_cuda_convert(launch->stream, dtype, dtype, y->elements, x->data, y->data, false);
  }
  planrt_cuda_dropout of = {.p = planc_op_real(call->op, "p", 0.0),
                            .seed = (uint64_t)planc_op_int(call->op, "seed", 0, 0),
                            .per_sample = call->batch > 0 ? y->elements / call->batch : y->elements,
                            .job_batch = call->job_batch,
                            .sample_offset = call->sample_offset,
                            .iteration = call->iteration,
                            .iterations = call->iterations};
  return planrt_cuda_drop(launch->stream, dtype, y->elements, x->data, y->data, &of, launch->step);
}

/* --- Optimizers ------------------------------------------------------------------------------------------------- */

PLANRT_CUDA_RUN(sgd) {
  const planrt_operand *grad = &call->in[1], *w = &call->out[0];
  return planrt_cuda_sgd(launch->stream, planrt_cuda_dtype_of(grad->dtype), w->elements, w->data, grad->data,
                         planc_op_real(call->op, "lr", 0.01), launch->step);
}

PLANRT_CUDA_RUN(momentum) {
  const planrt_operand *grad = &call->in[1], *w = &call->out[0];
  return planrt_cuda_momentum(launch->stream, planrt_cuda_dtype_of(grad->dtype), w->elements, w->data,
                              call->out[1].data, grad->data, planc_op_real(call->op, "lr", 0.01),
                              planc_op_real(call->op, "momentum", 0.9), launch->step);
}

PLANRT_CUDA_RUN(adam) {
  const planrt_operand *grad = &call->in[1], *w = &call->out[0];
  planrt_cuda_adam_options of = {.rate = planc_op_real(call->op, "lr", 0.001),
                                 .beta1 = planc_op_real(call->op, "beta1", 0.9),
                                 .beta2 = planc_op_real(call->op, "beta2", 0.999),
                                 .epsilon = planc_op_real(call->op, "epsilon", 1e-8),
                                 .iteration = call->iteration,
                                 .iterations = call->iterations};
  return planrt_cuda_adam(launch->stream, planrt_cuda_dtype_of(grad->dtype), w->elements, w->data, call->out[1].data,
                          call->out[2].data, grad->data, &of, launch->step);
}
