/* The ops of transformers: derived gradients, as the kernels compute them, against finite differences of the loss, in
 * one round and in several; what they do with ids that are none. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/one_call.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

/* Two tokens or more of four heads' worth; every op stands between some parameter and the loss. */
static const char text[] =
    "planc-graph: 1\nname: sequences\nloss: loss\ntensors:\n"
    "  ids: input i64[N,3]\n  labels: input i64[N]\n"
    "  table: param f32[5,8]\n  e: f32[N,3,8]\n"
    "  place: param f32[3,8]\n  x: f32[N,3,8]\n"
    "  gamma: param f32[8]\n  beta: param f32[8]\n  n: f32[N,3,8]\n  mean: f32[N,3]\n  invstd: f32[N,3]\n"
    "  qw: param f32[8,8]\n  q: f32[N,3,8]\n  qp: f32[N,3,2,4] of q\n  qh: f32[N,2,3,4]\n"
    "  kw: param f32[8,8]\n  k: f32[N,3,8]\n  kp: f32[N,3,2,4] of k\n  kh: f32[N,2,3,4]\n"
    "  s: f32[N,2,3,3]\n  p: f32[N,2,3,3] of s\n  m: f32[N,2,3,4]\n  t: f32[N,2,4,4]\n  g: f32[N,2,4,4]\n"
    "  u: f32[N,2,4]\n  flat: f32[N,8] of u\n  zw: param f32[3,8]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: e, type: embedding, in: [ids, table], out: [e]}\n"
    "  - {op: x, type: position, in: [e, place], out: [x]}\n"
    "  - {op: n, type: layernorm, in: [x, gamma, beta], out: [n, mean, invstd]}\n"
    "  - {op: q, type: linear, in: [n, qw], out: [q]}\n"
    "  - {op: k, type: linear, in: [n, kw], out: [k]}\n"
    "  - {op: qh, type: transpose, in: [qp], out: [qh], attrs: {axis: 1}}\n"
    "  - {op: kh, type: transpose, in: [kp], out: [kh], attrs: {axis: 1}}\n"
    "  - {op: s, type: matmul_nt, in: [qh, kh], out: [s], attrs: {scale: 0.5}}\n"
    "  - {op: p, type: softmax, in: [s], out: [p]}\n"
    "  - {op: m, type: matmul, in: [p, kh], out: [m], attrs: {scale: 1.5}}\n"
    "  - {op: t, type: matmul_tn, in: [m, qh], out: [t]}\n"
    "  - {op: g, type: gelu, in: [t], out: [g]}\n"
    "  - {op: u, type: mean, in: [g], out: [u]}\n"
    "  - {op: z, type: linear, in: [flat, zw], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

enum { BATCH = 6 };

typedef struct net {
  planc_graph *graph;
  woven w;
  planrt_session *session;
  double loss;
} net;

static planc_status take(void *user, const planrt_result *result) {
  net *to = user;
  if (result->storage == to->graph->tensors[to->graph->loss].storage) to->loss += (double)*(const float *)result->data;
  return NULL;
}

static void open_net(net *on, const int64_t *rounds, int32_t n_rounds) {
  planc_graph *forward = graph_of(text);
  ok(planc_graph_train(forward, PLANC_SGD, &on->graph));
  planc_graph_free(forward);
  planc_job job = {.graph = on->graph, .batch = BATCH, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  ok(weave(&job, WEAVE_SWAP, 0, &on->w));
  planrt_options options = {.seed = 5, .sink = take, .user = on, .verify = true, .poison = true};
  ok(planrt_session_new(&on->w.plan, &options, &on->session));
  ok(planrt_init(on->session));
}

static void close_net(net *on) {
  planrt_session_free(on->session);
  woven_free(&on->w);
  planc_graph_free(on->graph);
}

/* The loss of iteration 0 with the parameters as they are; they move by lr times their gradients. */
static double run(net *on, double lr) {
  on->loss = 0;
  planrt_set_step(on->session, (planrt_step){.learning_rate = lr});
  ok(planrt_run(on->session, 1));
  return on->loss;
}

enum { MOST = 64 };

static int64_t read_param(const net *on, int32_t storage, float *out) {
  int64_t bytes = on->graph->storages[storage].bytes.fixed;
  ck_assert_int_le(bytes, MOST * (int64_t)sizeof(float));
  ok(planrt_read(on->session, 0, 0, storage, out, bytes));
  return bytes / (int64_t)sizeof(float);
}

static void write_param(net *on, int32_t storage, const float *values, int64_t count) {
  ok(planrt_write(on->session, 0, 0, storage, values, count * (int64_t)sizeof(float)));
}

/* Large enough values that no gradient is lost in rounding. */
static void spread_out(net *on) {
  uint64_t state = 3;
  for (int32_t s = 0; s < on->graph->n_storages; s++) {
    if (on->graph->storages[s].kind != PLANC_KIND_param) continue;
    float values[MOST];
    int64_t count = read_param(on, s, values);
    for (int64_t i = 0; i < count; i++) {
      state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
      values[i] += (float)((double)(state >> 40) / (1 << 24) - 0.5);
    }
    write_param(on, s, values, count);
  }
}

START_TEST(gradients_are_slopes) {
  static const int64_t rounds[][3] = {{6}, {1, 3, 2}};
  net on = {0};
  open_net(&on, rounds[_i], _i ? 3 : 1);
  spread_out(&on);
  for (int32_t s = 0; s < on.graph->n_storages; s++) {
    if (on.graph->storages[s].kind != PLANC_KIND_param) continue;
    const char *name = on.graph->tensors[on.graph->storages[s].tensor].name;
    float before[MOST], after[MOST], moved[MOST];
    int64_t count = read_param(&on, s, before);
    double largest = 0;
    run(&on, 1.0);
    read_param(&on, s, after);
    /* All others have moved as well: from here on with a fresh session. */
    close_net(&on);
    open_net(&on, rounds[_i], _i ? 3 : 1);
    spread_out(&on);
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)before[i] - (double)after[i]));
    ck_assert_msg(largest > 1e-4, "%s has no gradient", name);
    for (int64_t i = 0; i<count; i += count> 12 ? 5 : 1) {
      const float step = 0.002F;
      memcpy(moved, before, (size_t)count * sizeof *moved);
      moved[i] = before[i] + step;
      write_param(&on, s, moved, count);
      double above = run(&on, 0.0);
      moved[i] = before[i] - step;
      write_param(&on, s, moved, count);
      double slope = (above - run(&on, 0.0)) / (2 * (double)step), gradient = (double)before[i] - (double)after[i];
      ck_assert_msg(fabs(slope - gradient) < 2e-3 * largest + 1e-4, "%s[%lld]: gradient %g, slope %g", name,
                    (long long)i, gradient, slope);
    }
    write_param(&on, s, before, count);
  }
  close_net(&on);
}
END_TEST

/* Rows of zeros, no gradient, and nothing touched outside the table. */
START_TEST(ids_outside_the_table) {
  one_call forward, backward;
  rt_launch launch = one_call_launch();
  static const int64_t ids[] = {-1, 2, 3, INT64_MAX, INT64_MIN, 0};
  one_call_open(&forward, "NCHW", "ids: input i64[N,3]\nw: param f32[3,4]\ny: f32[N,3,4]",
                "type: embedding, in: [ids, w], out: [y]", 2, false);
  memcpy(forward.call.in[0].data, ids, sizeof ids);
  one_call_fill(&forward.call.in[1], 1, 1.0F, 2.0F);
  one_call_run(&forward, &launch);
  const float *y = forward.call.out[0].data, *w = forward.call.in[1].data;
  for (int64_t r = 0; r < 6; r++)
    for (int64_t c = 0; c < 4; c++) ck_assert(y[r * 4 + c] == (ids[r] >= 0 && ids[r] < 3 ? w[ids[r] * 4 + c] : 0.0F));
  one_call_open(&backward, "NCHW", "ids: input i64[N,3]\ndy: input f32[N,3,4]\ndw: grad f32[3,4]",
                "type: embedding_grad, in: [ids, dy], out: [dw]", 2, false);
  memcpy(backward.call.in[0].data, ids, sizeof ids);
  one_call_fill(&backward.call.in[1], 2, 1.0F, 2.0F);
  memset(backward.call.out[0].data, 0xff, (size_t)backward.call.out[0].bytes);
  one_call_run(&backward, &launch);
  const float *dw = backward.call.out[0].data, *dy = backward.call.in[1].data;
  for (int64_t c = 0; c < 4; c++) {
    ck_assert(dw[c] == dy[20 + c]);
    ck_assert(dw[4 + c] == 0.0F);
    ck_assert(dw[8 + c] == dy[4 + c]);
  }
  one_call_close(&forward);
  one_call_close(&backward);
}
END_TEST

/* Tables that are gone through in several tiles, of entries and of columns; every entry is asked for several times.
 * What one sample gives is lost beside 2^24 in f32 and not in double. */
START_TEST(gradients_of_large_tables) {
  static const int64_t sizes[][2] = {{3000, 3}, {3, 9000}};
  enum { IDS = 8, MOST_SAMPLES = 2000 };
  const int64_t entries = sizes[_i][0], width = sizes[_i][1], n_ids = _i ? IDS : IDS * MOST_SAMPLES;
  char tensors[160];
  one_call call;
  rt_launch launch = one_call_launch();
  snprintf(tensors, sizeof tensors, "ids: input i64[N,%d]\ndy: input f32[N,%d,%d]\ndw: grad f32[%d,%d]", IDS, IDS,
           (int)width, (int)entries, (int)width);
  one_call_open(&call, "NCHW", tensors, "type: embedding_grad, in: [ids, dy], out: [dw]", n_ids / IDS, false);
  int64_t *ids = call.call.in[0].data;
  float *dy = call.call.in[1].data;
  const float *dw = call.call.out[0].data;
  for (int64_t r = 0; r < n_ids; r++) {
    ids[r] = r * 7 % entries;
    for (int64_t c = 0; c < width; c++) dy[r * width + c] = r < entries ? 0x1p24F : (float)((r + c) % 5);
  }
  one_call_run(&call, &launch);
  for (int64_t e = 0; e < entries; e++) {
    for (int64_t c = 0; c < width; c++) {
      int64_t sum = 0;
      for (int64_t r = 0; r < n_ids; r++) {
        if (ids[r] == e) sum += (int64_t)dy[r * width + c];
      }
      ck_assert_msg(dw[e * width + c] == (float)sum, "entry %lld, column %lld", (long long)e, (long long)c);
    }
  }
  one_call_close(&call);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sequences");
  TCase *c = tcase_create("sequences");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, gradients_are_slopes, 0, 2);
  tcase_add_test(c, ids_outside_the_table);
  tcase_add_loop_test(c, gradients_of_large_tables, 0, 2);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
