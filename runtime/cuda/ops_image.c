/* Pooling and up-sampling of images. */
#include "graph/optypes.h"
#include "runtime/cuda/op_families.h"

static rt_cuda_image image_of(const rt_call *call, const rt_operand *operand) {
  rt_image image = rt_image_of(call, operand);
  return (rt_cuda_image){image.n, image.c, image.h, image.w};
}

static rt_cuda_pooling pooling_of(const rt_call *call, const rt_operand *in, const rt_operand *out) {
  const planc_op *op = call->op;
  return (rt_cuda_pooling){.kernel_h = planc_op_int(op, "kernel", 0, 1),
                           .kernel_w = planc_op_int(op, "kernel", 1, 1),
                           .stride_h = planc_op_int(op, "stride", 0, 1),
                           .stride_w = planc_op_int(op, "stride", 1, 1),
                           .pad_h = planc_op_int(op, "pad", 0, 0),
                           .pad_w = planc_op_int(op, "pad", 1, 0),
                           .in = image_of(call, in),
                           .out = image_of(call, out),
                           .channels_last = call->graph->layout == PLANC_LAYOUT_NHWC};
}

RT_CUDA_RUN(maxpool2d) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  rt_cuda_pooling of = pooling_of(call, x, y);
  return rt_cuda_maxpool(launch->stream, rt_cuda_dtype_of(x->dtype), &of, x->data, y->data);
}

RT_CUDA_RUN(maxpool2d_grad) {
  const rt_operand *x = &call->in[0], *y = &call->in[1], *dy = &call->in[2], *dx = &call->out[0];
  rt_cuda_pooling of = pooling_of(call, x, y);
  return rt_cuda_maxpool_grad(launch->stream, rt_cuda_dtype_of(x->dtype), &of, x->data, y->data, dy->data, dx->data);
}

RT_CUDA_RUN(avgpool2d) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  rt_cuda_pooling of = pooling_of(call, x, y);
  return rt_cuda_avgpool(launch->stream, rt_cuda_dtype_of(x->dtype), &of, x->data, y->data);
}

RT_CUDA_RUN(avgpool2d_grad) {
  const rt_operand *dy = &call->in[0], *dx = &call->out[0];
  rt_cuda_pooling of = pooling_of(call, dx, dy);
  return rt_cuda_avgpool_grad(launch->stream, rt_cuda_dtype_of(dy->dtype), &of, dy->data, dx->data);
}

/* --- Up-sampling -------------------------------------------------------------------------------------------------- */

static rt_cuda_upsampling upsampling_of(const rt_call *call, const rt_operand *in, const rt_operand *out) {
  static const rt_cuda_blending blendings[] = {[PL_UPSAMPLE_NEAREST] = RT_CUDA_NEAREST,
                                               [PL_UPSAMPLE_BILINEAR] = RT_CUDA_BILINEAR,
                                               [PL_UPSAMPLE_ALIGNED] = RT_CUDA_ALIGNED};
  pl_upsampling mode;
  (void)pl_upsampling_of(call->op, &mode);
  return (rt_cuda_upsampling){.scale = planc_op_int(call->op, "scale", 0, 1),
                              .blending = blendings[mode],
                              .channels_last = call->graph->layout == PLANC_LAYOUT_NHWC,
                              .in = image_of(call, in),
                              .out = image_of(call, out)};
}

RT_CUDA_RUN(upsample) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  rt_cuda_upsampling of = upsampling_of(call, x, y);
  return rt_cuda_upsample(launch->stream, rt_cuda_dtype_of(x->dtype), &of, x->data, y->data);
}

RT_CUDA_RUN(upsample_grad) {
  const rt_operand *dy = &call->in[0], *dx = &call->out[0];
  rt_cuda_upsampling of = upsampling_of(call, dx, dy);
  return rt_cuda_upsample_grad(launch->stream, rt_cuda_dtype_of(dy->dtype), &of, dy->data, dx->data);
}
