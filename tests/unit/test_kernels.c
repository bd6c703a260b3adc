/* The host's kernels. Forward ops are held to formulas in double, backward ops to central differences of those. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/formulas.h"
#include "tests/support/one_call.h"
#include "tests/support/unit.h"

enum { MAX_IN = 5, MAX_OUT = 3 };

/* --- Checking a forward call and its gradients -------------------------------------------------------------------- */

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
  rt_call *call = &v->forward.call;
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
  rt_launch launch = one_call_launch();
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
  v->in[k][e] = value + FORMULA_STEP;
  v->f(&v->forward.call, v->in, v->out);
  v->in[k][e] = value - FORMULA_STEP;
  v->f(&v->forward.call, v->in, v->other);
  v->in[k][e] = value;
  for (int64_t o = 0; o < v->forward.call.out[0].elements; o++) sum += v->weights[o] * (v->out[o] - v->other[o]);
  return sum / (2 * FORMULA_STEP);
}

/* Where a backward op's inputs come from: 'y' the forward result, 'd' its gradient, '0'.. the forward's input, 'm' and
 * 's' its second and third result. */
static void fill_from(numeric *v, const rt_operand *to, char source) {
  const rt_call *forward = &v->forward.call;
  const rt_operand *from = source == 'y'   ? &forward->out[0]
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
  rt_call *call = &backward.call;
  ck_assert_int_eq((int)strlen(sources), call->n_in);
  ck_assert_int_eq((int)strlen(by), call->n_out);
  rt_launch launch = one_call_launch();
  double *derivatives[MAX_OUT];
  ck_assert_int_le(call->n_out, MAX_OUT);
  for (int32_t k = 0; k < call->n_out; k++) derivatives[k] = doubles(call->out[k].elements);
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
      for (int64_t e = 0; e < call->out[k].elements; e++) {
        if (pass == 0) derivatives[k][e] = derivative(v, by[k] - '0', e);
        assert_near((double)((const float *)call->out[k].data)[e] - (call->out[k].accumulate ? 2.0 : 0.0),
                    derivatives[k][e], call->op->type, e);
      }
  }
  for (int32_t k = 0; k < call->n_out; k++) free(derivatives[k]);
  one_call_close(&backward);
}

/* --- Convolution -------------------------------------------------------------------------------------------------- */

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
  open_forward(&v, nhwc ? "NHWC" : "NCHW", tensors, op, formula_conv2d);
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
  if (is_sampled(_i / 2 + _i % 2, 2)) check_conv(&conv_cases[_i / 2], _i % 2);
}
END_TEST

/* --- Linear, bias, elementwise ------------------------------------------------------------------------------------ */

START_TEST(linear_layers) {
  static const char *const leading[] = {"N", "N,3"};
  char tensors[512];
  numeric v;
  snprintf(tensors, sizeof tensors, "x: input f32[%s,11]\nw: param f32[9,11]\nb: param f32[9]\ny: f32[%s,9]",
           leading[_i], leading[_i]);
  open_forward(&v, "NCHW", tensors, "type: linear, in: [x, w, b], out: [y]", formula_linear);
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
  open_forward(&v, cases[_i].layout, tensors, "type: bias, in: [x, b], out: [y]", formula_bias);
  snprintf(tensors, sizeof tensors, "dy: input f32%s\ndb: grad f32%s", cases[_i].x, cases[_i].b);
  check_backward(&v, tensors, "type: bias_grad, in: [dy], out: [db]", "d", "1");
  close_forward(&v);
}
END_TEST

START_TEST(relu_and_add) {
  numeric v;
  open_forward(&v, "NCHW", "x: input f32[N,7]\ny: f32[N,7]", "type: relu, in: [x], out: [y]", formula_relu);
  check_backward(&v, "y: input f32[N,7]\ndy: input f32[N,7]\ndx: f32[N,7]", "type: relu_grad, in: [y, dy], out: [dx]",
                 "yd", "0");
  check_backward(&v, "y: input f32[N,7]\ndy: state f32[N,7]", "type: relu_grad, in: [y, dy], out: [dy]", "yd", "0");
  close_forward(&v);
  open_forward(&v, "NCHW", "a: input f32[N,7]\nb: input f32[N,7]\ny: f32[N,7]", "type: add, in: [a, b], out: [y]",
               formula_add);
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
      {"x: state f32[N,9]\ny: f32[N,9]", "type: gelu, in: [x], out: [y]", "type: gelu, in: [x], out: [x]"},
      {"x: state f32[N,9]\ny: f32[N,9]", "type: softmax, in: [x], out: [y]", "type: softmax, in: [x], out: [x]"},
      {"x: state f32[N,2,9]\np: param f32[2,9]\ny: f32[N,2,9]", "type: position, in: [x, p], out: [y]",
       "type: position, in: [x, p], out: [x]"},
      {"x: state f32[N,9]\ny: f32[N,9]", "type: dropout, in: [x], out: [y], attrs: {p: 0.5, seed: 3}",
       "type: dropout, in: [x], out: [x], attrs: {p: 0.5, seed: 3}"},
  };
  one_call apart, over;
  one_call_open(&apart, "NCHW", cases[_i].tensors, cases[_i].apart, 4, false);
  one_call_open(&over, "NCHW", cases[_i].tensors, cases[_i].over, 4, false);
  rt_launch launch = one_call_launch();
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
  rt_launch launch = one_call_launch();
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

/* --- Windows ------------------------------------------------------------------------------------------------------ */

static void check_pool(const char *type, const char *layout, const char *x, const char *y, const char *attrs) {
  char tensors[256], op[256];
  numeric v;
  snprintf(tensors, sizeof tensors, "x: input f32%s\ny: f32%s", x, y);
  snprintf(op, sizeof op, "type: %s, in: [x], out: [y], attrs: {%s}", type, attrs);
  open_forward(&v, layout, tensors, op, formula_pool);
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
  rt_launch launch = one_call_launch();
  one_call_run(&grad, &launch);
  const float want[] = {3.0F, 0.0F, 0.0F, 0.0F};
  ck_assert_mem_eq(grad.call.out[0].data, want, sizeof want);
  one_call_close(&grad);
}
END_TEST

START_TEST(upsampling) {
  static const char *const modes[] = {"nearest", "bilinear", "aligned"};
  static const char *const large[][2] = {{"N,2,9,12", "N,9,12,2"}, {"N,2,9,12", "N,9,12,2"}, {"N,2,7,10", "N,7,10,2"}};
  static const char *const small[] = {"N,2,3,4", "N,3,4,2"};
  for (int layout = 0; layout < 2; layout++) {
    char op[256], tensors[256];
    numeric v;
    snprintf(op, sizeof op, "type: upsample, in: [x], out: [y], attrs: {scale: 3, mode: %s}", modes[_i]);
    snprintf(tensors, sizeof tensors, "x: input f32[%s]\ny: f32[%s]", small[layout], large[_i][layout]);
    open_forward(&v, layout ? "NHWC" : "NCHW", tensors, op, formula_upsample);
    snprintf(op, sizeof op, "type: upsample_grad, in: [dy], out: [dx], attrs: {scale: 3, mode: %s}", modes[_i]);
    snprintf(tensors, sizeof tensors, "dy: input f32[%s]\ndx: f32[%s]", large[_i][layout], small[layout]);
    check_backward(&v, tensors, op, "d", "0");
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
               formula_batchnorm);
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
  rt_call *call = &norm.call;
  for (int32_t k = 0; k < 3; k++) one_call_fill(&call->in[k], (uint64_t)k, -1.0F, 1.0F);
  one_call_fill(&call->effects[0], 4, 0.5F, 0.5F);
  one_call_fill(&call->effects[1], 5, 2.0F, 2.0F);
  rt_launch launch = one_call_launch();
  one_call_run(&norm, &launch);
  const float *x = call->in[0].data, *running_mean = call->effects[0].data, *running_var = call->effects[1].data;
  double count = (double)call->in[0].elements / 4;
  for (int64_t c = 0; c < 4; c++) {
    double sum = 0, squares = 0;
    for (int64_t e = 0; e < call->in[0].elements; e++)
      if (formula_channel_at(call, &call->in[0], e) == c) sum += (double)x[e], squares += (double)x[e] * (double)x[e];
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
               "type: batchnorm_infer, in: [x, g, b, rm, rv], out: [y], attrs: {epsilon: 0.001}", formula_batchnorm);
  one_call_open(&norm, norm_cases[_i].layout, norm_tensors(tensors, sizeof tensors, norm_cases[_i].x), batchnorm_op, 3,
                false);
  for (int32_t k = 0; k < 5; k++) {
    const rt_operand *to = k < 3 ? &norm.call.in[k] : &norm.call.effects[k - 3];
    memcpy(to->data, v.forward.call.in[k].data, (size_t)to->bytes);
  }
  rt_launch launch = one_call_launch();
  launch.inference = true;
  one_call_run(&norm, &launch);
  ck_assert_mem_eq(norm.call.out[0].data, v.forward.call.out[0].data, (size_t)norm.call.out[0].bytes);
  ck_assert_mem_eq(norm.call.effects[0].data, v.forward.call.in[3].data, 16);
  close_forward(&v);
  one_call_close(&norm);
}
END_TEST

/* --- Sequences ---------------------------------------------------------------------------------------------------- */

typedef struct sequence_case {
  const char *tensors, *op;
  formula f;
  struct {
    const char *tensors, *op, *sources, *by;
  } backward[2];
} sequence_case;

/* Products and rows that fill more than one tile. */
static const sequence_case sequence_cases[] = {
    {"x: input f32[N,7]\ny: f32[N,7]",
     "type: gelu, in: [x], out: [y]",
     formula_gelu,
     {{"x: input f32[N,7]\ndy: input f32[N,7]\ndx: f32[N,7]", "type: gelu_grad, in: [x, dy], out: [dx]", "0d", "0"},
      {"x: input f32[N,7]\ndy: state f32[N,7]", "type: gelu_grad, in: [x, dy], out: [dy]", "0d", "0"}}},
    {"x: input f32[N,7]\ny: f32[N,7]",
     "type: sigmoid, in: [x], out: [y]",
     formula_sigmoid,
     {{"y: input f32[N,7]\ndy: input f32[N,7]\ndx: f32[N,7]", "type: sigmoid_grad, in: [y, dy], out: [dx]", "yd", "0"},
      {"y: input f32[N,7]\ndy: state f32[N,7]", "type: sigmoid_grad, in: [y, dy], out: [dy]", "yd", "0"}}},
    {"x: input f32[N,7]\ny: f32[N,7]",
     "type: tanh, in: [x], out: [y]",
     formula_tanh,
     {{"y: input f32[N,7]\ndy: input f32[N,7]\ndx: f32[N,7]", "type: tanh_grad, in: [y, dy], out: [dx]", "yd", "0"},
      {"y: input f32[N,7]\ndy: state f32[N,7]", "type: tanh_grad, in: [y, dy], out: [dy]", "yd", "0"}}},
    {"x: input f32[N,7]\ny: f32[N,7]",
     "type: affine, in: [x], out: [y], attrs: {scale: -0.5, shift: 1}",
     formula_affine,
     {{"dy: state f32[N,7]", "type: affine_grad, in: [dy], out: [dy], attrs: {scale: -0.5, shift: 1}", "d", "0"}}},
    {"x: input f32[N,4]\ny: f32[N,3,4]",
     "type: expand, in: [x], out: [y]",
     formula_expand,
     {{"dy: input f32[N,3,4]\ndx: f32[N,4]", "type: expand_grad, in: [dy], out: [dx]", "d", "0"}}},
    {"a: input f32[N,7]\nb: input f32[N,7]\ny: f32[N,7]",
     "type: mul, in: [a, b], out: [y]",
     formula_mul,
     {{"dy: input f32[N,7]\nb: input f32[N,7]\nda: f32[N,7]", "type: mul, in: [dy, b], out: [da]", "d1", "0"},
      {"a: input f32[N,7]\ndy: state f32[N,7]", "type: mul, in: [dy, a], out: [dy]", "d0", "1"}}},
    {"x: input f32[N,2,6]\ng: param f32[6]\nb: param f32[6]\ny: f32[N,2,6]\nm: f32[N,2]\ns: f32[N,2]",
     "type: layernorm, in: [x, g, b], out: [y, m, s], attrs: {epsilon: 0.01}",
     formula_layernorm,
     {{"x: input f32[N,2,6]\ng: param f32[6]\nm: input f32[N,2]\ns: input f32[N,2]\ndy: input f32[N,2,6]\n"
       "dx: f32[N,2,6]\ndg: grad f32[6]\ndb: grad f32[6]",
       "type: layernorm_grad, in: [x, g, m, s, dy], out: [dx, dg, db]", "01msd", "012"}}},
    {"x: input f32[N,2,5]\ny: f32[N,2,5]",
     "type: softmax, in: [x], out: [y]",
     formula_softmax,
     {{"y: input f32[N,2,5]\ndy: input f32[N,2,5]\ndx: f32[N,2,5]", "type: softmax_grad, in: [y, dy], out: [dx]", "yd",
       "0"},
      {"y: input f32[N,2,5]\ndy: state f32[N,2,5]", "type: softmax_grad, in: [y, dy], out: [dy]", "yd", "0"}}},
    {"a: input f32[N,2,9,3]\nb: input f32[N,2,3,10]\ny: f32[N,2,9,10]",
     "type: matmul, in: [a, b], out: [y], attrs: {scale: 0.5}",
     formula_matmul,
     {{"dy: input f32[N,2,9,10]\nb: input f32[N,2,3,10]\nda: f32[N,2,9,3]",
       "type: matmul_nt, in: [dy, b], out: [da], attrs: {scale: 0.5}", "d1", "0"},
      {"a: input f32[N,2,9,3]\ndy: input f32[N,2,9,10]\ndb: f32[N,2,3,10]",
       "type: matmul_tn, in: [a, dy], out: [db], attrs: {scale: 0.5}", "0d", "1"}}},
    {"a: input f32[N,2,9,3]\nb: input f32[N,2,10,3]\ny: f32[N,2,9,10]",
     "type: matmul_nt, in: [a, b], out: [y]",
     formula_matmul,
     {{"dy: input f32[N,2,9,10]\nb: input f32[N,2,10,3]\nda: f32[N,2,9,3]", "type: matmul, in: [dy, b], out: [da]",
       "d1", "0"},
      {"dy: input f32[N,2,9,10]\na: input f32[N,2,9,3]\ndb: f32[N,2,10,3]", "type: matmul_tn, in: [dy, a], out: [db]",
       "d0", "1"}}},
    {"a: input f32[N,3,9]\nb: input f32[N,3,10]\ny: f32[N,9,10]",
     "type: matmul_tn, in: [a, b], out: [y], attrs: {scale: -2}",
     formula_matmul,
     {{"b: input f32[N,3,10]\ndy: input f32[N,9,10]\nda: f32[N,3,9]",
       "type: matmul_nt, in: [b, dy], out: [da], attrs: {scale: -2}", "1d", "0"},
      {"a: input f32[N,3,9]\ndy: input f32[N,9,10]\ndb: f32[N,3,10]",
       "type: matmul, in: [a, dy], out: [db], attrs: {scale: -2}", "0d", "1"}}},
    {"x: input f32[N,2,3]\np: param f32[2,3]\ny: f32[N,2,3]",
     "type: position, in: [x, p], out: [y]",
     formula_position,
     {{"dy: input f32[N,2,3]\ndp: grad f32[2,3]", "type: position_grad, in: [dy], out: [dp]", "d", "1"}}},
    {"x: input f32[N,3,4]\ny: f32[N,4]",
     "type: mean, in: [x], out: [y]",
     formula_mean,
     {{"dy: input f32[N,4]\ndx: f32[N,3,4]", "type: mean_grad, in: [dy], out: [dx]", "d", "0"}}},
    {"x: input f32[N,2,3,4]\ny: f32[N,3,2,4]",
     "type: transpose, in: [x], out: [y], attrs: {axis: 1}",
     formula_transpose,
     {{"dy: input f32[N,3,2,4]\ndx: f32[N,2,3,4]", "type: transpose, in: [dy], out: [dx], attrs: {axis: 1}", "d",
       "0"}}},
    {"x: input f32[N,2,3,4]\ny: f32[N,2,4,3]",
     "type: transpose, in: [x], out: [y], attrs: {axis: 2}",
     formula_transpose,
     {{"dy: input f32[N,2,4,3]\ndx: f32[N,2,3,4]", "type: transpose, in: [dy], out: [dx], attrs: {axis: 2}", "d",
       "0"}}},
};
enum { N_SEQUENCE_CASES = sizeof sequence_cases / sizeof *sequence_cases };

START_TEST(sequences) {
  const sequence_case *c = &sequence_cases[_i];
  numeric v;
  open_forward(&v, "NCHW", c->tensors, c->op, c->f);
  for (int k = 0; k < 2 && c->backward[k].op; k++)
    check_backward(&v, c->backward[k].tensors, c->backward[k].op, c->backward[k].sources, c->backward[k].by);
  close_forward(&v);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("kernels");
  TCase *c = tcase_create("kernels");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, conv, 0, 2 * N_CONV_CASES);
  tcase_add_loop_test(c, linear_layers, 0, 2);
  tcase_add_loop_test(c, channel_bias, 0, 3);
  tcase_add_test(c, relu_and_add);
  tcase_add_loop_test(c, in_place, 0, 7);
  tcase_add_test(c, concatenation);
  tcase_add_loop_test(c, pooling, 0, 2);
  tcase_add_test(c, equal_maxima);
  tcase_add_loop_test(c, upsampling, 0, 3);
  tcase_add_loop_test(c, batch_normalisation, 0, 3);
  tcase_add_loop_test(c, running_statistics, 0, 3);
  tcase_add_loop_test(c, normalising_in_inference, 0, 3);
  tcase_add_loop_test(c, sequences, 0, N_SEQUENCE_CASES);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
