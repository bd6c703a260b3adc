/* Pooling and up-sampling of images. */
#include "graph/optypes.h"
#include "runtime/cuda/op_families.h"

static planrt_cuda_image image_of(const planrt_call *call, const planrt_operand *operand) {
  planrt_image image = planrt_image_of(call, operand);
  return (planrt_cuda_image){image.n, image.c, image.h, image.w};
}

static planrt_cuda_pooling pooling_of(const planrt_call *call, const planrt_operand *in, const planrt_operand *out) {
  const planc_op *op = call->op;
  return (planrt_cuda_pooling){.kernel_h = planc_op_int(op, "kernel", 0, 1),
                               .kernel_w = planc_op_int(op, "kernel", 1, 1),
                               .stride_h = planc_op_int(op, "stride", 0, 1),
                               .stride_w = planc_op_int(op, "stride", 1, 1),
                               .pad_h = planc_op_int(op, "pad", 0, 0),
                               .pad_w = planc_op_int(op, "pad", 1, 0),
                               .in = image_of(call, in),
                               .out = image_of(call, out),
                               .channels_last = call->graph->layout == PLANC_LAYOUT_NHWC};
}

PLANRT_CUDA_RUN(maxpool2d) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  planrt_cuda_pooling of = pooling_of(call, x, y);
  return planrt_cuda_maxpool(launch->stream, planrt_cuda_dtype_of(x->dtype), &of, x->data, y->data);
}

PLANRT_CUDA_RUN(maxpool2d_grad) {
  const planrt_operand *x = &call->in[0], *y = &call->in[1], *dy = &call->in[2], *dx = &call->out[0];
  planrt_cuda_pooling of = pooling_of(call, x, y);
  return planrt_cuda_maxpool_grad(launch->stream, planrt_cuda_dtype_of(x->dtype), &of, x->data, y->data, dy->data,
                                  dx->data);
}

PLANRT_CUDA_RUN(avgpool2d) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  planrt_cuda_pooling of = pooling_of(call, x, y);
  return planrt_cuda_avgpool(launch->stream, planrt_cuda_dtype_of(x->dtype), &of, x->data, y->data);
}

PLANRT_CUDA_RUN(avgpool2d_grad) {
  const planrt_operand *dy = &call->in[0], *dx = &call->out[0];
  planrt_cuda_pooling of = pooling_of(call, dx, dy);
  return planrt_cuda_avgpool_grad(launch->stream, planrt_cuda_dtype_of(dy->dtype), &of, dy->data, dx->data);
}

/* --- Up-sampling ------------------------------------------------------------------------------------------------ */

static planrt_cuda_upsampling upsampling_of(const planrt_call *call, const planrt_operand *in,
                                            const planrt_operand *out) {
  static const planrt_cuda_blending blendings[] = {[PLANC_UPSAMPLE_NEAREST] = PLANRT_CUDA_NEAREST,
                                                   [PLANC_UPSAMPLE_BILINEAR] = PLANRT_CUDA_BILINEAR,
                                                   [PLANC_UPSAMPLE_ALIGNED] = PLANRT_CUDA_ALIGNED};
  planc_upsampling mode;
  (void)planc_upsampling_of(call->op, &mode);
  return (planrt_cuda_upsampling){.scale = planc_op_int(call->op, "scale", 0, 1),
                                  .blending = blendings[mode],
                                  .channels_last = call->graph->layout == PLANC_LAYOUT_NHWC,
                                  .in = image_of(call, in),
                                  .out = image_of(call, out)};
}

PLANRT_CUDA_RUN(upsample) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  planrt_cuda_upsampling of = upsampling_of(call, x, y);
  return planrt_cuda_upsample(launch->stream, planrt_cuda_dtype_of(x->dtype), &of, x->data, y->data);
}

PLANRT_CUDA_RUN(upsample_grad) {
  const planrt_operand *dy = &call->in[0], *dx = &call->out[0];
  planrt_cuda_upsampling of = upsampling_of(call, dx, dy);
  return planrt_cuda_upsample_grad(launch->stream, planrt_cuda_dtype_of(dy->dtype), &of, dy->data, dx->data);
}
