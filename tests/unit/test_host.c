/* The rest of the host backend: dropout, loss, optimizers, stand-ins for ops, and which ops have a kernel. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/host/host_kernels.h"
#include "tests/support/formulas.h"
#include "tests/support/graphtext.h"
#include "tests/support/one_call.h"
#include "tests/support/unit.h"

/* --- Dropout ------------------------------------------------------------------------------------------------------ */

static const char dropout_tensors[] = "x: input f32[N,250]\ny: f32[N,250]";

static void run_dropout(one_call *one, int64_t batch, const char *op, const rt_launch *launch) {
  one_call_open(one, "NCHW", dropout_tensors, op, batch, false);
  one_call_fill(&one->call.in[0], 1, 1.0F, 1.0F);
  one_call_run(one, launch);
}

START_TEST(dropout_counts) {
  static const char op[] = "type: dropout, in: [x], out: [y], attrs: {p: 0.25, seed: 3}";
  one_call whole, other, grad;
  rt_launch launch = one_call_launch();
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

  /* A dropout with another seed drops independently: 250 in common are expected, standard deviation 15. */
  one_call independent;
  run_dropout(&independent, 16, "type: dropout, in: [x], out: [y], attrs: {p: 0.25, seed: 4}", &launch);
  const float *z = independent.call.out[0].data;
  int common = 0;
  for (int i = 0; i < 4000; i++) common += y[i] == 0.0F && z[i] == 0.0F;
  ck_assert_int_ge(common, 190);
  ck_assert_int_le(common, 310);
  one_call_close(&independent);

  /* A round of the last 6 samples draws what the whole batch drew for them; another seed or iteration does not. */
  one_call_open(&other, "NCHW", dropout_tensors, op, 6, false);
  one_call_fill(&other.call.in[0], 1, 1.0F, 1.0F);
  other.call.job_batch = 16;
  other.call.sample_offset = 10;
  one_call_run(&other, &launch);
  ck_assert_mem_eq(other.call.out[0].data, y + 2500, 6000);
  const int64_t ahead = -1;
  launch.step.period = 1;
  launch.ahead = &ahead; /* the job began with that period */
  one_call_run(&other, &launch);
  ck_assert_mem_eq(other.call.out[0].data, y + 2500, 6000);
  launch.ahead = NULL;
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
static double cross_entropy(const rt_call *call, const double *logits, const int64_t *labels) {
  const rt_operand *z = &call->in[0];
  int64_t classes = formula_channels_of(call, z), positions = call->in[1].elements,
          per_sample = positions / call->batch;
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
  rt_call *call = &forward.call;
  call->job_batch = backward.call.job_batch = 8;
  one_call_fill(&call->in[0], 1, -3.0F, 3.0F);
  int64_t *labels = call->in[1].data;
  for (int64_t i = 0; i < call->in[1].elements; i++) labels[i] = i * 3 % 5;
  labels[1] = 5;
  labels[2] = -1;
  rt_launch launch = one_call_launch();
  one_call_run(&forward, &launch);
  double *logits = calloc((size_t)call->in[0].elements, sizeof *logits);
  ck_assert(logits);
  for (int64_t e = 0; e < call->in[0].elements; e++) logits[e] = (double)((const float *)call->in[0].data)[e];
  assert_near((double)*(const float *)call->out[0].data, cross_entropy(call, logits, labels), "loss", 0);

  memcpy(backward.call.in[0].data, call->out[1].data, (size_t)call->out[1].bytes);
  memcpy(backward.call.in[1].data, labels, (size_t)call->in[1].bytes);
  one_call_run(&backward, &launch);
  for (int64_t e = 0; e < call->in[0].elements; e++) {
    double value = logits[e];
    logits[e] = value + FORMULA_STEP;
    double above = cross_entropy(call, logits, labels);
    logits[e] = value - FORMULA_STEP;
    double below = cross_entropy(call, logits, labels);
    logits[e] = value;
    assert_near((double)((const float *)backward.call.out[0].data)[e], (above - below) / (2 * FORMULA_STEP), "dlogits",
                e);
  }
  free(logits);
  one_call_close(&forward);
  one_call_close(&backward);
}
END_TEST

/* A round of 3 in a batch of 8: the mean over what the whole batch has, and its derivative. */
START_TEST(mean_square_error) {
  one_call forward, backward;
  one_call_open(&forward, "NCHW", "x: input f32[N,5]\nt: input f32[N,5]\nloss: f32[]",
                "type: mse, in: [x, t], out: [loss]", 3, false);
  one_call_open(&backward, "NCHW", "x: input f32[N,5]\nt: input f32[N,5]\ndx: f32[N,5]",
                "type: mse_grad, in: [x, t], out: [dx]", 3, false);
  forward.call.job_batch = backward.call.job_batch = 8;
  for (int32_t k = 0; k < 2; k++) {
    one_call_fill(&forward.call.in[k], (uint64_t)k + 1, -3.0F, 3.0F);
    memcpy(backward.call.in[k].data, forward.call.in[k].data, (size_t)forward.call.in[k].bytes);
  }
  rt_launch launch = one_call_launch();
  one_call_run(&forward, &launch);
  one_call_run(&backward, &launch);
  const float *x = forward.call.in[0].data, *target = forward.call.in[1].data, *dx = backward.call.out[0].data;
  double sum = 0;
  for (int64_t e = 0; e < 15; e++) {
    sum += pow((double)x[e] - (double)target[e], 2) / 40;
    assert_near((double)dx[e], ((double)x[e] - (double)target[e]) / 20, "dx", e);
  }
  assert_near((double)*(const float *)forward.call.out[0].data, sum, "loss", 0);
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
    rt_launch launch = one_call_launch();
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

/* --- Stand-ins ---------------------------------------------------------------------------------------------------- */

static const char stand_in_tensors[] = "a: state f32[N,5]\nb: param u8[7]\nr: state f32[3]\ny: f32[N,3]\nz: u8[13]\n";
static const char stand_in_op[] = "type: t.unknown, in: [a, b], out: [y, z, a], effects: [r]";

typedef struct outcome {
  char y[24], z[13], a[40], r[12];
} outcome;

/* Runs the stand-in with one input byte changed. */
static outcome run_stand_in(int32_t operand, int64_t byte, bool recompute) {
  one_call one;
  outcome result;
  char workspace[8];
  one_call_open(&one, "NCHW", stand_in_tensors, stand_in_op, 2, true);
  rt_call *call = &one.call;
  const rt_operand *inputs[] = {&call->in[0], &call->in[1], &call->effects[0]};
  if (operand >= 0) ((char *)inputs[operand]->data)[byte] ^= 1;
  call->workspace = workspace;
  call->workspace_bytes = sizeof workspace;
  void *effect = call->effects[0].data;
  if (recompute) call->effects[0].data = NULL;
  rt_launch launch = one_call_launch();
  one_call_run(&one, &launch);
  call->effects[0].data = effect;
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

/* --- The table ---------------------------------------------------------------------------------------------------- */

START_TEST(every_type_has_a_kernel) {
  int32_t count;
  const planc_optype *types = pl_optypes(&count);
  ck_assert_int_ge(count, 30);
  for (int32_t i = 0; i < count; i++) {
    ck_assert_msg(rt_kernel_find(types[i].id), "%s", types[i].name);
  }
  ck_assert_ptr_null(rt_kernel_find(PL_OPTYPE_FOREIGN));
}
END_TEST

START_TEST(only_f32) {
  static const char text[] =
      "planc-graph: 1\nname: half\ntensors:\n  x: input f16[N,3]\n  y: f16[N,3]\n"
      "ops:\n  - {op: o, type: relu, in: [x], out: [y]}\n";
  planc_graph *graph = graph_of(text);
  int64_t batch = 2;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  rt_device *device;
  rt_device_options options = {.n_streams = 1};
  ok(rt_host_backend.open(&options, &device));
  pl_arena arena = {0};
  rt_call call;
  void *memory[2] = {0};
  ok(rt_call_make(&arena, trace, 0, 0, memory, &call));
  planc_status status = rt_host_backend.prepare(device, &call);
  ck_assert_int_eq(planc_status_code(status), PLANC_DEVICE);
  planc_status_free(status);
  rt_host_backend.close(device);
  pl_arena_free(&arena);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host");
  TCase *c = tcase_create("host");
  tcase_set_timeout(c, 120);
  tcase_add_test(c, dropout_counts);
  tcase_add_loop_test(c, softmax_cross_entropy, 0, 3);
  tcase_add_test(c, mean_square_error);
  tcase_add_loop_test(c, optimizer_steps, 0, 3);
  tcase_add_test(c, stand_ins);
  tcase_add_test(c, every_type_has_a_kernel);
  tcase_add_test(c, only_f32);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
