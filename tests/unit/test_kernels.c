/* The host's kernels. Forward ops are held to naive formulas in double, written from the definitions; backward ops to
 * central differences of those formulas. All in one precision, so tolerances are for f32 sums of some dozens of terms:
 * 1e-4 of the larger of 1 and the value. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/kernels.h"
#include "tests/support/one_call.h"

static const double tolerance = 1e-4, step = 1e-5;

static void assert_near(double got, double want, const char *what, int64_t index) {
  double scale = fabs(want) > 1 ? fabs(want) : 1;
  ck_assert_msg(fabs(got - want) <= tolerance * scale, "%s[%ld]: %.9g, should be %.9g", what, (long)index, got, want);
}

/* --- Formulas ------------------------------------------------------------------------------------------------- */

/* out[0] of a forward call from its inputs, all in double. */
typedef void (*formula)(const planrt_call *call, double *const *in, double *out);

enum { MAX_IN = 5 };

/* Element (n, c, h, w) of a rank-4 tensor. */
static int64_t at(const planrt_call *call, const planrt_operand *t, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t *d = t->dims;
  return call->graph->layout == PLANC_LAYOUT_NHWC ? ((n * d[1] + h) * d[2] + w) * d[3] + c
                                                  : ((n * d[1] + c) * d[2] + h) * d[3] + w;
}
static int64_t channels_of(const planrt_call *call, const planrt_operand *t) {
  return call->graph->layout == PLANC_LAYOUT_NHWC || t->rank == 2 ? t->dims[t->rank - 1] : t->dims[1];
}
static int64_t height_of(const planrt_call *call, const planrt_operand *t) {
  return t->dims[call->graph->layout == PLANC_LAYOUT_NHWC ? 1 : 2];
}
static int64_t width_of(const planrt_call *call, const planrt_operand *t) {
  return t->dims[call->graph->layout == PLANC_LAYOUT_NHWC ? 2 : 3];
}
/* Channel of element i. */
static int64_t channel_at(const planrt_call *call, const planrt_operand *t, int64_t i) {
  if (call->graph->layout == PLANC_LAYOUT_NHWC || t->rank == 2) return i % t->dims[t->rank - 1];
  int64_t inner = 1;
  for (int32_t d = 2; d < t->rank; d++) inner *= t->dims[d];
  return i / inner % t->dims[1];
}

#define FOR_IMAGE(call, t, n, c, h, w)                 \
  for (int64_t n = 0; n < (t)->dims[0]; n++)           \
    for (int64_t c = 0; c < channels_of(call, t); c++) \
      for (int64_t h = 0; h < height_of(call, t); h++) \
        for (int64_t w = 0; w < width_of(call, t); w++)

static void conv2d(const planrt_call *call, double *const *in, double *out) {
  const planrt_operand *x = &call->in[0], *weights = &call->in[1], *y = &call->out[0];
  int64_t groups = planc_op_int(call->op, "groups", 0, 1), cg = channels_of(call, weights),
          kg = weights->dims[0] / groups;
  FOR_IMAGE(call, y, n, k, p, q) {
    double sum = call->n_in > 2 ? in[2][k] : 0;
    for (int64_t c = 0; c < cg; c++)
      for (int64_t r = 0; r < height_of(call, weights); r++)
        for (int64_t s = 0; s < width_of(call, weights); s++) {
          int64_t h = p * planc_op_int(call->op, "stride", 0, 1) + r * planc_op_int(call->op, "dilation", 0, 1) -
                      planc_op_int(call->op, "pad", 0, 0);
          int64_t w = q * planc_op_int(call->op, "stride", 1, 1) + s * planc_op_int(call->op, "dilation", 1, 1) -
                      planc_op_int(call->op, "pad", 1, 0);
          if (h < 0 || w < 0 || h >= height_of(call, x) || w >= width_of(call, x)) continue;
          sum += in[0][at(call, x, n, k / kg * cg + c, h, w)] * in[1][at(call, weights, k, c, r, s)];
        }
    out[at(call, y, n, k, p, q)] = sum;
  }
}

static void linear(const planrt_call *call, double *const *in, double *out) {
  int64_t outputs = call->in[1].dims[0], inputs = call->in[1].dims[1];
  for (int64_t e = 0; e < call->out[0].elements; e++) {
    out[e] = call->n_in > 2 ? in[2][e % outputs] : 0;
    for (int64_t i = 0; i < inputs; i++) out[e] += in[0][e / outputs * inputs + i] * in[1][e % outputs * inputs + i];
  }
}

static void bias(const planrt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] + in[1][channel_at(call, &call->in[0], e)];
}

static void relu(const planrt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] > 0 ? in[0][e] : 0;
}

static void add(const planrt_call *call, double *const *in, double *out) {
  for (int64_t e = 0; e < call->out[0].elements; e++) out[e] = in[0][e] + in[1][e];
}

static void pool(const planrt_call *call, double *const *in, double *out) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  bool largest = strcmp(call->op->type, "maxpool2d") == 0;
  int64_t rows = planc_op_int(call->op, "kernel", 0, 1), columns = planc_op_int(call->op, "kernel", 1, 1);
  FOR_IMAGE(call, y, n, c, p, q) {
    double best = -INFINITY, sum = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
      int64_t h = p * planc_op_int(call->op, "stride", 0, 1) + i / columns - planc_op_int(call->op, "pad", 0, 0);
      int64_t w = q * planc_op_int(call->op, "stride", 1, 1) + i % columns - planc_op_int(call->op, "pad", 1, 0);
      if (h < 0 || w < 0 || h >= height_of(call, x) || w >= width_of(call, x)) continue;
      double value = in[0][at(call, x, n, c, h, w)];
      best = value > best ? value : best;
      sum += value;
    }
    out[at(call, y, n, c, p, q)] = largest ? best : sum / (double)(rows * columns);
  }
}

static void batchnorm(const planrt_call *call, double *const *in, double *out) {
  const planrt_operand *x = &call->in[0];
  bool running = strcmp(call->op->type, "batchnorm_infer") == 0;
  double epsilon = planc_op_real(call->op, "epsilon", 1e-5);
  for (int64_t c = 0; c < channels_of(call, x); c++) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t e = 0; e < x->elements; e++)
      if (channel_at(call, x, e) == c) sum += in[0][e], squares += in[0][e] * in[0][e], count += 1;
    double mean = running ? in[3][c] : sum / count;
    double variance = running ? in[4][c] : squares / count - mean * mean;
    for (int64_t e = 0; e < x->elements; e++)
      if (channel_at(call, x, e) == c) out[e] = (in[0][e] - mean) / sqrt(variance + epsilon) * in[1][c] + in[2][c];
  }
}

/* Nearest, or bilinear as a tent of width `scale` around each input's centre, with the border repeated. */
static void upsample(const planrt_call *call, double *const *in, double *out) {
  const planrt_operand *x = &call->in[0], *y = &call->out[0];
  const planc_attr *mode = planc_op_attr(call->op, "mode");
  bool bilinear = mode && strcmp(mode->value.string, "bilinear") == 0;
  double scale = (double)planc_op_int(call->op, "scale", 0, 1);
  FOR_IMAGE(call, y, n, c, p, q) {
    double total = 0, v = ((double)p + 0.5) / scale - 0.5, h = ((double)q + 0.5) / scale - 0.5;
    v = fmin(fmax(v, 0), (double)height_of(call, x) - 1);
    h = fmin(fmax(h, 0), (double)width_of(call, x) - 1);
    for (int64_t i = 0; i < height_of(call, x); i++)
      for (int64_t j = 0; j < width_of(call, x); j++) {
        double weight = fmax(0, 1 - fabs(v - (double)i)) * fmax(0, 1 - fabs(h - (double)j));
        if (!bilinear) weight = p / (int64_t)scale == i && q / (int64_t)scale == j;
        total += weight * in[0][at(call, x, n, c, i, j)];
      }
    out[at(call, y, n, c, p, q)] = total;
  }
}

/* --- Checking a forward call and its gradients ------------------------------------------------------------------- */

typedef struct numeric {
  one_call forward;
  formula f;
  double *in[MAX_IN], *out, *other, *weights; /* weights: of the outputs in the scalar that is differentiated */
} numeric;

static double *doubles(int64_t count) {
  double *memory = calloc((size_t)count + 1, sizeof *memory);
  ck_assert(memory);
  return memory;
}

/* Opens a forward op, fills its inputs, runs it and checks its result. */
static void open_forward(numeric *v, const char *layout, const char *tensors, const char *op, formula f) {
  one_call_open(&v->forward, layout, tensors, op, 3, false);
  v->f = f;
  planrt_call *call = &v->forward.call;
  ck_assert_int_le(call->n_in, MAX_IN);
  for (int32_t k = 0; k < call->n_in; k++) {
    /* Variances among the inputs must be positive. */
    one_call_fill(&call->in[k], (uint64_t)k + 1, k == 4 ? 0.5F : -1.0F, 1.5F);
    v->in[k] = doubles(call->in[k].elements);
    for (int64_t e = 0; e < call->in[k].elements; e++) v->in[k][e] = (double)((const float *)call->in[k].data)[e];
  }
  v->out = doubles(call->out[0].elements);
  v->other = doubles(call->out[0].elements);
  v->weights = doubles(call->out[0].elements);
  planrt_launch launch = one_call_launch();
  one_call_run(&v->forward, &launch);
  f(call, v->in, v->out);
  for (int64_t e = 0; e < call->out[0].elements; e++)
    assert_near((double)((const float *)call->out[0].data)[e], v->out[e], call->op->type, e);
}

static void close_forward(numeric *v) {
  for (int32_t k = 0; k < v->forward.call.n_in; k++) free(v->in[k]);
  free(v->out);
  free(v->other);
  free(v->weights);
  one_call_close(&v->forward);
}

/* d(sum of weights[o] * out[o]) / d(in[k][e]) by central differences. */
static double derivative(numeric *v, int32_t k, int64_t e) {
  double value = v->in[k][e], sum = 0;
  v->in[k][e] = value + step;
  v->f(&v->forward.call, v->in, v->out);
  v->in[k][e] = value - step;
  v->f(&v->forward.call, v->in, v->other);
  v->in[k][e] = value;
  for (int64_t o = 0; o < v->forward.call.out[0].elements; o++) sum += v->weights[o] * (v->out[o] - v->other[o]);
  return sum / (2 * step);
}

/* Where a backward op's inputs come from: 'y' the forward result, 'd' its gradient, '0'.. the forward's input, 'm' and
 * 's' its second and third result. */
static void fill_from(numeric *v, const planrt_operand *to, char source) {
  const planrt_call *forward = &v->forward.call;
  const planrt_operand *from = source == 'y'   ? &forward->out[0]
                               : source == 'm' ? &forward->out[1]
                               : source == 's' ? &forward->out[2]
                               : source == 'd' ? NULL
                                               : &forward->in[source - '0'];
  if (from) {
    ck_assert_int_eq(to->bytes, from->bytes);
    memcpy(to->data, from->data, (size_t)to->bytes);
    return;
  }
  one_call_fill(to, 99, -1.0F, 1.0F);
  for (int64_t e = 0; e < to->elements; e++) v->weights[e] = (double)((const float *)to->data)[e];
}

/* Runs a backward op over the forward's operands and checks its k-th output against the derivative by the input that
 * `by` names; then, where it can accumulate, that it adds. */
static void check_backward(numeric *v, const char *tensors, const char *op, const char *sources, const char *by) {
  one_call backward;
  const char *layout = v->forward.graph->layout == PLANC_LAYOUT_NHWC ? "NHWC" : "NCHW";
  one_call_open(&backward, layout, tensors, op, 3, false);
  planrt_call *call = &backward.call;
  ck_assert_int_eq((int)strlen(sources), call->n_in);
  ck_assert_int_eq((int)strlen(by), call->n_out);
  planrt_launch launch = one_call_launch();
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t k = 0; k < call->n_out; k++) {
      /* What was there before must not matter, or, when accumulating, be added to. */
      one_call_fill(&call->out[k], 5, 2.0F, 2.0F);
      call->out[k].accumulate =
          pass == 1 &&
          backward.graph->storages[backward.graph->tensors[call->op->out[k]].storage].kind == PLANC_KIND_grad;
    }
    for (int32_t k = 0; k < call->n_in; k++) fill_from(v, &call->in[k], sources[k]);
    one_call_run(&backward, &launch);
    for (int32_t k = 0; k < call->n_out; k++)
      for (int64_t e = 0; e < call->out[k].elements; e++)
        assert_near((double)((const float *)call->out[k].data)[e] - (call->out[k].accumulate ? 2.0 : 0.0),
                    derivative(v, by[k] - '0', e), call->op->type, e);
  }
  one_call_close(&backward);
}

/* --- Convolution ------------------------------------------------------------------------------------------------ */

typedef struct conv_case {
  const char *attrs, *x[2], *w[2], *k, *y[2]; /* in either layout */
} conv_case;

static const conv_case conv_cases[] = {
    {"stride: [1, 1]", {"[N,2,5,4]", "[N,5,4,2]"}, {"[3,2,3,3]", "[3,3,3,2]"}, "[3]", {"[N,3,3,2]", "[N,3,2,3]"}},
    /* Rows and channels that fill more than one tile. */
    {"pad: [1, 1]", {"[N,9,3,10]", "[N,3,10,9]"}, {"[10,9,3,3]", "[10,3,3,9]"}, "[10]", {"[N,10,3,10]", "[N,3,10,10]"}},
    {"stride: [2, 3], pad: [2, 1]",
     {"[N,2,6,9]", "[N,6,9,2]"},
     {"[2,2,3,2]", "[2,3,2,2]"},
     "[2]",
     {"[N,2,4,4]", "[N,4,4,2]"}},
    {"dilation: [2, 1], pad: [1, 0]",
     {"[N,1,6,3]", "[N,6,3,1]"},
     {"[4,1,3,2]", "[4,3,2,1]"},
     "[4]",
     {"[N,4,4,2]", "[N,4,2,4]"}},
    {"groups: 2, pad: [0, 1]",
     {"[N,4,3,3]", "[N,3,3,4]"},
     {"[6,2,2,3]", "[6,2,3,2]"},
     "[6]",
     {"[N,6,2,3]", "[N,2,3,6]"}},
};
enum { N_CONV_CASES = sizeof conv_cases / sizeof *conv_cases };

static void check_conv(const conv_case *c, bool nhwc) {
  const char *x = c->x[nhwc], *w = c->w[nhwc], *y = c->y[nhwc];
  char tensors[512], op[256];
  numeric v;
  snprintf(tensors, sizeof tensors, "x: input f32%s\nw: param f32%s\nb: param f32%s\ny: f32%s", x, w, c->k, y);
  snprintf(op, sizeof op, "type: conv2d, in: [x, w, b], out: [y], attrs: {%s}", c->attrs);
  open_forward(&v, nhwc ? "NHWC" : "NCHW", tensors, op, conv2d);
  snprintf(tensors, sizeof tensors, "w: param f32%s\ndy: input f32%s\ndx: f32%s", w, y, x);
  snprintf(op, sizeof op, "type: conv2d_dgrad, in: [w, dy], out: [dx], attrs: {%s}", c->attrs);
  check_backward(&v, tensors, op, "1d", "0");
  snprintf(tensors, sizeof tensors, "x: input f32%s\ndy: input f32%s\ndw: grad f32%s", x, y, w);
  snprintf(op, sizeof op, "type: conv2d_wgrad, in: [x, dy], out: [dw], attrs: {%s}", c->attrs);
  check_backward(&v, tensors, op, "0d", "1");
  snprintf(tensors, sizeof tensors, "dy: input f32%s\ndb: grad f32%s", y, c->k);
  check_backward(&v, tensors, "type: conv2d_bgrad, in: [dy], out: [db]", "d", "2");
  close_forward(&v);
}

START_TEST(conv) {
  check_conv(&conv_cases[_i / 2], _i % 2);
}
END_TEST

/* --- Linear, bias, elementwise ---------------------------------------------------------------------------------- */

START_TEST(linear_layers) {
  static const char *const leading[] = {"N", "N,3"};
  char tensors[512];
  numeric v;
  snprintf(tensors, sizeof tensors, "x: input f32[%s,11]\nw: param f32[9,11]\nb: param f32[9]\ny: f32[%s,9]",
           leading[_i], leading[_i]);
  open_forward(&v, "NCHW", tensors, "type: linear, in: [x, w, b], out: [y]", linear);
  snprintf(tensors, sizeof tensors, "w: param f32[9,11]\ndy: input f32[%s,9]\ndx: f32[%s,11]", leading[_i],
           leading[_i]);
  check_backward(&v, tensors, "type: linear_dgrad, in: [w, dy], out: [dx]", "1d", "0");
  snprintf(tensors, sizeof tensors, "x: input f32[%s,11]\ndy: input f32[%s,9]\ndw: grad f32[9,11]", leading[_i],
           leading[_i]);
  check_backward(&v, tensors, "type: linear_wgrad, in: [x, dy], out: [dw]", "0d", "1");
  snprintf(tensors, sizeof tensors, "dy: input f32[%s,9]\ndb: grad f32[9]", leading[_i]);
  check_backward(&v, tensors, "type: linear_bgrad, in: [dy], out: [db]", "d", "2");
  close_forward(&v);
}
END_TEST

START_TEST(channel_bias) {
  static const struct {
    const char *layout, *x, *b;
  } cases[] = {{"NCHW", "[N,4,2,3]", "[4]"}, {"NHWC", "[N,2,3,4]", "[4]"}, {"NCHW", "[N,5]", "[5]"}};
  char tensors[256];
  numeric v;
  snprintf(tensors, sizeof tensors, "x: input f32%s\nb: param f32%s\ny: f32%s", cases[_i].x, cases[_i].b, cases[_i].x);
  open_forward(&v, cases[_i].layout, tensors, "type: bias, in: [x, b], out: [y]", bias);
  snprintf(tensors, sizeof tensors, "dy: input f32%s\ndb: grad f32%s", cases[_i].x, cases[_i].b);
  check_backward(&v, tensors, "type: bias_grad, in: [dy], out: [db]", "d", "1");
  close_forward(&v);
}
END_TEST

START_TEST(relu_and_add) {
  numeric v;
  open_forward(&v, "NCHW", "x: input f32[N,7]\ny: f32[N,7]", "type: relu, in: [x], out: [y]", relu);
  check_backward(&v, "y: input f32[N,7]\ndy: input f32[N,7]\ndx: f32[N,7]", "type: relu_grad, in: [y, dy], out: [dx]",
                 "yd", "0");
  check_backward(&v, "y: input f32[N,7]\ndy: state f32[N,7]", "type: relu_grad, in: [y, dy], out: [dy]", "yd", "0");
  close_forward(&v);
  open_forward(&v, "NCHW", "a: input f32[N,7]\nb: input f32[N,7]\ny: f32[N,7]", "type: add, in: [a, b], out: [y]", add);
  close_forward(&v);
}
END_TEST

/* What is written over an input equals what is written elsewhere. */
START_TEST(in_place) {
  static const struct {
    const char *tensors, *apart, *over;
  } cases[] = {
      {"x: state f32[N,9]\ny: f32[N,9]", "type: relu, in: [x], out: [y]", "type: relu, in: [x], out: [x]"},
      {"x: state f32[N,9]\nb: input f32[N,9]\ny: f32[N,9]", "type: add, in: [x, b], out: [y]",
       "type: add, in: [x, b], out: [x]"},
      {"x: state f32[N,9]\nb: param f32[9]\ny: f32[N,9]", "type: bias, in: [x, b], out: [y]",
       "type: bias, in: [x, b], out: [x]"},
      {"x: state f32[N,9]\ny: f32[N,9]", "type: dropout, in: [x], out: [y], attrs: {p: 0.5, seed: 3}",
       "type: dropout, in: [x], out: [x], attrs: {p: 0.5, seed: 3}"},
  };
  one_call apart, over;
  one_call_open(&apart, "NCHW", cases[_i].tensors, cases[_i].apart, 4, false);
  one_call_open(&over, "NCHW", cases[_i].tensors, cases[_i].over, 4, false);
  planrt_launch launch = one_call_launch();
  for (int32_t k = 0; k < apart.call.n_in; k++) {
    one_call_fill(&apart.call.in[k], (uint64_t)k, -1.0F, 1.0F);
    one_call_fill(&over.call.in[k], (uint64_t)k, -1.0F, 1.0F);
  }
  one_call_run(&apart, &launch);
  one_call_run(&over, &launch);
  ck_assert_mem_eq(apart.call.out[0].data, over.call.out[0].data, (size_t)apart.call.out[0].bytes);
  one_call_close(&apart);
  one_call_close(&over);
}
END_TEST

START_TEST(concatenation) {
  one_call concat, slice;
  one_call_open(&concat, "NCHW", "a: input f32[N,2,3]\nb: input f32[N,1,3]\nc: input f32[N,4,3]\ny: f32[N,7,3]",
                "type: concat, in: [a, b, c], out: [y], attrs: {axis: 1}", 3, false);
  for (int32_t k = 0; k < 3; k++) one_call_fill(&concat.call.in[k], (uint64_t)k, -1.0F, 1.0F);
  planrt_launch launch = one_call_launch();
  one_call_run(&concat, &launch);
  static const char *const tensors[] = {"y: input f32[N,7,3]\na: f32[N,2,3]", "y: input f32[N,7,3]\na: f32[N,1,3]",
                                        "y: input f32[N,7,3]\na: f32[N,4,3]"};
  static const char *const ops[] = {"type: concat_grad, in: [y], out: [a], attrs: {axis: 1, offset: 0}",
                                    "type: concat_grad, in: [y], out: [a], attrs: {axis: 1, offset: 2}",
                                    "type: concat_grad, in: [y], out: [a], attrs: {axis: 1, offset: 3}"};
  for (int32_t k = 0; k < 3; k++) {
    one_call_open(&slice, "NCHW", tensors[k], ops[k], 3, false);
    memcpy(slice.call.in[0].data, concat.call.out[0].data, (size_t)concat.call.out[0].bytes);
    one_call_run(&slice, &launch);
    ck_assert_mem_eq(slice.call.out[0].data, concat.call.in[k].data, (size_t)concat.call.in[k].bytes);
    one_call_close(&slice);
  }
  const float *y = concat.call.out[0].data, *a = concat.call.in[0].data, *b = concat.call.in[1].data;
  ck_assert(y[0] == a[0] && y[6] == b[0] && y[21] == a[6]);
  one_call_close(&concat);
}
END_TEST

/* --- Windows ---------------------------------------------------------------------------------------------------- */

static void check_pool(const char *type, const char *layout, const char *x, const char *y, const char *attrs) {
  char tensors[256], op[256];
  numeric v;
  snprintf(tensors, sizeof tensors, "x: input f32%s\ny: f32%s", x, y);
  snprintf(op, sizeof op, "type: %s, in: [x], out: [y], attrs: {%s}", type, attrs);
  open_forward(&v, layout, tensors, op, pool);
  if (strcmp(type, "maxpool2d") == 0) {
    snprintf(tensors, sizeof tensors, "x: input f32%s\ny: input f32%s\ndy: input f32%s\ndx: f32%s", x, y, y, x);
    snprintf(op, sizeof op, "type: maxpool2d_grad, in: [x, y, dy], out: [dx], attrs: {%s}", attrs);
    check_backward(&v, tensors, op, "0yd", "0");
  } else {
    snprintf(tensors, sizeof tensors, "dy: input f32%s\ndx: f32%s", y, x);
    snprintf(op, sizeof op, "type: avgpool2d_grad, in: [dy], out: [dx], attrs: {%s}", attrs);
    check_backward(&v, tensors, op, "d", "0");
  }
  close_forward(&v);
}

START_TEST(pooling) {
  const char *type = _i ? "avgpool2d" : "maxpool2d";
  check_pool(type, "NCHW", "[N,2,4,6]", "[N,2,2,3]", "kernel: [2, 2], stride: [2, 2]");
  check_pool(type, "NCHW", "[N,2,5,4]", "[N,2,3,4]", "kernel: [3, 3], stride: [2, 1], pad: [1, 1]");
  check_pool(type, "NHWC", "[N,5,4,2]", "[N,3,4,2]", "kernel: [3, 3], stride: [2, 1], pad: [1, 1]");
}
END_TEST

START_TEST(equal_maxima) {
  one_call grad;
  one_call_open(&grad, "NCHW", "x: input f32[N,1,2,2]\ny: input f32[N,1,1,1]\ndy: input f32[N,1,1,1]\ndx: f32[N,1,2,2]",
                "type: maxpool2d_grad, in: [x, y, dy], out: [dx], attrs: {kernel: [2, 2], stride: [2, 2]}", 1, false);
  one_call_fill(&grad.call.in[2], 1, 3.0F, 3.0F);
  planrt_launch launch = one_call_launch();
  one_call_run(&grad, &launch);
  const float want[] = {3.0F, 0.0F, 0.0F, 0.0F};
  ck_assert_mem_eq(grad.call.out[0].data, want, sizeof want);
  one_call_close(&grad);
}
END_TEST

START_TEST(upsampling) {
  static const char *const modes[] = {"nearest", "bilinear"};
  for (int layout = 0; layout < 2; layout++) {
    char op[256];
    numeric v;
    snprintf(op, sizeof op, "type: upsample, in: [x], out: [y], attrs: {scale: 3, mode: %s}", modes[_i]);
    open_forward(&v, layout ? "NHWC" : "NCHW",
                 layout ? "x: input f32[N,3,4,2]\ny: f32[N,9,12,2]" : "x: input f32[N,2,3,4]\ny: f32[N,2,9,12]", op,
                 upsample);
    snprintf(op, sizeof op, "type: upsample_grad, in: [dy], out: [dx], attrs: {scale: 3, mode: %s}", modes[_i]);
    check_backward(&v,
                   layout ? "dy: input f32[N,9,12,2]\ndx: f32[N,3,4,2]" : "dy: input f32[N,2,9,12]\ndx: f32[N,2,3,4]",
                   op, "d", "0");
    close_forward(&v);
  }
}
END_TEST

/* --- Batch normalisation ------------------------------------------------------------------------------------------ */

static const char batchnorm_op[] =
    "type: batchnorm, in: [x, g, b], out: [y, m, s], effects: [rm, rv], attrs: {momentum: 0.25, epsilon: 0.001}";

static const struct {
  const char *layout, *x;
} norm_cases[] = {{"NCHW", "[N,4,2,3]"}, {"NHWC", "[N,2,3,4]"}, {"NCHW", "[N,4]"}};

static const char *norm_tensors(char *buffer, size_t size, const char *x) {
  snprintf(buffer, size,
           "x: input f32%s\ng: param f32[4]\nb: param f32[4]\ny: f32%s\nm: f32[4]\ns: f32[4]\n"
           "rm: state f32[4]\nrv: state f32[4]",
           x, x);
  return buffer;
}

START_TEST(batch_normalisation) {
  char tensors[512];
  numeric v;
  open_forward(&v, norm_cases[_i].layout, norm_tensors(tensors, sizeof tensors, norm_cases[_i].x), batchnorm_op,
               batchnorm);
  snprintf(tensors, sizeof tensors,
           "x: input f32%s\ng: param f32[4]\nm: input f32[4]\ns: input f32[4]\ndy: input f32%s\n"
           "dx: f32%s\ndg: grad f32[4]\ndb: grad f32[4]",
           norm_cases[_i].x, norm_cases[_i].x, norm_cases[_i].x);
  check_backward(&v, tensors, "type: batchnorm_grad, in: [x, g, m, s, dy], out: [dx, dg, db]", "01msd", "012");
  close_forward(&v);
}
END_TEST

START_TEST(running_statistics) {
  char tensors[512];
  one_call norm;
  one_call_open(&norm, norm_cases[_i].layout, norm_tensors(tensors, sizeof tensors, norm_cases[_i].x), batchnorm_op, 3,
                false);
  planrt_call *call = &norm.call;
  for (int32_t k = 0; k < 3; k++) one_call_fill(&call->in[k], (uint64_t)k, -1.0F, 1.0F);
  one_call_fill(&call->effects[0], 4, 0.5F, 0.5F);
  one_call_fill(&call->effects[1], 5, 2.0F, 2.0F);
  planrt_launch launch = one_call_launch();
  one_call_run(&norm, &launch);
  const float *x = call->in[0].data, *running_mean = call->effects[0].data, *running_var = call->effects[1].data;
  double count = (double)call->in[0].elements / 4;
  for (int64_t c = 0; c < 4; c++) {
    double sum = 0, squares = 0;
    for (int64_t e = 0; e < call->in[0].elements; e++)
      if (channel_at(call, &call->in[0], e) == c) sum += (double)x[e], squares += (double)x[e] * (double)x[e];
    double mean = sum / count, variance = (squares - sum * mean) / (count - 1);
    assert_near((double)running_mean[c], 0.75 * 0.5 + 0.25 * mean, "running mean", c);
    assert_near((double)running_var[c], 0.75 * 2.0 + 0.25 * variance, "running variance", c);
  }

  /* A recompute has no side effects and gives the same bits. */
  float *y = malloc((size_t)call->out[0].bytes);
  memcpy(y, call->out[0].data, (size_t)call->out[0].bytes);
  void *effects[] = {call->effects[0].data, call->effects[1].data};
  float kept[] = {running_mean[0], running_var[0]};
  call->effects[0].data = call->effects[1].data = NULL;
  memset(call->out[0].data, 0, (size_t)call->out[0].bytes);
  one_call_run(&norm, &launch);
  ck_assert_mem_eq(call->out[0].data, y, (size_t)call->out[0].bytes);
  call->effects[0].data = effects[0], call->effects[1].data = effects[1];
  ck_assert(running_mean[0] == kept[0] && running_var[0] == kept[1]);
  free(y);
  one_call_close(&norm);
}
END_TEST

/* Inference of the training op and of batchnorm_infer agree, and leave the statistics alone. */
START_TEST(normalising_in_inference) {
  char tensors[512];
  one_call norm;
  numeric v;
  snprintf(tensors, sizeof tensors,
           "x: input f32%s\ng: param f32[4]\nb: param f32[4]\nrm: state f32[4]\nrv: state f32[4]\ny: f32%s",
           norm_cases[_i].x, norm_cases[_i].x);
  open_forward(&v, norm_cases[_i].layout, tensors,
               "type: batchnorm_infer, in: [x, g, b, rm, rv], out: [y], attrs: {epsilon: 0.001}", batchnorm);
  one_call_open(&norm, norm_cases[_i].layout, norm_tensors(tensors, sizeof tensors, norm_cases[_i].x), batchnorm_op, 3,
                false);
  for (int32_t k = 0; k < 5; k++) {
    const planrt_operand *to = k < 3 ? &norm.call.in[k] : &norm.call.effects[k - 3];
    memcpy(to->data, v.forward.call.in[k].data, (size_t)to->bytes);
  }
  planrt_launch launch = one_call_launch();
  launch.inference = true;
  one_call_run(&norm, &launch);
  ck_assert_mem_eq(norm.call.out[0].data, v.forward.call.out[0].data, (size_t)norm.call.out[0].bytes);
  ck_assert_mem_eq(norm.call.effects[0].data, v.forward.call.in[3].data, 16);
  close_forward(&v);
  one_call_close(&norm);
}
END_TEST

/* --- Dropout ------------------------------------------------------------------------------------------------------ */

static const char dropout_tensors[] = "x: input f32[N,250]\ny: f32[N,250]";

static void run_dropout(one_call *one, int64_t batch, const char *op, const planrt_launch *launch) {
  one_call_open(one, "NCHW", dropout_tensors, op, batch, false);
  one_call_fill(&one->call.in[0], 1, 1.0F, 1.0F);
  one_call_run(one, launch);
}

START_TEST(dropout_counts) {
  static const char op[] = "type: dropout, in: [x], out: [y], attrs: {p: 0.25, seed: 3}";
  one_call whole, other, grad;
  planrt_launch launch = one_call_launch();
  run_dropout(&whole, 16, op, &launch);
  const float *y = whole.call.out[0].data;
  int dropped = 0;
  for (int i = 0; i < 4000; i++) {
    dropped += y[i] == 0.0F;
    if (y[i] != 0.0F) ck_assert_float_eq_tol(y[i], 4.0F / 3.0F, 1e-6F);
  }
  /* 1000 expected, standard deviation 27. */
  ck_assert_int_ge(dropped, 890);
  ck_assert_int_le(dropped, 1110);

  /* The gradient drops what the forward op dropped. */
  run_dropout(&grad, 16, "type: dropout_grad, in: [x], out: [y], attrs: {p: 0.25, seed: 3}", &launch);
  ck_assert_mem_eq(grad.call.out[0].data, y, 16000);

  /* A round of the last 6 samples draws what the whole batch drew for them; another seed or iteration does not. */
  one_call_open(&other, "NCHW", dropout_tensors, op, 6, false);
  one_call_fill(&other.call.in[0], 1, 1.0F, 1.0F);
  other.call.job_batch = 16;
  other.call.sample_offset = 10;
  one_call_run(&other, &launch);
  ck_assert_mem_eq(other.call.out[0].data, y + 2500, 6000);
  launch.step.period = 1;
  one_call_run(&other, &launch);
  ck_assert_mem_ne(other.call.out[0].data, y + 2500, 6000);
  launch.step.period = 0;
  launch.seed = 8;
  one_call_run(&other, &launch);
  ck_assert_mem_ne(other.call.out[0].data, y + 2500, 6000);

  launch.inference = true;
  one_call_run(&other, &launch);
  ck_assert_mem_eq(other.call.out[0].data, other.call.in[0].data, 6000);
  one_call_close(&whole);
  one_call_close(&grad);
  one_call_close(&other);
}
END_TEST

/* --- Softmax ------------------------------------------------------------------------------------------------------ */

/* Mean over the job's batch of -log softmax(logits)[label]. */
static double cross_entropy(const planrt_call *call, const double *logits, const int64_t *labels) {
  const planrt_operand *z = &call->in[0];
  int64_t classes = channels_of(call, z), positions = call->in[1].elements, per_sample = positions / call->batch;
  double total = 0;
  for (int64_t i = 0; i < positions; i++) {
    double sum = 0, target = 0;
    for (int64_t c = 0; c < classes; c++) {
      int64_t e = z->rank == 2 || call->graph->layout == PLANC_LAYOUT_NHWC
                      ? i * classes + c
                      : (i / per_sample * classes + c) * per_sample + i % per_sample;
      sum += exp(logits[e]);
      if (c == labels[i]) target = logits[e];
    }
    if (labels[i] >= 0 && labels[i] < classes) total += log(sum) - target;
  }
  return total / (double)(call->job_batch * per_sample);
}

START_TEST(softmax_cross_entropy) {
  static const struct {
    const char *layout, *logits, *labels;
  } cases[] = {{"NCHW", "[N,5]", "[N]"}, {"NCHW", "[N,5,2,3]", "[N,2,3]"}, {"NHWC", "[N,2,3,5]", "[N,2,3]"}};
  char tensors[256];
  one_call forward, backward;
  snprintf(tensors, sizeof tensors, "z: input f32%s\nl: input i64%s\nloss: f32[]\np: f32%s", cases[_i].logits,
           cases[_i].labels, cases[_i].logits);
  one_call_open(&forward, cases[_i].layout, tensors, "type: softmax_xent, in: [z, l], out: [loss, p]", 3, false);
  snprintf(tensors, sizeof tensors, "p: input f32%s\nl: input i64%s\ndz: f32%s", cases[_i].logits, cases[_i].labels,
           cases[_i].logits);
  one_call_open(&backward, cases[_i].layout, tensors, "type: softmax_xent_grad, in: [p, l], out: [dz]", 3, false);
  /* A round of 3 in a batch of 8. */
  planrt_call *call = &forward.call;
  call->job_batch = backward.call.job_batch = 8;
  one_call_fill(&call->in[0], 1, -3.0F, 3.0F);
  int64_t *labels = call->in[1].data;
  for (int64_t i = 0; i < call->in[1].elements; i++) labels[i] = i * 3 % 5;
  labels[1] = 5;
  labels[2] = -1;
  planrt_launch launch = one_call_launch();
  one_call_run(&forward, &launch);
  double *logits = doubles(call->in[0].elements);
  for (int64_t e = 0; e < call->in[0].elements; e++) logits[e] = (double)((const float *)call->in[0].data)[e];
  assert_near((double)*(const float *)call->out[0].data, cross_entropy(call, logits, labels), "loss", 0);

  memcpy(backward.call.in[0].data, call->out[1].data, (size_t)call->out[1].bytes);
  memcpy(backward.call.in[1].data, labels, (size_t)call->in[1].bytes);
  one_call_run(&backward, &launch);
  for (int64_t e = 0; e < call->in[0].elements; e++) {
    double value = logits[e];
    logits[e] = value + step;
    double above = cross_entropy(call, logits, labels);
    logits[e] = value - step;
    double below = cross_entropy(call, logits, labels);
    logits[e] = value;
    assert_near((double)((const float *)backward.call.out[0].data)[e], (above - below) / (2 * step), "dlogits", e);
  }
  free(logits);
  one_call_close(&forward);
  one_call_close(&backward);
}
END_TEST

/* --- Optimizers --------------------------------------------------------------------------------------------------- */

START_TEST(optimizer_steps) {
  static const struct {
    const char *tensors, *op;
  } cases[] = {
      {"w: param f32[9]\ng: input f32[9]", "type: sgd, phase: optimizer, in: [w, g], out: [w], attrs: {lr: 0.5}"},
      {"w: param f32[9]\ng: input f32[9]\nv: state f32[9]",
       "type: momentum, phase: optimizer, in: [w, g, v], out: [w, v], attrs: {lr: 0.5, momentum: 0.75}"},
      {"w: param f32[9]\ng: input f32[9]\nm: state f32[9]\nv: state f32[9]",
       "type: adam, phase: optimizer, in: [w, g, m, v], out: [w, m, v], "
       "attrs: {lr: 0.5, beta1: 0.75, beta2: 0.5, epsilon: 0.001}"},
  };
  one_call one;
  one_call_open(&one, "NCHW", cases[_i].tensors, cases[_i].op, 1, false);
  one_call_fill(&one.call.in[0], 1, -1.0F, 1.0F);
  double w[9], m[9] = {0}, v[9] = {0};
  for (int e = 0; e < 9; e++) w[e] = (double)((const float *)one.call.in[0].data)[e];
  for (int t = 1; t <= 3; t++) {
    planrt_launch launch = one_call_launch();
    launch.step.period = t - 1;
    double rate = 0.5;
    if (t == 3) launch.step.learning_rate = rate = 0.125;
    one_call_fill(&one.call.in[1], (uint64_t)t + 10, -1.0F, 1.0F);
    one_call_run(&one, &launch);
    for (int e = 0; e < 9; e++) {
      double g = (double)((const float *)one.call.in[1].data)[e];
      if (_i == 0) w[e] -= rate * g;
      if (_i == 1) v[e] = 0.75 * v[e] + g, w[e] -= rate * v[e];
      if (_i == 2) {
        m[e] = 0.75 * m[e] + 0.25 * g;
        v[e] = 0.5 * v[e] + 0.5 * g * g;
        w[e] -= rate * m[e] / (1 - pow(0.75, t)) / (sqrt(v[e] / (1 - pow(0.5, t))) + 0.001);
      }
      assert_near((double)((const float *)one.call.out[0].data)[e], w[e], one.call.op->type, e);
    }
  }
  one_call_close(&one);
}
END_TEST

/* --- Stand-ins ------------------------------------------------------------------------------------------------------
 */

static const char stand_in_tensors[] = "a: state f32[N,5]\nb: param u8[7]\nr: state f32[3]\ny: f32[N,3]\nz: u8[13]\n";
static const char stand_in_op[] = "type: unknown, in: [a, b], out: [y, z, a], effects: [r]";

typedef struct outcome {
  char y[24], z[13], a[40], r[12];
} outcome;

/* Runs the stand-in with one input byte changed. */
static outcome run_stand_in(int32_t operand, int64_t byte, bool recompute) {
  one_call one;
  outcome result;
  char workspace[8];
  one_call_open(&one, "NCHW", stand_in_tensors, stand_in_op, 2, true);
  planrt_call *call = &one.call;
  const planrt_operand *inputs[] = {&call->in[0], &call->in[1], &call->effects[0]};
  if (operand >= 0) ((char *)inputs[operand]->data)[byte] ^= 1;
  call->workspace = workspace;
  call->workspace_bytes = sizeof workspace;
  for (int32_t k = 0; recompute && k < one.trace->n_accesses; k++)
    if (one.trace->accesses[k].effect) call->memory[k] = NULL;
  planrt_launch launch = one_call_launch();
  one_call_run(&one, &launch);
  memcpy(result.y, call->out[0].data, sizeof result.y);
  memcpy(result.z, call->out[1].data, sizeof result.z);
  memcpy(result.a, call->out[2].data, sizeof result.a);
  memcpy(result.r, call->effects[0].data, sizeof result.r);
  one_call_close(&one);
  return result;
}

START_TEST(stand_ins) {
  static const int64_t bytes[] = {40, 7};
  outcome plain = run_stand_in(-1, 0, false), again = run_stand_in(-1, 0, false), other;
  ck_assert_mem_eq(&plain, &again, sizeof plain);
  for (int32_t operand = 0; operand < 2; operand++)
    for (int64_t byte = 0; byte < bytes[operand]; byte++) {
      other = run_stand_in(operand, byte, false);
      ck_assert_mem_ne(other.y, plain.y, sizeof plain.y);
      ck_assert_mem_ne(other.z, plain.z, sizeof plain.z);
      ck_assert_mem_ne(other.a, plain.a, sizeof plain.a);
      ck_assert_mem_ne(other.r, plain.r, sizeof plain.r);
    }
  for (int64_t byte = 0; byte < 12; byte++) {
    other = run_stand_in(2, byte, false);
    ck_assert_mem_eq(&other, &plain, offsetof(outcome, r));
    ck_assert_mem_ne(other.r, plain.r, sizeof plain.r);
  }
  static const char untouched[12] = {0};
  other = run_stand_in(-1, 0, true);
  ck_assert_mem_eq(&other, &plain, offsetof(outcome, r));
  ck_assert_mem_eq(other.r, untouched, sizeof untouched);
}
END_TEST

/* --- The table ------------------------------------------------------------------------------------------------------
 */

START_TEST(every_type_has_a_kernel) {
  int32_t count;
  const planc_optype *types = planc_optypes(&count);
  ck_assert_int_ge(count, 30);
  for (int32_t i = 0; i < count; i++) {
    const planrt_kernel *kernel = planrt_kernel_find(types[i].name);
    ck_assert_msg(kernel && strcmp(kernel->type, types[i].name) == 0, "%s", types[i].name);
  }
  ck_assert_ptr_null(planrt_kernel_find("aten.mm"));
}
END_TEST

START_TEST(only_f32) {
  planc_graph *graph;
  static const char text[] =
      "planc-graph: 1\nname: half\ntensors:\n  x: input f16[N,3]\n  y: f16[N,3]\n"
      "ops:\n  - {op: o, type: relu, in: [x], out: [y]}\n";
  ck_assert(!planc_graph_parse(text, sizeof text - 1, "half", &graph));
  int64_t batch = 2;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  planc_trace *trace;
  ck_assert(!planc_expand(&job, 1, &trace));
  planrt_device *device;
  planrt_device_options options = {.n_streams = 1};
  ck_assert(!planrt_host_backend.open(&options, &device));
  planc_arena arena = {0};
  planrt_call call;
  void *memory[2] = {0};
  ck_assert(!planrt_call_make(&arena, trace, 0, memory, &call));
  planc_status status = planrt_host_backend.prepare(device, &call);
  ck_assert_int_eq(planc_status_code(status), PLANC_DEVICE);
  planc_status_free(status);
  planrt_host_backend.close(device);
  planc_arena_free(&arena);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("kernels");
  TCase *c = tcase_create("kernels");
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, conv, 0, 2 * N_CONV_CASES);
  tcase_add_loop_test(c, linear_layers, 0, 2);
  tcase_add_loop_test(c, channel_bias, 0, 3);
  tcase_add_test(c, relu_and_add);
  tcase_add_loop_test(c, in_place, 0, 4);
  tcase_add_test(c, concatenation);
  tcase_add_loop_test(c, pooling, 0, 2);
  tcase_add_test(c, equal_maxima);
  tcase_add_loop_test(c, upsampling, 0, 2);
  tcase_add_loop_test(c, batch_normalisation, 0, 3);
  tcase_add_loop_test(c, running_statistics, 0, 3);
  tcase_add_loop_test(c, normalising_in_inference, 0, 3);
  tcase_add_test(c, dropout_counts);
  tcase_add_loop_test(c, softmax_cross_entropy, 0, 3);
  tcase_add_loop_test(c, optimizer_steps, 0, 3);
  tcase_add_test(c, stand_ins);
  tcase_add_test(c, every_type_has_a_kernel);
  tcase_add_test(c, only_f32);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
