/* Softmax and the loss, embeddings, positions, tokens, and copies that change the order of dimensions. */
#include "runtime/cuda/op_families.h"

/* --- Softmax ------------------------------------------------------------------------------------------------------ */

RT_CUDA_RUN(softmax) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  rt_cuda_channels shape = rt_cuda_rows_of(x);
  return rt_cuda_softmax(launch->stream, rt_cuda_dtype_of(x->dtype), shape.outer, shape.channels, x->data, y->data);
}

RT_CUDA_RUN(softmax_grad) {
  const rt_operand *y = &call->in[0], *dy = &call->in[1], *dx = &call->out[0];
  rt_cuda_channels shape = rt_cuda_rows_of(y);
  return rt_cuda_softmax_grad(launch->stream, rt_cuda_dtype_of(y->dtype), shape.outer, shape.channels, y->data,
                              dy->data, dx->data);
}

/* 1 / positions in the whole batch, so that rounds add up. */
static double mean_scale(const rt_call *call, const rt_operand *labels) {
  double per_sample = call->batch > 0 ? (double)labels->elements / (double)call->batch : 1;
  return 1.0 / ((double)call->job_batch * per_sample);
}

RT_CUDA_RUN(softmax_xent) {
  const rt_operand *logits = &call->in[0], *labels = &call->in[1], *loss = &call->out[0], *probs = &call->out[1];
  return rt_cuda_loss(launch->stream, rt_cuda_dtype_of(logits->dtype), rt_cuda_dtype_of(probs->dtype),
                      rt_cuda_channels_of(call, logits), mean_scale(call, labels), logits->data, labels->data,
                      loss->data, probs->data, call->workspace);
}
RT_CUDA_WORKSPACE(softmax_xent) {
  return rt_cuda_loss_workspace(rt_cuda_channels_of(call, &call->in[0]));
}

RT_CUDA_RUN(softmax_xent_grad) {
  const rt_operand *probs = &call->in[0], *labels = &call->in[1], *grads = &call->out[0];
  return rt_cuda_loss_grad(launch->stream, rt_cuda_dtype_of(grads->dtype), rt_cuda_dtype_of(probs->dtype),
                           rt_cuda_channels_of(call, probs), mean_scale(call, labels), probs->data, labels->data,
                           grads->data);
}

RT_CUDA_RUN(mse) {
  const rt_operand *x = &call->in[0], *target = &call->in[1], *loss = &call->out[0];
  return rt_cuda_squares(launch->stream, rt_cuda_dtype_of(x->dtype), x->elements, mean_scale(call, target), x->data,
                         target->data, loss->data, call->workspace);
}
RT_CUDA_WORKSPACE(mse) {
  return rt_cuda_squares_workspace(call->in[0].elements);
}

RT_CUDA_RUN(mse_grad) {
  const rt_operand *x = &call->in[0], *target = &call->in[1], *dx = &call->out[0];
  return rt_cuda_difference(launch->stream, rt_cuda_dtype_of(dx->dtype), dx->elements, 2 * mean_scale(call, target),
                            x->data, target->data, dx->data);
}

/* --- Embeddings and positions ------------------------------------------------------------------------------------- */

RT_CUDA_RUN(embedding) {
  const rt_operand *ids = &call->in[0], *w = &call->in[1], *y = &call->out[0];
  rt_cuda_channels shape = rt_cuda_rows_of(y);
  return rt_cuda_gather_rows(launch->stream, y->data, w->data, ids->data, shape.outer, w->dims[0],
                             shape.channels * planc_dtype_bytes(y->dtype));
}

RT_CUDA_RUN(embedding_grad) {
  const rt_operand *ids = &call->in[0], *dy = &call->in[1], *dw = &call->out[0];
  rt_cuda_channels shape = rt_cuda_rows_of(dy);
  return rt_cuda_embedding_grad(launch->stream, rt_cuda_dtype_of(dy->dtype), rt_cuda_dtype_of(dw->dtype), shape.outer,
                                dw->dims[0], shape.channels, ids->data, dy->data, dw->data, dw->accumulate,
                                call->workspace);
}
RT_CUDA_WORKSPACE(embedding_grad) {
  return rt_cuda_embedding_grad_workspace(rt_cuda_rows_of(&call->in[1]).outer);
}

/* Positions are channels, samples their rows. */
static rt_cuda_channels positions_of(const rt_operand *x, const rt_operand *p) {
  return (rt_cuda_channels){p->elements > 0 ? x->elements / p->elements : 0, p->elements, 1};
}

RT_CUDA_RUN(position) {
  const rt_operand *x = &call->in[0], *p = &call->in[1], *y = &call->out[0];
  return rt_cuda_bias(launch->stream, rt_cuda_dtype_of(x->dtype), rt_cuda_dtype_of(p->dtype), positions_of(x, p),
                      x->data, p->data, y->data);
}

RT_CUDA_RUN(position_grad) {
  const rt_operand *dy = &call->in[0], *dp = &call->out[0];
  return rt_cuda_channel_sums(launch->stream, rt_cuda_dtype_of(dy->dtype), rt_cuda_dtype_of(dp->dtype),
                              positions_of(dy, dp), dy->data, dp->data, dp->accumulate, call->workspace);
}
RT_CUDA_WORKSPACE(position_grad) {
  return rt_cuda_channel_sums_workspace(positions_of(&call->in[0], &call->out[0]));
}

/* --- Tokens ------------------------------------------------------------------------------------------------------- */

/* Of a tensor (outer, tokens, width). */
typedef struct tokens {
  int64_t outer, count, width;
} tokens;

static tokens tokens_of(const rt_operand *operand) {
  tokens of = {.count = operand->dims[operand->rank - 2], .width = operand->dims[operand->rank - 1]};
  of.outer = of.count * of.width > 0 ? operand->elements / (of.count * of.width) : 0;
  return of;
}

static cudaError_t gather_tokens(const rt_call *call, const rt_cuda_launch *launch, bool mean) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  tokens of = tokens_of(x);
  return rt_cuda_token_sum(launch->stream, rt_cuda_dtype_of(x->dtype), of.outer, of.count, of.width, mean, x->data,
                           y->data);
}

static cudaError_t spread_tokens(const rt_call *call, const rt_cuda_launch *launch, bool mean) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  tokens of = tokens_of(y);
  return rt_cuda_spread(launch->stream, rt_cuda_dtype_of(y->dtype), of.outer, of.count, of.width, mean, x->data,
                        y->data);
}

RT_CUDA_RUN(mean) {
  return gather_tokens(call, launch, true);
}

RT_CUDA_RUN(mean_grad) {
  return spread_tokens(call, launch, true);
}

RT_CUDA_RUN(expand) {
  return spread_tokens(call, launch, false);
}

RT_CUDA_RUN(expand_grad) {
  return gather_tokens(call, launch, false);
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

/* A tensor seen along one axis: `outer` runs of dims[axis] * inner elements, in bytes. */
typedef struct runs {
  int64_t outer, inner_bytes, run_bytes;
} runs;

static runs runs_of(const rt_operand *operand, int64_t axis) {
  runs of = {1, planc_dtype_bytes(operand->dtype), 0};
  for (int32_t d = 0; d < operand->rank; d++) {
    if (d < axis) of.outer *= operand->dims[d];
    if (d > axis) of.inner_bytes *= operand->dims[d];
  }
  of.run_bytes = operand->dims[axis] * of.inner_bytes;
  return of;
}

RT_CUDA_RUN(transpose) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 1);
  int64_t inner_bytes = planc_dtype_bytes(x->dtype);
  for (int64_t d = axis + 2; d < x->rank; d++) inner_bytes *= x->dims[d];
  return rt_cuda_transpose(launch->stream, runs_of(x, axis).outer, x->dims[axis], x->dims[axis + 1], inner_bytes,
                           x->data, y->data);
}

RT_CUDA_RUN(concat) {
  const rt_operand *y = &call->out[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 1), stride = runs_of(y, axis).run_bytes, offset = 0;
  for (int32_t k = 0; k < call->n_in; k++) {
    runs part = runs_of(&call->in[k], axis);
    cudaError_t code = rt_cuda_copy_rows(launch->stream, (char *)y->data + offset, stride, call->in[k].data,
                                         part.run_bytes, part.outer, part.run_bytes);
    if (code != cudaSuccess) return code;
    offset += part.run_bytes;
  }
  return cudaSuccess;
}

/* The part of `whole` that starts `offset` bytes into each of its runs, to `part`. */
static cudaError_t take_part(cudaStream_t stream, const rt_operand *whole, const rt_operand *part, int64_t axis,
                             int64_t offset) {
  runs from = runs_of(whole, axis), to = runs_of(part, axis);
  return rt_cuda_copy_rows(stream, part->data, to.run_bytes, (const char *)whole->data + offset, from.run_bytes,
                           to.outer, to.run_bytes);
}

RT_CUDA_RUN(concat_grad) {
  const rt_operand *dy = &call->in[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 1);
  int64_t offset = planc_op_int(call->op, "offset", 0, 0) * runs_of(dy, axis).inner_bytes;
  return take_part(launch->stream, dy, &call->out[0], axis, offset);
}

RT_CUDA_RUN(split) {
  int64_t axis = planc_op_int(call->op, "axis", 0, 1), offset = 0;
  for (int32_t k = 0; k < call->n_out; k++) {
    cudaError_t code = take_part(launch->stream, &call->in[0], &call->out[k], axis, offset);
    if (code != cudaSuccess) return code;
    offset += runs_of(&call->out[k], axis).run_bytes;
  }
  return cudaSuccess;
}
