/* Pooling by oneDNN. Its max pooling's backward wants the positions of the maxima that a forward run noted; ours has
 * only x, so both run, one after the other. */
#include "runtime/host/dnnl_build.h"

/* x and y are their gradients in backward directions. */
typedef struct pool {
  dnnl_alg_kind_t kind;
  const rt_operand *x, *y;
  dnnl_memory_desc_t x_desc, y_desc;
  dnnl_dims_t kernel, stride, pad;
} pool;

static planc_status max_backward(rt_dnnl_build *build);
static planc_status average_backward(rt_dnnl_build *build);
static planc_status forward(rt_dnnl_build *build, bool max);
static planc_status pool_of(const rt_call *call, bool max, const rt_operand *x, const rt_operand *y, pool *out);
static planc_status describe_forward(rt_dnnl_build *build, const pool *v, dnnl_prop_kind_t how,
                                     dnnl_primitive_desc_t *out);
static planc_status describe_backward(rt_dnnl_build *build, const pool *v, dnnl_primitive_desc_t hint,
                                      dnnl_primitive_desc_t *out);

planc_status rt_dnnl_pool(rt_dnnl_build *build) {
  pl_optype_id type = pl_optype_of(build->call->op);
  if (type == PL_OPTYPE_maxpool2d_grad) return max_backward(build);
  if (type == PL_OPTYPE_avgpool2d_grad) return average_backward(build);
  return forward(build, type == PL_OPTYPE_maxpool2d);
}

/* maxpool2d_grad: (x, y, dy) -> dx. The maxima that the forward run computes again are of no use: they go where dx will
 * be written over them, or, if they are more, to the workspace. */
static planc_status max_backward(rt_dnnl_build *build) {
  const rt_call *call = build->call;
  pool v;
  int32_t x, y, dx, dy, positions;
  dnnl_primitive_desc_t hint, desc;
  PLANC_TRY(pool_of(call, true, &call->out[0], &call->in[2], &v));
  PLANC_TRY(describe_forward(build, &v, dnnl_forward_training, &hint));
  PLANC_TRY(describe_backward(build, &v, hint, &desc));
  PLANC_TRY(rt_dnnl_operand(build, &call->in[0], &v.x_desc, &x));
  PLANC_TRY(rt_dnnl_operand(build, v.y, &v.y_desc, &dy));
  PLANC_TRY(rt_dnnl_operand(build, v.x, &v.x_desc, &dx));
  if (v.x->bytes >= v.y->bytes)
    PLANC_TRY(rt_dnnl_operand(build, v.x, &v.y_desc, &y));
  else
    PLANC_TRY(rt_dnnl_piece(build, &v.y_desc, &y));
  PLANC_TRY(rt_dnnl_piece(build, dnnl_primitive_desc_query_md(hint, dnnl_query_workspace_md, 0), &positions));
  rt_dnnl_arg again[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, positions}};
  rt_dnnl_arg args[] = {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WORKSPACE, positions}, {DNNL_ARG_DIFF_SRC, dx}};
  PLANC_TRY(rt_dnnl_primitive(build, hint, again, 3));
  return rt_dnnl_primitive(build, desc, args, 3);
}

/* avgpool2d_grad: (dy) -> dx. */
static planc_status average_backward(rt_dnnl_build *build) {
  pool v;
  int32_t dx, dy;
  dnnl_primitive_desc_t hint, desc;
  PLANC_TRY(pool_of(build->call, false, &build->call->out[0], &build->call->in[0], &v));
  PLANC_TRY(describe_forward(build, &v, dnnl_forward_training, &hint));
  PLANC_TRY(describe_backward(build, &v, hint, &desc));
  PLANC_TRY(rt_dnnl_operand(build, v.y, &v.y_desc, &dy));
  PLANC_TRY(rt_dnnl_operand(build, v.x, &v.x_desc, &dx));
  return rt_dnnl_primitive(build, desc, (rt_dnnl_arg[]){{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}}, 2);
}

static planc_status pool_of(const rt_call *call, bool max, const rt_operand *x, const rt_operand *y, pool *out) {
  *out = (pool){.kind = max ? dnnl_pooling_max : dnnl_pooling_avg_include_padding, .x = x, .y = y};
  for (int32_t axis = 0; axis < 2; axis++) {
    out->kernel[axis] = planc_op_int(call->op, "kernel", axis, 1);
    out->stride[axis] = planc_op_int(call->op, "stride", axis, 1);
    out->pad[axis] = planc_op_int(call->op, "pad", axis, 0);
  }
  PLANC_TRY(rt_dnnl_image(call, x, &out->x_desc));
  return rt_dnnl_image(call, y, &out->y_desc);
}

static planc_status describe_forward(rt_dnnl_build *build, const pool *v, dnnl_prop_kind_t how,
                                     dnnl_primitive_desc_t *out) {
  dnnl_pooling_desc_t operation;
  PLANC_TRY(rt_dnnl_status(dnnl_pooling_forward_desc_init(&operation, how, v->kind, &v->x_desc, &v->y_desc, v->stride,
                                                          v->kernel, v->pad, v->pad),
                           "pooling"));
  return rt_dnnl_describe(build, &operation, NULL, build->engine->attr, out);
}

static planc_status describe_backward(rt_dnnl_build *build, const pool *v, dnnl_primitive_desc_t hint,
                                      dnnl_primitive_desc_t *out) {
  dnnl_pooling_desc_t operation;
  PLANC_TRY(rt_dnnl_status(dnnl_pooling_backward_desc_init(&operation, v->kind, &v->x_desc, &v->y_desc, v->stride,
                                                           v->kernel, v->pad, v->pad),
                           "pooling"));
  return rt_dnnl_describe(build, &operation, hint, build->engine->attr, out);
}

static planc_status forward(rt_dnnl_build *build, bool max) {
  pool v;
  int32_t x, y;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(pool_of(build->call, max, &build->call->in[0], &build->call->out[0], &v));
  PLANC_TRY(describe_forward(build, &v, dnnl_forward_inference, &desc));
  PLANC_TRY(rt_dnnl_operand(build, v.x, &v.x_desc, &x));
  PLANC_TRY(rt_dnnl_operand(build, v.y, &v.y_desc, &y));
  return rt_dnnl_primitive(build, desc, (rt_dnnl_arg[]){{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}, 2);
}
