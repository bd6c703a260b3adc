/* Conditions of single op types that patterns cannot say: window arithmetic of convolution and pooling, up-sampling,
 * casts, concatenation, transposition. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "graph/law.h"
#include "graph/operands.h"
#include "graph/spec.h"

/* --- Windows: convolution and pooling ----------------------------------------------------------------------------- */

/* One spatial axis: `out` must be floor((in + 2 pad - dilation (window - 1) - 1) / stride) + 1. */
typedef struct window {
  char in_letter, out_letter;
  int64_t in, out, window, stride, pad, dilation;
} window;

static planc_status check_window(const window *w) {
  int64_t reach, padded, room;
  if (pl_mul_overflow(w->dilation, w->window - 1, &reach) || pl_add_overflow(w->in, 2 * w->pad, &padded) ||
      pl_add_overflow(padded, -reach - 1, &room)) {
    return planc_error(PLANC_BAD_INPUT, "window does not fit 64 bits");
  }
  if (room < 0) {
    return planc_error(PLANC_BAD_INPUT, "window of %" PRId64 " is larger than %c = %" PRId64 " with its padding",
                       reach + 1, w->in_letter, w->in);
  }
  int64_t out = room / w->stride + 1;
  if (out == w->out) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%c is %" PRId64 ", but %c = %" PRId64 " gives %" PRId64, w->out_letter, w->out,
                     w->in_letter, w->in, out);
}

planc_status pl_check_conv(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  pl_conv v;
  bool is_conv = pl_conv_of(graph, op, &v);
  assert(is_conv); /* only convolutions have this check */
  (void)is_conv;
  if (v.c % v.groups || v.k % v.groups || pl_dims_of(dims, 'c') != v.c / v.groups) {
    return planc_error(PLANC_BAD_INPUT,
                       "%" PRId64 " input and %" PRId64 " output channels in %" PRId64
                       " groups do not go with weights for %" PRId64 " input channels",
                       v.c, v.k, v.groups, pl_dims_of(dims, 'c'));
  }
  PLANC_TRY(check_window(&(window){'H', 'P', v.h, v.p, v.r, v.stride_h, v.pad_h, v.dilation_h}));
  return check_window(&(window){'W', 'Q', v.w, v.q, v.s, v.stride_w, v.pad_w, v.dilation_w});
}

planc_status pl_check_pool(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)graph;
  for (int32_t axis = 0; axis < 2; axis++) {
    window w = {.in_letter = "HW"[axis],
                .out_letter = "PQ"[axis],
                .in = pl_dims_of(dims, "HW"[axis]),
                .out = pl_dims_of(dims, "PQ"[axis]),
                .window = planc_op_int(op, "kernel", axis, 1),
                .stride = planc_op_int(op, "stride", axis, 1),
                .pad = planc_op_int(op, "pad", axis, 0),
                .dilation = 1};
    if (w.pad >= w.window) return planc_error(PLANC_BAD_INPUT, "pad must be less than kernel");
    PLANC_TRY(check_window(&w));
  }
  return NULL;
}

/* The size of the dimension that stands at `position` in an NCHW pattern. */
static int64_t dim_at(const planc_graph *graph, int32_t tensor, int position) {
  const planc_tensor *t = &graph->tensors[tensor];
  if (graph->layout == PLANC_LAYOUT_NHWC && position > 0) position = position == 1 ? t->rank - 1 : position - 1;
  return t->dims[position].fixed;
}

bool pl_conv_of(const planc_graph *graph, const planc_op *op, pl_conv *out) {
  int32_t x, w, y;
  switch (pl_optype_of(op)) {
    case PL_OPTYPE_conv2d:
      out->direction = PL_CONV_FORWARD;
      x = op->in[0], w = op->in[1], y = op->out[0];
      break;
    case PL_OPTYPE_conv2d_dgrad:
      out->direction = PL_CONV_DGRAD;
      x = op->out[0], w = op->in[0], y = op->in[1];
      break;
    case PL_OPTYPE_conv2d_wgrad:
      out->direction = PL_CONV_WGRAD;
      x = op->in[0], w = op->out[0], y = op->in[1];
      break;
    default:
      return false;
  }
  out->c = dim_at(graph, x, 1), out->h = dim_at(graph, x, 2), out->w = dim_at(graph, x, 3);
  out->k = dim_at(graph, y, 1), out->p = dim_at(graph, y, 2), out->q = dim_at(graph, y, 3);
  out->r = dim_at(graph, w, 2), out->s = dim_at(graph, w, 3);
  out->stride_h = planc_op_int(op, "stride", 0, 1), out->stride_w = planc_op_int(op, "stride", 1, 1);
  out->pad_h = planc_op_int(op, "pad", 0, 0), out->pad_w = planc_op_int(op, "pad", 1, 0);
  out->dilation_h = planc_op_int(op, "dilation", 0, 1), out->dilation_w = planc_op_int(op, "dilation", 1, 1);
  out->groups = planc_op_int(op, "groups", 0, 1);
  return true;
}

/* --- Others ------------------------------------------------------------------------------------------------------- */

bool pl_upsampling_of(const planc_op *op, pl_upsampling *out) {
  static const char *const names[] = {
      [PL_UPSAMPLE_NEAREST] = "nearest", [PL_UPSAMPLE_BILINEAR] = "bilinear", [PL_UPSAMPLE_ALIGNED] = "aligned"};
  const planc_attr *mode = planc_op_attr(op, "mode");
  *out = PL_UPSAMPLE_NEAREST;
  for (size_t i = 0; mode && i < sizeof names / sizeof *names; i++) {
    *out = (pl_upsampling)i;
    if (mode->type == PLANC_ATTR_STRING && strcmp(mode->value.string, names[i]) == 0) return true;
  }
  return !mode;
}

planc_status pl_check_upsample(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)graph;
  pl_upsampling mode;
  if (!pl_upsampling_of(op, &mode)) {
    return planc_error(PLANC_BAD_INPUT, "attribute mode should be nearest, bilinear or aligned");
  }
  int64_t scale = planc_op_int(op, "scale", 0, 1);
  for (int axis = 0; axis < 2; axis++) {
    int64_t in = pl_dims_of(dims, "HW"[axis]), out = pl_dims_of(dims, "PQ"[axis]), scaled;
    if (pl_mul_overflow(in, scale, &scaled)) return planc_error(PLANC_BAD_INPUT, "size does not fit 64 bits");
    if (mode == PL_UPSAMPLE_ALIGNED) scaled -= scale - 1;
    if (out != scaled) {
      return planc_error(PLANC_BAD_INPUT, "%c is %" PRId64 ", but %c = %" PRId64 " gives %" PRId64, "PQ"[axis], out,
                         "HW"[axis], in, scaled);
    }
  }
  return NULL;
}

planc_status pl_check_dropout(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)graph, (void)dims;
  return planc_op_real(op, "p", 0) < 1 ? NULL : planc_error(PLANC_BAD_INPUT, "attribute p must be less than 1");
}

planc_status pl_check_cast(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)dims;
  for (int i = 0; i < 2; i++) {
    const planc_tensor *tensor = &graph->tensors[i == 0 ? op->in[0] : op->out[0]];
    if (tensor->dtype != PLANC_DTYPE_f32 && tensor->dtype != PLANC_DTYPE_bf16)
      return planc_error(PLANC_BAD_INPUT, "%s is %s, should be f32 or bf16", tensor->name,
                         planc_dtype_name(tensor->dtype));
  }
  return NULL;
}

/* `part` is like `whole` but for its size along `axis`. */
static planc_status check_slice(const planc_tensor *part, const planc_tensor *whole, int64_t axis) {
  bool same = part->rank == whole->rank && axis < whole->rank && part->dtype == whole->dtype;
  for (int32_t i = 0; same && i < part->rank; i++) {
    same = i == axis || pl_law_equal(part->dims[i], whole->dims[i]);
  }
  if (same) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%s and %s must be alike but for axis %" PRId64, part->name, whole->name, axis);
}

/* `whole` is made of the parts, side by side along the op's axis. */
static planc_status check_parts(const planc_graph *graph, const planc_op *op, int32_t tensor, const int32_t *parts,
                                int32_t count, const char *side) {
  int64_t axis = planc_op_int(op, "axis", 0, 0);
  const planc_tensor *whole = &graph->tensors[tensor];
  planc_law sum = {0};
  for (int32_t i = 0; i < count; i++) {
    const planc_tensor *part = &graph->tensors[parts[i]];
    PLANC_TRY(check_slice(part, whole, axis));
    if (pl_law_add_overflow(sum, part->dims[axis], &sum)) {
      return planc_error(PLANC_BAD_INPUT, "size does not fit 64 bits");
    }
  }
  char is[PL_LAW_TEXT], should[PL_LAW_TEXT];
  if (pl_law_equal(sum, whole->dims[axis])) return NULL;
  return planc_error(PLANC_BAD_INPUT, "dimension %" PRId64 " of %s is %s, the %s add up to %s", axis, whole->name,
                     pl_law_text(whole->dims[axis], is), side, pl_law_text(sum, should));
}

planc_status pl_check_concat(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)dims;
  return check_parts(graph, op, op->out[0], op->in, op->n_in, "inputs");
}

planc_status pl_check_split(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)dims;
  return check_parts(graph, op, op->in[0], op->out, op->n_out, "outputs");
}

planc_status pl_check_concat_grad(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)dims;
  int64_t axis = planc_op_int(op, "axis", 0, 0), offset = planc_op_int(op, "offset", 0, 0);
  const planc_tensor *whole = &graph->tensors[op->in[0]], *part = &graph->tensors[op->out[0]];
  PLANC_TRY(check_slice(part, whole, axis));
  planc_law end;
  if (!pl_law_add_overflow(part->dims[axis], pl_law_constant(offset), &end) && pl_law_at_most(end, whole->dims[axis])) {
    return NULL;
  }
  return planc_error(PLANC_BAD_INPUT, "%s at offset %" PRId64 " reaches beyond axis %" PRId64 " of %s", part->name,
                     offset, axis, whole->name);
}

planc_status pl_check_transpose(const planc_graph *graph, const planc_op *op, const pl_dims *dims) {
  (void)dims;
  const planc_tensor *x = &graph->tensors[op->in[0]], *y = &graph->tensors[op->out[0]];
  int32_t axis = (int32_t)planc_op_int(op, "axis", 0, 1);
  if (x->dtype != y->dtype || x->rank != y->rank || axis + 1 >= x->rank) {
    return planc_error(PLANC_BAD_INPUT, "%s and %s should be of one type and rank, with dimensions %d and %d", x->name,
                       y->name, axis, axis + 1);
  }
  if (x->dims[axis].per_sample || x->dims[axis + 1].per_sample) {
    return planc_error(PLANC_BAD_INPUT, "dimensions %d and %d of %s must not depend on the batch", axis, axis + 1,
                       x->name);
  }
  for (int32_t d = 0; d < x->rank; d++) {
    int32_t from = d == axis ? axis + 1 : d == axis + 1 ? axis : d;
    if (pl_law_equal(y->dims[d], x->dims[from])) continue;
    return planc_error(PLANC_BAD_INPUT, "dimension %d of %s should be dimension %d of %s", d, y->name, from, x->name);
  }
  return NULL;
}
