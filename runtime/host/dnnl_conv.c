/* Convolution and its data and weight gradients by oneDNN. Data stays in the graph's layout where the algorithm takes
 * it; otherwise, and for weights always, operands are reordered into what oneDNN asks for. */
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/dnnl_build.h"

/* The operands and their layouts. */
typedef struct conv {
  pl_conv shape;
  const rt_operand *x, *w, *bias, *y; /* their gradients in backward directions; bias may be NULL */
  dnnl_memory_desc_t x_desc, w_desc, bias_desc, y_desc;
} conv;

static planc_status conv_of(const rt_call *call, conv *out);
static planc_status choose(rt_dnnl_build *build, const conv *c, dnnl_primitive_desc_t *out);
static const dnnl_memory_desc_t *layout_of(dnnl_primitive_desc_t desc, dnnl_query_t what);

planc_status rt_dnnl_conv(rt_dnnl_build *build) {
  conv c;
  dnnl_primitive_desc_t desc;
  PLANC_TRY(conv_of(build->call, &c));
  PLANC_TRY(choose(build, &c, &desc));
  bool dgrad = c.shape.direction == PL_CONV_DGRAD, wgrad = c.shape.direction == PL_CONV_WGRAD;
  bool forward = !dgrad && !wgrad;
  int32_t x, w, y, bias = -1;
  PLANC_TRY((dgrad ? rt_dnnl_output : rt_dnnl_input)(
      build, c.x, &c.x_desc, layout_of(desc, dgrad ? dnnl_query_diff_src_md : dnnl_query_src_md), &x));
  PLANC_TRY((wgrad ? rt_dnnl_output : rt_dnnl_input)(
      build, c.w, &c.w_desc, layout_of(desc, wgrad ? dnnl_query_diff_weights_md : dnnl_query_weights_md), &w));
  PLANC_TRY((forward ? rt_dnnl_output : rt_dnnl_input)(
      build, c.y, &c.y_desc, layout_of(desc, forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md), &y));
  if (c.bias) PLANC_TRY(rt_dnnl_operand(build, c.bias, &c.bias_desc, &bias));
  rt_dnnl_arg args[] = {{dgrad ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x},
                        {wgrad ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w},
                        {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y},
                        {DNNL_ARG_BIAS, bias}};
  PLANC_TRY(rt_dnnl_primitive(build, desc, args, c.bias ? 4 : 3));
  if (forward) return rt_dnnl_store(build, c.y, &c.y_desc, y);
  return dgrad ? rt_dnnl_store(build, c.x, &c.x_desc, x) : rt_dnnl_store(build, c.w, &c.w_desc, w);
}

static bool is_gemm(const char *implementation) {
  return strstr(implementation, "gemm");
}
static bool is_direct(const char *implementation) {
  return !is_gemm(implementation) && strncmp(implementation, "ref", 3) != 0;
}
static bool is_any(const char *implementation) {
  (void)implementation;
  return true;
}

typedef struct algorithm {
  const char *name;
  dnnl_alg_kind_t kind;
  bool (*accepts)(const char *implementation);
} algorithm;

static const algorithm algorithms[] = {
    {"dnnl-direct", dnnl_convolution_direct, is_direct},
    {"dnnl-gemm", dnnl_convolution_direct, is_gemm},
    {"dnnl-winograd", dnnl_convolution_winograd, is_any},
};

static planc_status conv_of(const rt_call *call, conv *out) {
  if (!pl_conv_of(call->graph, call->op, &out->shape)) return planc_error(PLANC_INTERNAL, "not a convolution");
  const pl_conv *v = &out->shape;
  out->x = v->direction == PL_CONV_DGRAD ? &call->out[0] : &call->in[0];
  out->w = v->direction == PL_CONV_FORWARD ? &call->in[1]
           : v->direction == PL_CONV_DGRAD ? &call->in[0]
                                           : &call->out[0];
  out->y = v->direction == PL_CONV_FORWARD ? &call->out[0] : &call->in[1];
  out->bias = v->direction == PL_CONV_FORWARD && call->n_in > 2 ? &call->in[2] : NULL;
  PLANC_TRY(rt_dnnl_image(call, out->x, &out->x_desc));
  PLANC_TRY(rt_dnnl_image(call, out->y, &out->y_desc));
  if (out->bias) PLANC_TRY(rt_dnnl_vector(out->bias->elements, &out->bias_desc));
  if (v->groups == 1) return rt_dnnl_image(call, out->w, &out->w_desc);
  rt_image w = rt_image_of(call, out->w);
  int64_t kg = v->k / v->groups;
  return rt_dnnl_strided(5, (int64_t[]){v->groups, kg, w.c, w.h, w.w}, (int64_t[]){kg * w.sn, w.sn, w.sc, w.sy, w.sx},
                         &out->w_desc);
}

/* The operation with these layouts of x and y; oneDNN chooses the weights'. */
static planc_status operation_of(const conv *c, dnnl_alg_kind_t kind, const dnnl_memory_desc_t *x,
                                 const dnnl_memory_desc_t *y, dnnl_convolution_desc_t *out) {
  const pl_conv *v = &c->shape;
  dnnl_memory_desc_t w = rt_dnnl_any_layout(c->w_desc);
  dnnl_dims_t stride = {v->stride_h, v->stride_w}, gap = {v->dilation_h - 1, v->dilation_w - 1};
  dnnl_dims_t pad = {v->pad_h, v->pad_w};
  dnnl_status_t status = dnnl_invalid_arguments;
  switch (v->direction) {
    case PL_CONV_FORWARD:
      status = dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, kind, x, &w,
                                                          c->bias ? &c->bias_desc : NULL, y, stride, gap, pad, pad);
      break;
    case PL_CONV_DGRAD:
      status = dnnl_dilated_convolution_backward_data_desc_init(out, kind, x, &w, y, stride, gap, pad, pad);
      break;
    case PL_CONV_WGRAD:
      status = dnnl_dilated_convolution_backward_weights_desc_init(out, kind, x, &w, NULL, y, stride, gap, pad, pad);
      break;
  }
  return rt_dnnl_status(status, "convolution");
}

/* The first implementation that the algorithm accepts; *out is NULL when there is none. */
static planc_status find_implementation(const rt_dnnl_build *build, const algorithm *by,
                                        const dnnl_convolution_desc_t *operation, dnnl_primitive_desc_t *out) {
  *out = NULL;
  dnnl_primitive_desc_iterator_t each;
  dnnl_status_t status =
      dnnl_primitive_desc_iterator_create(&each, operation, build->engine->attr, build->engine->cpu, NULL);
  if (status == dnnl_unimplemented) return NULL;
  PLANC_TRY(rt_dnnl_status(status, "convolution"));
  for (; status == dnnl_success; status = dnnl_primitive_desc_iterator_next(each)) {
    const char *implementation = "";
    dnnl_primitive_desc_t desc = dnnl_primitive_desc_iterator_fetch(each);
    if (!desc) {
      status = dnnl_out_of_memory;
      break;
    }
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&implementation);
    if (by->accepts(implementation)) {
      *out = desc;
      break;
    }
    dnnl_primitive_desc_destroy(desc);
  }
  dnnl_primitive_desc_iterator_destroy(each);
  return status == dnnl_iterator_ends ? NULL : rt_dnnl_status(status, "convolution");
}

static planc_status choose(rt_dnnl_build *build, const conv *c, dnnl_primitive_desc_t *out) {
  const algorithm *by = algorithms;
  while (strcmp(by->name, build->algorithm) != 0) by++;
  for (int any = 0; any < 2; any++) {
    dnnl_memory_desc_t x = any ? rt_dnnl_any_layout(c->x_desc) : c->x_desc;
    dnnl_memory_desc_t y = any ? rt_dnnl_any_layout(c->y_desc) : c->y_desc;
    dnnl_convolution_desc_t operation;
    PLANC_TRY(operation_of(c, by->kind, &x, &y, &operation));
    PLANC_TRY(find_implementation(build, by, &operation, out));
    if (*out) return rt_dnnl_keep(build, *out);
  }
  return planc_error(PLANC_DEVICE, "oneDNN has no such convolution for this shape and processor");
}

static const dnnl_memory_desc_t *layout_of(dnnl_primitive_desc_t desc, dnnl_query_t what) {
  return dnnl_primitive_desc_query_md(desc, what, 0);
}
