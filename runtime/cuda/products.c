/* Which matrix product a call is (products.h). */
#include "runtime/cuda/products.h"

#include <assert.h>

#include "graph/optypes.h"

static bool is_real(const rt_operand *operand);
static bool matrices(const rt_call *call, bool first_transposed, bool second_transposed, rt_product *out);
static bool linear(const rt_call *call, int64_t inputs, int64_t outputs, rt_product *out);
static bool linear_dgrad(const rt_call *call, int64_t inputs, int64_t outputs, rt_product *out);
static bool linear_wgrad(const rt_call *call, int64_t inputs, int64_t outputs, rt_product *out);
static bool pixels(const rt_call *call, rt_product *out);

static bool find(const rt_call *call, rt_product *out) {
  switch (pl_optype_of(call->op)) {
    case PL_OPTYPE_matmul:
      return matrices(call, false, false, out);
    case PL_OPTYPE_matmul_nt:
      return matrices(call, false, true, out);
    case PL_OPTYPE_matmul_tn:
      return matrices(call, true, false, out);
    case PL_OPTYPE_linear:
      return linear(call, call->in[1].dims[1], call->in[1].dims[0], out);
    case PL_OPTYPE_linear_dgrad:
      return linear_dgrad(call, call->in[0].dims[1], call->in[0].dims[0], out);
    case PL_OPTYPE_linear_wgrad:
      return linear_wgrad(call, call->out[0].dims[1], call->out[0].dims[0], out);
    default:
      return pixels(call, out);
  }
}

bool rt_product_of(const rt_call *call, rt_product *out) {
  *out = (rt_product){.count = 1};
  if (call->role != PLANC_ROLE_OP || call->n_in < 2 || call->n_out < 1 || !find(call, out)) return false;
  return out->rows > 0 && out->columns > 0 && out->depth > 0 && out->count > 0 && out->count <= INT32_MAX &&
         is_real(out->first) && is_real(out->second) && is_real(out->result);
}

static bool is_real(const rt_operand *operand) {
  return operand->dtype == PLANC_DTYPE_bf16 || operand->dtype == PLANC_DTYPE_f16 || operand->dtype == PLANC_DTYPE_f32;
}

/* --- Matrices ----------------------------------------------------------------------------------------------------- */

/* Everything before the last two dimensions. */
static int64_t matrices_of(const rt_operand *operand) {
  int64_t count = 1;
  for (int32_t d = 0; d + 2 < operand->rank; d++) count *= operand->dims[d];
  return count;
}

/* The last dimension but `back`. */
static int64_t edge(const rt_operand *operand, int32_t back) {
  return operand->dims[operand->rank - 1 - back];
}

static bool matrices(const rt_call *call, bool first_transposed, bool second_transposed, rt_product *out) {
  const rt_operand *a = &call->in[0], *b = &call->in[1];
  *out = (rt_product){.first = a,
                      .second = b,
                      .result = &call->out[0],
                      .first_transposed = first_transposed,
                      .second_transposed = second_transposed,
                      .rows = edge(a, first_transposed ? 0 : 1),
                      .depth = edge(a, first_transposed ? 1 : 0),
                      .columns = edge(b, second_transposed ? 1 : 0),
                      .count = matrices_of(a)};
  return true;
}

static int64_t rows_of(const rt_operand *operand, int64_t width) {
  return width > 0 ? operand->elements / width : 0;
}

/* y[rows, outputs] = x[rows, inputs] w[outputs, inputs]^T + b */
static bool linear(const rt_call *call, int64_t inputs, int64_t outputs, rt_product *out) {
  const rt_operand *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
  *out = (rt_product){.first = x, .second = w, .result = y, .second_transposed = true, .count = 1};
  out->bias = call->n_in > 2 ? &call->in[2] : NULL;
  out->rows = rows_of(y, outputs), out->columns = outputs, out->depth = inputs;
  return true;
}

/* dx[rows, inputs] = dy[rows, outputs] w[outputs, inputs] */
static bool linear_dgrad(const rt_call *call, int64_t inputs, int64_t outputs, rt_product *out) {
  const rt_operand *w = &call->in[0], *dy = &call->in[1];
  *out = (rt_product){.first = dy, .second = w, .result = &call->out[0], .count = 1};
  out->rows = rows_of(dy, outputs), out->columns = inputs, out->depth = outputs;
  return true;
}

/* dw[outputs, inputs] = dy[rows, outputs]^T x[rows, inputs] */
static bool linear_wgrad(const rt_call *call, int64_t inputs, int64_t outputs, rt_product *out) {
  const rt_operand *x = &call->in[0], *dy = &call->in[1];
  *out = (rt_product){.first = dy, .second = x, .result = &call->out[0], .first_transposed = true, .count = 1};
  out->rows = outputs, out->columns = inputs, out->depth = rows_of(dy, outputs);
  return true;
}

/* --- Pixels ------------------------------------------------------------------------------------------------------- */

static bool is_pointwise(const pl_conv *conv);
static rt_cuda_lattice lattice_of(const pl_conv *conv, const rt_operand *input, bool by_row);
static bool pixels_by_row(const rt_call *call, const pl_conv *conv, rt_product *out);
static bool pixels_by_column(const rt_call *call, const pl_conv *conv, rt_product *out);

static bool pixels(const rt_call *call, rt_product *out) {
  pl_conv conv;
  if (!pl_conv_of(call->graph, call->op, &conv) || !is_pointwise(&conv)) return false;
  bool by_row = call->graph->layout == PLANC_LAYOUT_NHWC;
  if (!(by_row ? pixels_by_row(call, &conv, out) : pixels_by_column(call, &conv, out))) return false;
  if (conv.stride_h == 1 && conv.stride_w == 1) return true;
  out->sparse = conv.direction == PL_CONV_DGRAD ? &call->out[0] : &call->in[0];
  out->lattice = lattice_of(&conv, out->sparse, by_row);
  assert(out->sparse != out->result || !out->result->accumulate); /* conv2d_dgrad does not accumulate */
  return true;
}

static bool is_pointwise(const pl_conv *conv) {
  return conv->r == 1 && conv->s == 1 && conv->pad_h == 0 && conv->pad_w == 0 && conv->groups == 1;
}

/* What a stride meets of the input, or of its gradient. */
static rt_cuda_lattice lattice_of(const pl_conv *conv, const rt_operand *input, bool by_row) {
  int64_t bytes = input->elements > 0 ? input->bytes / input->elements : 0, images = input->dims[0];
  return (rt_cuda_lattice){.planes = by_row ? images : images * conv->c,
                           .h = conv->h,
                           .w = conv->w,
                           .rows = conv->p,
                           .columns = conv->q,
                           .stride_h = conv->stride_h,
                           .stride_w = conv->stride_w,
                           .bytes = by_row ? bytes * conv->c : bytes};
}

/* NHWC: all images are one matrix with a pixel in each row, and this is what linear ops do. */
static bool pixels_by_row(const rt_call *call, const pl_conv *conv, rt_product *out) {
  if (conv->direction == PL_CONV_FORWARD) return linear(call, conv->c, conv->k, out);
  return conv->direction == PL_CONV_DGRAD ? linear_dgrad(call, conv->c, conv->k, out)
                                          : linear_wgrad(call, conv->c, conv->k, out);
}

/* NCHW: each image is a matrix with a pixel in each column. */
static bool pixels_by_column(const rt_call *call, const pl_conv *conv, rt_product *out) {
  const rt_operand *a = &call->in[0], *b = &call->in[1], *result = &call->out[0];
  int64_t plane = conv->p * conv->q;
  if (conv->direction == PL_CONV_FORWARD) {
    *out = (rt_product){.first = b, .second = a, .first_shared = true, .rows = conv->k, .depth = conv->c};
    out->bias = call->n_in > 2 ? &call->in[2] : NULL;
    out->bias_by_row = true;
    out->columns = plane;
  } else if (conv->direction == PL_CONV_DGRAD) {
    *out = (rt_product){.first = a, .second = b, .first_shared = true, .first_transposed = true, .rows = conv->c};
    out->depth = conv->k, out->columns = plane;
  } else {
    if (result->dtype == PLANC_DTYPE_f16) return false; /* into which no kernel sums */
    *out = (rt_product){.first = b, .second = a, .second_transposed = true, .summed = true, .rows = conv->k};
    out->columns = conv->c, out->depth = plane;
  }
  out->result = result;
  out->count = call->in[conv->direction == PL_CONV_DGRAD ? 1 : 0].dims[0];
  return true;
}
