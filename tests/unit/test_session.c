/* Sessions with real numerics: training is the same however a plan places and moves its buffers; recompute; what goes
 * into a session and comes out. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planrt/planrt.h"
#include "runtime/backend.h"
#include "tests/support/graphtext.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

static planc_graph *train(const char *text, planc_optimizer optimizer) {
  planc_graph *forward = graph_of(text), *trained;
  ok(planc_graph_train(forward, optimizer, &trained));
  planc_graph_free(forward);
  return trained;
}

/* --- Training      ------------------------------------------------------------------------------------------------ */

static const char convnet[] =
    "planc-graph: 1\nname: convnet\nloss: loss\noutputs: [probs]\ntensors:\n"
    "  x: input f32[N,1,6,6]\n  labels: input i64[N]\n"
    "  c.w: param f32[4,1,3,3]\n  c.b: param f32[4]\n  c: f32[N,4,6,6]\n"
    "  gamma: param f32[4]\n  beta: param f32[4]\n  n: f32[N,4,6,6]\n  mean: f32[4]\n  invstd: f32[4]\n"
    "  running.mean: state f32[4]\n  running.var: state f32[4]\n"
    "  r: f32[N,4,6,6] of n\n  p: f32[N,4,3,3]\n  flat: f32[N,36] of p\n  d: f32[N,36]\n"
    "  f.w: param f32[3,36]\n  f.b: param f32[3]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: c, type: conv2d, in: [x, c.w, c.b], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: n, type: batchnorm, in: [c, gamma, beta], out: [n, mean, invstd], effects: [running.mean, running.var]}\n"
    "  - {op: r, type: relu, in: [n], out: [r]}\n"
    "  - {op: p, type: maxpool2d, in: [r], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: d, type: dropout, in: [flat], out: [d], attrs: {p: 0.25, seed: 1}}\n"
    "  - {op: f, type: linear, in: [d, f.w, f.b], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

/* Three classes of pictures: a bright row, column or diagonal in noise. */
static planc_status pictures(void *user, const planrt_feed_request *request) {
  (void)user;
  for (int64_t i = 0; i < request->count; i++) {
    uint64_t state = (uint64_t)(request->iteration * 1000 + request->offset + i);
    int64_t label = rand_below(&state, 3), where = rand_below(&state, 6);
    if (request->bytes == request->count * (int64_t)sizeof label) {
      ((int64_t *)request->out)[i] = label;
      continue;
    }
    float *pixels = (float *)request->out + i * 36;
    for (int64_t k = 0; k < 36; k++) {
      bool bright = label == 0 ? k / 6 == where : label == 1 ? k % 6 == where : k / 6 == k % 6;
      pixels[k] = (bright ? 1.0F : 0.0F) + (float)rand_below(&state, 100) / 400.0F;
    }
  }
  return NULL;
}

enum { MAX_LOSSES = 256 };

typedef struct losses {
  int32_t storage, n;
  float sum[MAX_LOSSES]; /* by iteration */
} losses;

static planc_status collect(void *user, const planrt_result *result) {
  losses *to = user;
  if (result->storage != to->storage) return NULL;
  ck_assert_int_lt(result->iteration, MAX_LOSSES);
  to->sum[result->iteration] += *(const float *)result->data;
  to->n++;
  return NULL;
}

static void run_pictures(planc_graph *graph, const int64_t *rounds, int32_t n_rounds, weave_mode mode, int64_t seed,
                         losses *out, double *accuracy) {
  int64_t batch = 0;
  for (int32_t r = 0; r < n_rounds; r++) batch += rounds[r];
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  woven w;
  ok(weave(&job, mode, 512, &w));
  *out = (losses){.storage = storage_named(graph, "loss")};
  planrt_options options = {.feed = pictures, .sink = collect, .user = out, .verify = true, .evaluate = true};
  options.poison = seed < 0;
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  planrt_set_step(session, (planrt_step){.learning_rate = 0.02});
  ok(seed < 0 ? planrt_run(session, 40) : planrt_run_interleaved(session, 40, (uint64_t)seed));
  ok(planrt_evaluate(session, 0, pictures, NULL, 500, accuracy));
  planrt_session_free(session);
  woven_free(&w);
}

/* Residency changes no bit, training learns, and the running statistics serve. */
START_TEST(training) {
  static const int64_t rounds[][2] = {{12, 0}, {7, 5}};
  static const planc_optimizer optimizers[] = {PLANC_MOMENTUM, PLANC_ADAM};
  planc_graph *graph = train(convnet, optimizers[_i / 2]);
  int32_t n_rounds = _i % 2 ? 2 : 1;
  losses resident, swapped, interleaved;
  double accuracy[3];
  run_pictures(graph, rounds[_i % 2], n_rounds, WEAVE_RESIDENT, -1, &resident, &accuracy[0]);
  run_pictures(graph, rounds[_i % 2], n_rounds, WEAVE_SWAP, -1, &swapped, &accuracy[1]);
  run_pictures(graph, rounds[_i % 2], n_rounds, WEAVE_SWAP, 5, &interleaved, &accuracy[2]);
  ck_assert_int_eq(resident.n, (int64_t)40 * n_rounds);
  ck_assert_mem_eq(&resident, &swapped, sizeof resident);
  ck_assert_mem_eq(&resident, &interleaved, sizeof resident);
  ck_assert(accuracy[0] == accuracy[1] && accuracy[1] == accuracy[2]);
  float early = 0, late = 0;
  for (int i = 0; i < 10; i++) {
    early += resident.sum[i];
    late += resident.sum[30 + i];
  }
  ck_assert_float_lt(late, 0.6F * early);
  ck_assert_double_gt(accuracy[0], 0.6);
  planc_graph_free(graph);
}
END_TEST

static bool has_accumulate(const planc_graph *graph, const int64_t *rounds, int32_t n_rounds, int64_t batch) {
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  planc_trace *trace;
  bool found = false;
  ok(planc_expand(&job, 1, &trace));
  for (int32_t i = 0; i < trace->n_instances; i++) found = found || trace->instances[i].role == PLANC_ROLE_ACCUMULATE;
  planc_trace_free(trace);
  return found;
}

/* Without what couples a batch, rounds change the sum of the losses and the trained weights only by rounding: 1e-4.
 * Gradients add up in place, and, where two ops share a weight, through a temporary. */
START_TEST(rounds_add_up) {
  static const char text[] =
      "planc-graph: 1\nname: mlp\nloss: loss\ntensors:\n"
      "  x: input f32[N,36]\n  labels: input i64[N]\n  a.w: param f32[8,36]\n  a.b: param f32[8]\n  a: f32[N,8]\n"
      "  d: f32[N,8]\n  s.w: param f32[8,8]\n  s: f32[N,8]\n  t: f32[N,8]\n  f.w: param f32[3,8]\n  z: f32[N,3]\n  "
      "loss: f32[]\n  probs: f32[N,3]\nops:\n"
      "  - {op: a, type: linear, in: [x, a.w, a.b], out: [a]}\n"
      "  - {op: d, type: dropout, in: [a], out: [d], attrs: {p: 0.5, seed: 9}}\n"
      "  - {op: s, type: linear, in: [d, s.w], out: [s]}\n"
      "  - {op: t, type: linear, in: [s, s.w], out: [t]}\n"
      "  - {op: f, type: linear, in: [t, f.w], out: [z]}\n"
      "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";
  static const int64_t whole[] = {12}, cut[] = {5, 5, 2};
  planc_graph *graph = train(text, PLANC_SGD);
  ck_assert(has_accumulate(graph, cut, 3, 12));
  losses one, three;
  double accuracy;
  run_pictures(graph, whole, 1, WEAVE_RESIDENT, -1, &one, &accuracy);
  run_pictures(graph, cut, 3, WEAVE_SWAP, -1, &three, &accuracy);
  for (int i = 0; i < 40; i++) ck_assert_float_eq_tol(one.sum[i], three.sum[i], 1e-4F);
  planc_graph_free(graph);
}
END_TEST

/* --- Recompute ---------------------------------------------------------------------------------------------------- */

/* Runs the batch norm again right after its first run, as a recompute or in full. */
static planc_status run_norm_twice(bool recompute) {
  planc_graph *graph = train(convnet, PLANC_SGD);
  int64_t batch = 6;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  woven w;
  ok(weave(&job, WEAVE_RESIDENT, 0, &w));
  int64_t at = 0;
  while (w.sections[1].data[at].op != PLANC_INSTR_exec ||
         strcmp(planc_trace_op(w.trace, w.sections[1].data[at].id)->name, "n") != 0)
    at++;
  planc_instr again = w.sections[1].data[at];
  const planc_instance *instance = &w.trace->instances[again.id];
  int32_t first_use = (int32_t)w.uses.len;
  ok(VEC_RESERVE(&w.uses, w.uses.len + instance->n_accesses));
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    bool effect = w.trace->accesses[instance->first_access + k].effect;
    w.uses.data[w.uses.len++] = recompute && effect ? -1 : w.uses.data[again.first_use + k];
  }
  again.first_use = first_use;
  again.recompute = recompute;
  ok(VEC_RESERVE(&w.sections[1], w.sections[1].len + 1));
  for (int64_t i = w.sections[1].len++; i > at + 1; i--) w.sections[1].data[i] = w.sections[1].data[i - 1];
  w.sections[1].data[at + 1] = again;
  w.plan.uses = w.uses.data;
  w.plan.n_uses = (int32_t)w.uses.len;
  w.plan.body = (planc_section){(int32_t)w.sections[1].len, w.sections[1].data};

  planrt_options options = {.verify = true, .feed = pictures, .unchecked = true};
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  planc_status status = planrt_run(session, 3);
  planrt_session_free(session);
  woven_free(&w);
  planc_graph_free(graph);
  return status;
}

START_TEST(recompute_skips_effects) {
  ok(run_norm_twice(true));
  assert_fails(run_norm_twice(false), PLANC_INVALID_PLAN, "running.mean differs from the reference");
}
END_TEST

/* --- What goes in and comes out ----------------------------------------------------------------------------------- */

typedef struct fixture {
  planc_graph *graph;
  int64_t batch;
  woven w;
  planrt_session *session;
} fixture;

static void open_graph(fixture *f, const char *text, planrt_options options) {
  f->graph = train(text, PLANC_ADAM);
  f->batch = 4;
  planc_job job = {.graph = f->graph, .batch = f->batch, .n_rounds = 1, .rounds = &f->batch, .iterations = 1};
  ok(weave(&job, WEAVE_RESIDENT, 0, &f->w));
  ok(planrt_session_new(&f->w.plan, &options, &f->session));
  ok(planrt_init(f->session));
}

static void open_fixture(fixture *f, planrt_options options) {
  open_graph(f, convnet, options);
}

static void close_fixture(fixture *f) {
  planrt_session_free(f->session);
  woven_free(&f->w);
  planc_graph_free(f->graph);
}

START_TEST(initial_values) {
  fixture f;
  open_fixture(&f, (planrt_options){.seed = 1});
  float w[108], b[4], gamma[4], variance[4];
  ok(planrt_read(f.session, 0, 0, storage_named(f.graph, "f.w"), w, sizeof w));
  ok(planrt_read(f.session, 0, 0, storage_named(f.graph, "c.b"), b, sizeof b));
  ok(planrt_read(f.session, 0, 0, storage_named(f.graph, "gamma"), gamma, sizeof gamma));
  ok(planrt_read(f.session, 0, 0, storage_named(f.graph, "running.var"), variance, sizeof variance));
  /* He-uniform over 36 inputs: variance 2 / 36, which 108 draws meet within a third. */
  double bound = sqrt(6.0 / 36.0), squares = 0;
  for (int i = 0; i < 108; i++) {
    ck_assert(fabs((double)w[i]) <= bound);
    squares += (double)w[i] * (double)w[i] / 108;
  }
  ck_assert_double_eq_tol(squares, 2.0 / 36.0, 2.0 / 108.0);
  for (int i = 0; i < 4; i++) ck_assert(b[i] == 0.0F && gamma[i] == 1.0F && variance[i] == 1.0F);
  for (int32_t s = 0; s < f.graph->n_storages; s++) {
    float state[108];
    int64_t bytes = planc_law_at(f.graph->storages[s].bytes, f.batch);
    if (f.graph->storages[s].kind != PLANC_KIND_state || s == storage_named(f.graph, "running.var")) continue;
    ok(planrt_read(f.session, 0, 0, s, state, bytes));
    for (int64_t i = 0; i < bytes / 4; i++) ck_assert(state[i] == 0.0F);
  }
  fixture other;
  float same[108], different[108];
  open_fixture(&other, (planrt_options){.seed = 1});
  ok(planrt_read(other.session, 0, 0, storage_named(other.graph, "f.w"), same, sizeof same));
  ck_assert_mem_eq(w, same, sizeof w);
  close_fixture(&other);
  open_fixture(&other, (planrt_options){.seed = 2});
  ok(planrt_read(other.session, 0, 0, storage_named(other.graph, "f.w"), different, sizeof different));
  ck_assert_mem_ne(w, different, sizeof w);
  close_fixture(&other);
  close_fixture(&f);
}
END_TEST

/* Embeddings and positions are normal with standard deviation 0.02: so are their second and fourth moments. Means of a
 * thousand draws are within four of their own standard deviations. */
START_TEST(initial_embeddings) {
  static const char *const names[] = {"table", "place"};
  fixture f;
  open_graph(&f,
             "planc-graph: 1\nname: sequence\nloss: loss\ntensors:\n  ids: input i64[N,50]\n  labels: input i64[N]\n"
             "  table: param f32[50,20]\n  e: f32[N,50,20]\n  place: param f32[50,20]\n  x: f32[N,50,20]\n"
             "  z: f32[N,20]\n  loss: f32[]\n  probs: f32[N,20]\n"
             "ops:\n"
             "  - {op: e, type: embedding, in: [ids, table], out: [e]}\n"
             "  - {op: x, type: position, in: [e, place], out: [x]}\n"
             "  - {op: z, type: mean, in: [x], out: [z]}\n"
             "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n",
             (planrt_options){.seed = 1});
  for (int k = 0; k < 2; k++) {
    float values[1000];
    double mean = 0, second = 0, fourth = 0;
    ok(planrt_read(f.session, 0, 0, storage_named(f.graph, names[k]), values, sizeof values));
    for (int i = 0; i < 1000; i++) {
      double z = (double)values[i] / 0.02;
      mean += z / 1000;
      second += z * z / 1000;
      fourth += z * z * z * z / 1000;
    }
    ck_assert_double_eq_tol(mean, 0, 4 * sqrt(1 / 1000.0));
    ck_assert_double_eq_tol(second, 1, 4 * sqrt(2 / 1000.0));
    ck_assert_double_eq_tol(fourth, 3, 4 * sqrt(96 / 1000.0));
  }
  close_fixture(&f);
}
END_TEST

/* A run in parts, and one taken over by another session with the values read and written, end with the same bits. */
START_TEST(runs_continue) {
  fixture whole, parts, taken;
  planrt_options options = {.feed = pictures, .seed = 3};
  open_fixture(&whole, options);
  open_fixture(&parts, options);
  open_fixture(&taken, options);
  ok(planrt_run(whole.session, 7));
  ok(planrt_run(parts.session, 4));
  planrt_set_step(taken.session, planrt_get_step(parts.session));
  ck_assert_int_eq(planrt_get_step(parts.session).period, 4);
  char value[1024], other[1024];
  for (int32_t s = 0; s < parts.graph->n_storages; s++) {
    int64_t bytes = planc_law_at(parts.graph->storages[s].bytes, parts.batch);
    if (!planc_kind_persists(parts.graph->storages[s].kind)) continue;
    ok(planrt_read(parts.session, 0, 0, s, value, bytes));
    ok(planrt_write(taken.session, 0, 0, s, value, bytes));
  }
  ok(planrt_run(parts.session, 3));
  ok(planrt_run(taken.session, 3));
  for (int32_t s = 0; s < whole.graph->n_storages; s++) {
    int64_t bytes = planc_law_at(whole.graph->storages[s].bytes, whole.batch);
    if (!planc_kind_persists(whole.graph->storages[s].kind)) continue;
    ok(planrt_read(whole.session, 0, 0, s, value, bytes));
    ok(planrt_read(parts.session, 0, 0, s, other, bytes));
    ck_assert_mem_eq(value, other, (size_t)bytes);
    ok(planrt_read(taken.session, 0, 0, s, other, bytes));
    ck_assert_mem_eq(value, other, (size_t)bytes);
  }
  close_fixture(&whole);
  close_fixture(&parts);
  close_fixture(&taken);
}
END_TEST

/* With a running mean far above everything the features are 0 and the bias alone decides: on class 2. */
START_TEST(evaluation) {
  enum { SAMPLES = 10 }; /* the last batch of 4 counts half */
  const float far[] = {1e6F, 1e6F, 1e6F, 1e6F}, decided[] = {0.0F, 0.0F, 1.0F};
  fixture f;
  open_fixture(&f, (planrt_options){.evaluate = true});
  ok(planrt_write(f.session, 0, 0, storage_named(f.graph, "running.mean"), far, sizeof far));
  ok(planrt_write(f.session, 0, 0, storage_named(f.graph, "f.b"), decided, sizeof decided));
  double accuracy, right = 0;
  ok(planrt_evaluate(f.session, 0, pictures, NULL, SAMPLES, &accuracy));
  for (int64_t i = 0; i < SAMPLES; i++) {
    int64_t label;
    planrt_feed_request request = {
        .iteration = i / 4, .offset = i % 4, .count = 1, .out = &label, .bytes = sizeof label};
    ok(pictures(NULL, &request));
    right += label == 2;
  }
  ck_assert(right > 0 && right < SAMPLES);
  ck_assert_double_eq(accuracy, right / SAMPLES);
  float after[4];
  ok(planrt_read(f.session, 0, 0, storage_named(f.graph, "running.mean"), after, sizeof after));
  ck_assert_mem_eq(after, far, sizeof far);
  close_fixture(&f);
}
END_TEST

/* The host's backend, counting the arenas that are open at once. */
static planrt_backend counting;
static int64_t open_bytes, most_open_bytes;
static VEC(struct {
  rt_device *device;
  int64_t bytes;
}) opened;

static planc_status open_counted(const rt_device_options *options, rt_device **out) {
  PLANC_TRY(rt_host_backend.open(options, out));
  PLANC_TRY(VEC_RESERVE(&opened, opened.len + 1));
  opened.data[opened.len].device = *out;
  opened.data[opened.len++].bytes = options->arena_bytes;
  open_bytes += options->arena_bytes;
  if (open_bytes > most_open_bytes) most_open_bytes = open_bytes;
  return NULL;
}

static void close_counted(rt_device *device) {
  for (int64_t i = 0; i < opened.len; i++) {
    if (opened.data[i].device != device) continue;
    open_bytes -= opened.data[i].bytes;
    opened.data[i] = opened.data[--opened.len];
    break;
  }
  rt_host_backend.close(device);
}

static void assert_same_state(const fixture *a, const fixture *b) {
  char value[1024], other[1024];
  for (int32_t s = 0; s < a->graph->n_storages; s++) {
    int64_t bytes = planc_law_at(a->graph->storages[s].bytes, a->batch);
    if (!planc_kind_persists(a->graph->storages[s].kind)) continue;
    ok(planrt_read(a->session, 0, 0, s, value, bytes));
    ok(planrt_read(b->session, 0, 0, s, other, bytes));
    ck_assert_mem_eq(value, other, (size_t)bytes);
  }
}

static void open_counted_fixture(fixture *f, planrt_options options, int64_t budget) {
  f->graph = train(convnet, PLANC_ADAM);
  f->batch = 4;
  planc_job job = {.graph = f->graph, .batch = f->batch, .n_rounds = 1, .rounds = &f->batch, .iterations = 1};
  ok(weave(&job, WEAVE_SWAP, 0, &f->w));
  device_of(&f->w.plan)->budget_bytes =
      budget > 0 ? budget : device_of(&f->w.plan)->arena_bytes + device_of(&f->w.plan)->reserved_bytes;
  counting = rt_host_backend;
  counting.open = open_counted;
  counting.close = close_counted;
  options.backend = &counting;
  ok(planrt_session_new(&f->w.plan, &options, &f->session));
  ok(planrt_init(f->session));
}

/* What the pass takes of the device beside what else is on it. */
static int64_t evaluate_counted(fixture *f, double *out_accuracy) {
  enum { SAMPLES = 10 };
  int64_t before = open_bytes;
  most_open_bytes = 0;
  ok(planrt_evaluate(f->session, 0, pictures, NULL, SAMPLES, out_accuracy));
  int64_t others = open_bytes;
  ck_assert_int_eq(others, before - device_of(&f->w.plan)->arena_bytes);
  return most_open_bytes - others;
}

/* The pass has the device to itself and takes no more than the plan's budget, whatever part of a batch that has room
 * for, judges the same, and leaves the run as it was. */
START_TEST(evaluation_keeps_the_budget) {
  planrt_options options = {.feed = pictures, .seed = 3, .evaluate = true, .unchecked = true};
  fixture tight, wide, plain;
  double accuracy, other;
  opened.len = open_bytes = 0;
  open_counted_fixture(&wide, options, INT64_C(1) << 40);
  ok(planrt_run(wide.session, 20));
  int64_t whole = evaluate_counted(&wide, &accuracy), room = whole * 3 / 4;
  ok(planrt_run(wide.session, 3));
  open_counted_fixture(&tight, options, room + device_of(&wide.w.plan)->reserved_bytes);
  ok(planrt_run(tight.session, 20));
  for (int again = 0; again < 2; again++) {
    ck_assert_int_le(evaluate_counted(&tight, &other), room);
    ck_assert_double_eq(accuracy, other);
    ck_assert(planrt_can_run(tight.session));
    ok(planrt_run(tight.session, 0));
  }
  ok(planrt_run(tight.session, 3));
  open_counted_fixture(&plain, (planrt_options){.feed = pictures, .seed = 3}, 0);
  ok(planrt_run(plain.session, 23));
  assert_same_state(&tight, &plain);
  assert_same_state(&wide, &plain);
  close_fixture(&tight);
  close_fixture(&wide);
  close_fixture(&plain);
  ck_assert_int_eq(open_bytes, 0);
  VEC_FREE(&opened);
}
END_TEST

START_TEST(evaluation_without_room) {
  fixture f;
  double accuracy;
  open_counted_fixture(&f, (planrt_options){.feed = pictures, .evaluate = true, .unchecked = true}, 1024);
  ok(planrt_run(f.session, 1));
  assert_fails(planrt_evaluate(f.session, 0, pictures, NULL, 4, &accuracy), PLANC_INFEASIBLE, "over one sample takes");
  ok(planrt_run(f.session, 1));
  close_fixture(&f);
  VEC_FREE(&opened);
}
END_TEST

START_TEST(misuse) {
  fixture f;
  float value[4];
  double accuracy;
  open_fixture(&f, (planrt_options){0});
  assert_fails(planrt_read(f.session, 0, 0, storage_named(f.graph, "c.b"), value, 12), PLANC_USAGE, "16 bytes, not 12");
  assert_fails(planrt_read(f.session, 0, 0, storage_named(f.graph, "x"), value, 16), PLANC_USAGE, "x does not persist");
  assert_fails(planrt_read(f.session, 0, 1, 0, value, 16), PLANC_USAGE, "no storage");
  assert_fails(planrt_write(f.session, 0, 0, f.graph->n_storages, value, 16), PLANC_USAGE, "no storage");
  assert_fails(planrt_run(f.session, -1), PLANC_USAGE, "-1 periods");
  assert_fails(planrt_evaluate(f.session, 0, pictures, NULL, 1, &accuracy), PLANC_USAGE, "evaluation");
  ok(planrt_run(f.session, 0));
  close_fixture(&f);
}
END_TEST

static planc_status failing_feed(void *user, const planrt_feed_request *request) {
  (void)user;
  if (request->iteration == 2) return planc_error(PLANC_IO, "no more samples");
  return pictures(NULL, request);
}

static planc_status failing_sink(void *user, const planrt_result *result) {
  (void)user;
  return result->iteration == 1 ? planc_error(PLANC_IO, "no more room") : NULL;
}

START_TEST(failing_callbacks) {
  fixture f;
  open_fixture(&f, (planrt_options){.feed = failing_feed});
  assert_fails(planrt_run(f.session, 3), PLANC_IO, "iteration 2: no more samples");
  close_fixture(&f);
  open_fixture(&f, (planrt_options){.feed = pictures, .sink = failing_sink});
  assert_fails(planrt_run(f.session, 3), PLANC_IO, "no more room");
  close_fixture(&f);
}
END_TEST

/* --- Ending ------------------------------------------------------------------------------------------------------- */

enum { LAST_TOLD = 5 };
static _Atomic bool asked_to_end;

static planc_status ask_to_end(void *user, const planrt_result *result) {
  (void)user;
  nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* whoever enqueues is faster */
  if (result->iteration == LAST_TOLD) asked_to_end = true;
  return NULL;
}
static bool is_asked_to_end(void *user) {
  (void)user;
  return asked_to_end;
}

/* While an iteration's result is told its body is on its way, and behind it RT_AHEAD at most. */
START_TEST(few_periods_are_on_their_way) {
  fixture f;
  asked_to_end = false;
  open_fixture(&f, (planrt_options){.concurrent = true, .sink = ask_to_end, .pause = is_asked_to_end});
  ok(planrt_run(f.session, 1000));
  ck_assert_int_gt(planrt_get_step(f.session).period, LAST_TOLD);
  ck_assert_int_le(planrt_get_step(f.session).period, LAST_TOLD + 1 + RT_AHEAD);
  close_fixture(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session");
  TCase *c = tcase_create("session");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, training, 0, 4);
  tcase_add_test(c, rounds_add_up);
  tcase_add_test(c, recompute_skips_effects);
  tcase_add_test(c, initial_values);
  tcase_add_test(c, initial_embeddings);
  tcase_add_test(c, runs_continue);
  tcase_add_test(c, evaluation);
  tcase_add_test(c, evaluation_keeps_the_budget);
  tcase_add_test(c, evaluation_without_room);
  tcase_add_test(c, misuse);
  tcase_add_test(c, failing_callbacks);
  tcase_add_test(c, few_periods_are_on_their_way);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
