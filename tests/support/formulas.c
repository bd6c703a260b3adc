#include "tests/support/formulas.h"

#include <math.h>
#include <string.h>

/* Element (n, c, h, w) of a rank-4 tensor. */
int64_t formula_at(const rt_call *call, const rt_operand *t, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t *d = t->dims;
  return call->graph->layout == PLANC_LAYOUT_NHWC ? ((n * d[1] + h) * d[2] + w) * d[3] + c
                                                  : ((n * d[1] + c) * d[2] + h) * d[3] + w;
}
int64_t formula_channels_of(const rt_call *call, const rt_operand *t) {
  return call->graph->layout == PLANC_LAYOUT_NHWC || t->rank == 2 ? t->dims[t->rank - 1] : t->dims[1];
}
int64_t formula_height_of(const rt_call *call, const rt_operand *t) {
  return t->dims[call->graph->layout == PLANC_LAYOUT_NHWC ? 1 : 2];
}
int64_t formula_width_of(const rt_call *call, const rt_operand *t) {
  return t->dims[call->graph->layout == PLANC_LAYOUT_NHWC ? 2 : 3];
}
/* Channel of element i. */
int64_t formula_channel_at(const rt_call *call, const rt_operand *t, int64_t i) {
  if (call->graph->layout == PLANC_LAYOUT_NHWC || t->rank == 2) return i % t->dims[t->rank - 1];
  int64_t inner = 1;
  for (int32_t d = 2; d < t->rank; d++) inner *= t->dims[d];
  return i / inner % t->dims[1];
}

#define FOR_IMAGE(call, t, n, c, h, w)                         \
  for (int64_t n = 0; n < (t)->dims[0]; n++)                   \
    for (int64_t c = 0; c < formula_channels_of(call, t); c++) \
      for (int64_t h = 0; h < formula_height_of(call, t); h++) \
        for (int64_t w = 0; w < formula_width_of(call, t); w++)

void formula_conv2d(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0], *weights = &call->in[1], *y = &call->out[0];
  int64_t groups = planc_op_int(call->op, "groups", 0, 1), cg = formula_channels_of(call, weights),
          kg = weights->dims[0] / groups;
  FOR_IMAGE(call, y, n, k, p, q) {
    double sum = call->n_in > 2 ? in[2][k] : 0;
    for (int64_t c = 0; c < cg; c++)
      for (int64_t r = 0; r < formula_height_of(call, weights); r++)
        for (int64_t s = 0; s < formula_width_of(call, weights); s++) {
          int64_t h = p * planc_op_int(call->op, "stride", 0, 1) + r * planc_op_int(call->op, "dilation", 0, 1) -
                      planc_op_int(call->op, "pad", 0, 0);
          int64_t w = q * planc_op_int(call->op, "stride", 1, 1) + s * planc_op_int(call->op, "dilation", 1, 1) -
                      planc_op_int(call->op, "pad", 1, 0);
          if (h < 0 || w < 0 || h >= formula_height_of(call, x) || w >= formula_width_of(call, x)) continue;
          sum += in[0][formula_at(call, x, n, k / kg * cg + c, h, w)] * in[1][formula_at(call, weights, k, c, r, s)];
        }
    out[formula_at(call, y, n, k, p, q)] = sum;
  }
}

void formula_linear(const rt_call *call, double *const *in, double *out) {
  int64_t outputs = call->in[1].dims[0], inputs = call->in[1].dims[1];
  for (int64_t e = 0; e < call->out[0].elements; e++) {
    out[e] = call->n_in > 2 ? in[2][e % outputs] : 0;
    for (int64_t i = 0; i < inputs; i++) out[e] += in[0][e / outputs * inputs + i] * in[1][e % outputs * inputs + i];
  }
}

void formula_bias(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++)
    out[e] = in[0][e] + in[1][formula_channel_at(call, &call->in[0], e)];
}

void formula_relu(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] > 0 ? in[0][e] : 0;
}

void formula_add(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] + in[1][e];
}

void formula_pool(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  bool largest = strcmp(call->op->type, "maxpool2d") == 0;
  int64_t rows = planc_op_int(call->op, "kernel", 0, 1), columns = planc_op_int(call->op, "kernel", 1, 1);
  FOR_IMAGE(call, y, n, c, p, q) {
    double best = -INFINITY, sum = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
      int64_t h = p * planc_op_int(call->op, "stride", 0, 1) + i / columns - planc_op_int(call->op, "pad", 0, 0);
      int64_t w = q * planc_op_int(call->op, "stride", 1, 1) + i % columns - planc_op_int(call->op, "pad", 1, 0);
      if (h < 0 || w < 0 || h >= formula_height_of(call, x) || w >= formula_width_of(call, x)) continue;
      double value = in[0][formula_at(call, x, n, c, h, w)];
      best = value > best ? value : best;
      sum += value;
    }
    out[formula_at(call, y, n, c, p, q)] = largest ? best : sum / (double)(rows * columns);
  }
}

void formula_batchnorm(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0];
  bool running = strcmp(call->op->type, "batchnorm_infer") == 0;
  double epsilon = planc_op_real(call->op, "epsilon", 1e-5);
  for (int64_t c = 0; c < formula_channels_of(call, x); c++) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t e = 0; e < x->elements; e++)
      if (formula_channel_at(call, x, e) == c) sum += in[0][e], squares += in[0][e] * in[0][e], count += 1;
    double mean = running ? in[3][c] : sum / count;
    double variance = running ? in[4][c] : squares / count - mean * mean;
    for (int64_t e = 0; e < x->elements; e++)
      if (formula_channel_at(call, x, e) == c)
        out[e] = (in[0][e] - mean) / sqrt(variance + epsilon) * in[1][c] + in[2][c];
  }
}

/* Nearest, or bilinear as a tent of width `scale` around each input's place, with the border repeated: its centre, or
 * where corners are aligned every scale-th pixel. */
void formula_upsample(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0], *y = &call->out[0];
  const planc_attr *mode = planc_op_attr(call->op, "mode");
  bool aligned = mode && strcmp(mode->value.string, "aligned") == 0;
  bool bilinear = aligned || (mode && strcmp(mode->value.string, "bilinear") == 0);
  double scale = (double)planc_op_int(call->op, "scale", 0, 1);
  FOR_IMAGE(call, y, n, c, p, q) {
    double total = 0, v = ((double)p + 0.5) / scale - 0.5, h = ((double)q + 0.5) / scale - 0.5;
    if (aligned) v = (double)p / scale, h = (double)q / scale;
    v = fmin(fmax(v, 0), (double)formula_height_of(call, x) - 1);
    h = fmin(fmax(h, 0), (double)formula_width_of(call, x) - 1);
    for (int64_t i = 0; i < formula_height_of(call, x); i++)
      for (int64_t j = 0; j < formula_width_of(call, x); j++) {
        double weight = fmax(0, 1 - fabs(v - (double)i)) * fmax(0, 1 - fabs(h - (double)j));
        if (!bilinear) weight = p / (int64_t)scale == i && q / (int64_t)scale == j;
        total += weight * in[0][formula_at(call, x, n, c, i, j)];
      }
    out[formula_at(call, y, n, c, p, q)] = total;
  }
}

void formula_gelu(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] * 0.5 * erfc(-in[0][e] / sqrt(2));
}

void formula_sigmoid(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = 0.5 + 0.5 * tanh(in[0][e] / 2);
}

void formula_tanh(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = -expm1(-2 * in[0][e]) / (1 + exp(-2 * in[0][e]));
}

void formula_affine(const rt_call *call, double *const *in, double *out) {
  double scale = planc_op_real(call->op, "scale", 1.0), shift = planc_op_real(call->op, "shift", 0.0);
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = shift + in[0][e] * scale;
}

void formula_expand(const rt_call *call, double *const *in, double *out) {
  int64_t tokens = call->out[0].dims[call->out[0].rank - 2], width = call->out[0].dims[call->out[0].rank - 1];
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e / (tokens * width) * width + e % width];
}

void formula_mul(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] * in[1][e];
}

void formula_layernorm(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0];
  int64_t width = x->dims[x->rank - 1];
  for (int64_t e = 0; e < x->elements; e++) {
    const double *row = in[0] + e / width * width;
    double sum = 0, squares = 0, count = (double)width;
    for (int64_t c = 0; c < width; c++) sum += row[c], squares += row[c] * row[c];
    double variance = squares / count - sum / count * sum / count;
    out[e] = (in[0][e] - sum / count) / sqrt(variance + planc_op_real(call->op, "epsilon", 1e-5)) * in[1][e % width] +
             in[2][e % width];
  }
}

void formula_matmul(const rt_call *call, double *const *in, double *out) {
  const rt_operand *a = &call->in[0], *b = &call->in[1], *y = &call->out[0];
  bool nt = strcmp(call->op->type, "matmul_nt") == 0, tn = strcmp(call->op->type, "matmul_tn") == 0;
  int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1], depth = a->dims[a->rank - (tn ? 2 : 1)];
  for (int64_t e = 0; e < y->elements; e++) {
    int64_t pair = e / (rows * columns), i = e / columns % rows, j = e % columns;
    out[e] = 0;
    for (int64_t k = 0; k < depth; k++) {
      int64_t left = tn ? k * rows + i : i * depth + k, right = nt ? j * depth + k : k * columns + j;
      out[e] += in[0][pair * a->dims[a->rank - 2] * a->dims[a->rank - 1] + left] *
                in[1][pair * b->dims[b->rank - 2] * b->dims[b->rank - 1] + right];
    }
    out[e] *= planc_op_real(call->op, "scale", 1);
  }
}

void formula_softmax(const rt_call *call, double *const *in, double *out) {
  int64_t width = call->out[0].dims[call->out[0].rank - 1];
  for (int64_t e = 0; e < call->out[0].elements; e++) {
    double total = 0;
    for (int64_t c = 0; c < width; c++) total += exp(in[0][e / width * width + c] - in[0][e]);
    out[e] = 1 / total;
  }
}

void formula_position(const rt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] + in[1][e % call->in[1].elements];
}

void formula_mean(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0];
  int64_t tokens = x->dims[x->rank - 2], width = x->dims[x->rank - 1];
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = 0;
  for (int64_t e = 0; e < x->elements; e++) out[e / (tokens * width) * width + e % width] += in[0][e] / (double)tokens;
}

/* Element (o, i, j, k) becomes (o, j, i, k). */
void formula_transpose(const rt_call *call, double *const *in, double *out) {
  const rt_operand *x = &call->in[0];
  int64_t axis = planc_op_int(call->op, "axis", 0, 0), rows = x->dims[axis], columns = x->dims[axis + 1], inner = 1;
  for (int64_t d = axis + 2; d < x->rank; d++) inner *= x->dims[d];
  for (int64_t e = 0; e < x->elements; e++) {
    int64_t k = e % inner, j = e / inner % columns, i = e / inner / columns % rows, o = e / inner / columns / rows;
    out[((o * columns + j) * rows + i) * inner + k] = in[0][e];
  }
}
