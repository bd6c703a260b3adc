/* Replicas at run time: all of them run a plan of one, by themselves but for what they exchange. Plans are written out
 * here or woven (tests/support/weave.h), not planned. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/timeline.h"
#include "planrt/planrt.h"
#include "runtime/session.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

/* --- A plan written out ------------------------------------------------------------------------------------------- */

enum { MOST_REPLICAS = 4 };

static const int64_t one[] = {1};

static const char sum_text[] =
    "planc-graph: 1\nname: sum\ntensors:\n  x: input f32[N,1]\n  w: param f32[1]\n  dw: grad f32[1]\nops:\n"
    "  - {op: g, type: bias_grad, phase: backward, in: [x], out: [dw], flags: [accumulates]}\n"
    "  - {op: u, type: sgd, phase: optimizer, in: [w, dw], out: [w], attrs: {lr: 1.0}}\n";

/* Events: 0 the input is there; 1 the gradient is made; 2 it is sent; 3 the others' have come; 4 the optimizer has run;
 * 5 the boundary is there. */
static const char sum_plan[] =
    "boundary w#0 0\n"
    "prologue\n"
    "acquire 0 w#0 0\n"
    "copy 0 user on 1\n"
    "record 5 on 1\n"
    "wait 5 on 0\n"
    "record 3 on 1\n"
    "record 4 on 0\n"
    "body\n"
    "wait 4 lag 1 on 1\n"
    "acquire 1 x#0 256\n"
    "copy 1 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "acquire 2 dw#0 512\n"
    "exec g#0 use 1 2\n"
    "record 1 on 0\n"
    "wait 1 on 2\n"
    "wait 3 lag 1 peers on 2\n"
    "acquire 3 dw#0 0 host\n"
    "copy 3 2 on 2\n"
    "record 2 on 2\n"
    "acquire 4 dw#1 768\n"
    "wait 2 peers on 1\n"
    "copy 4 3 peers on 1\n"
    "record 3 on 1\n"
    "wait 3 on 0\n"
    "wait 2 on 0\n"
    "exec g#1 use 2 4\n"
    "exec u#0 use 0 2\n"
    "record 4 on 0\n"
    "release 1\n"
    "release 2\n"
    "release 3\n"
    "release 4\n"
    "epilogue\n"
    "wait 4 lag 1 on 2\n"
    "copy user 0 on 2\n"
    "release 0\n";

enum { N_WRITTEN_OUT_EVENTS = 6, ARENA = 768 + 3 * 256, HOST_ARENA = 4 };

static planc_plan *plan_of(const planc_graph *graph, const char *text, int32_t replicas) {
  const planc_job job = {
      .graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1, .replicas = replicas};
  planc_plan *plan;
  ok(script_make(text, &job, 1, ARENA, HOST_ARENA, &plan));
  return plan;
}

/* Sums of these in another order than theirs are others. */
static const float samples[MOST_REPLICAS] = {1e8F, 1.0F, -1e8F, 3.0F};

static planc_status feed_samples(void *user, const planrt_feed_request *request) {
  (void)user;
  if (request->job != 0 || request->count != 1 || request->bytes != sizeof(float) || request->offset >= MOST_REPLICAS)
    return planc_error(PLANC_INTERNAL, "a request for something else");
  float value = samples[request->offset] + (float)request->iteration;
  memcpy(request->out, &value, sizeof value);
  return NULL;
}

/* What w is after so many iterations from 0. */
static float expected_sum(int32_t replicas, int32_t iterations) {
  float w = 0;
  for (int32_t i = 0; i < iterations; i++) {
    float sum = samples[0] + (float)i;
    for (int32_t r = 1; r < replicas; r++) sum += samples[r] + (float)i;
    w -= sum;
  }
  return w;
}

/* In file order, in an order drawn from `seed`, or with streams beside each other. */
typedef enum manner { IN_ORDER, INTERLEAVED, CONCURRENT, N_MANNERS } manner;

static planc_status run_in(planrt_session *session, manner how, int64_t periods, uint64_t seed) {
  return how == INTERLEAVED ? planrt_run_interleaved(session, periods, seed) : planrt_run(session, periods);
}

START_TEST(gradients_are_summed_in_the_order_of_the_replicas) {
  planc_graph *graph = judge_graph(sum_text);
  const int32_t w = graph->tensors[1].storage;
  for (int32_t replicas = 2; replicas <= MOST_REPLICAS; replicas++) {
    planc_plan *plan = plan_of(graph, sum_plan, replicas);
    planrt_options options = {.feed = feed_samples, .verify = true, .poison = true, .concurrent = _i == CONCURRENT};
    if (_i == CONCURRENT) options.jitter = 5;
    judge_expect(plan, PLANC_OK, "ok", "the exchange");
    planrt_session *session;
    ok(planrt_session_new(plan, &options, &session));
    float zero = 0, value;
    for (int32_t r = 0; r < replicas; r++) ok(planrt_write(session, r, 0, w, &zero, sizeof zero));
    ok(run_in(session, (manner)_i, 3, 7));
    for (int32_t r = 0; r < replicas; r++) {
      ok(planrt_read(session, r, 0, w, &value, sizeof value));
      ck_assert_msg(value == expected_sum(replicas, 3), "replica %d of %d: %g", r, replicas, (double)value);
    }
    planrt_session_free(session);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* Two jobs, each on a GPU of its own, of which every replica has both. The second one's events, residencies and streams
 * come behind those of the first. */
static const char two_jobs[] =
    "gpus 0 1\n"
    "boundary w#0 0\n"
    "boundary w#1 0\n"
    "prologue\n"
    "acquire 0 w#0 0\n"
    "acquire 1 w#1 0\n"
    "copy 0 user on 1\n"
    "copy 1 user on 4\n"
    "record 5 on 1\n"
    "record 11 on 4\n"
    "wait 5 on 0\n"
    "wait 11 on 3\n"
    "record 3 on 1\n"
    "record 9 on 4\n"
    "record 4 on 0\n"
    "record 10 on 3\n"
    "body\n"
    "wait 4 lag 1 on 1\n"
    "acquire 2 x#0 256\n"
    "copy 2 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "acquire 3 dw#0 512\n"
    "exec g#0 use 2 3\n"
    "record 1 on 0\n"
    "wait 1 on 2\n"
    "wait 3 lag 1 peers on 2\n"
    "acquire 4 dw#0 0 host\n"
    "copy 4 3 on 2\n"
    "record 2 on 2\n"
    "wait 10 lag 1 on 4\n"
    "acquire 5 x#1 256\n"
    "copy 5 user on 4\n"
    "record 6 on 4\n"
    "wait 6 on 3\n"
    "acquire 6 dw#2 512\n"
    "exec g#2 on 3 use 5 6\n"
    "record 7 on 3\n"
    "wait 7 on 5\n"
    "wait 9 lag 1 peers on 5\n"
    "acquire 7 dw#2 256 host\n"
    "copy 7 6 on 5\n"
    "record 8 on 5\n"
    "acquire 8 dw#1 768\n"
    "wait 2 peers on 1\n"
    "copy 8 4 peers on 1\n"
    "record 3 on 1\n"
    "wait 3 on 0\n"
    "wait 2 on 0\n"
    "exec g#1 use 3 8\n"
    "exec u#0 use 0 3\n"
    "record 4 on 0\n"
    "acquire 9 dw#3 768\n"
    "wait 8 peers on 4\n"
    "copy 9 7 peers on 4\n"
    "record 9 on 4\n"
    "wait 9 on 3\n"
    "wait 8 on 3\n"
    "exec g#3 on 3 use 6 9\n"
    "exec u#1 on 3 use 1 6\n"
    "record 10 on 3\n"
    "release 2\n"
    "release 3\n"
    "release 4\n"
    "release 5\n"
    "release 6\n"
    "release 7\n"
    "release 8\n"
    "release 9\n"
    "epilogue\n"
    "wait 4 lag 1 on 2\n"
    "wait 10 lag 1 on 5\n"
    "copy user 0 on 2\n"
    "copy user 1 on 5\n"
    "release 0\n"
    "release 1\n";

static planc_status run_synthetic(const planc_plan *plan, manner how, bool same_samples, uint64_t seed) {
  planrt_options options = {.synthetic = true,
                            .verify = true,
                            .poison = true,
                            .concurrent = how == CONCURRENT,
                            .same_samples = same_samples,
                            .storage_path = "/var/tmp"};
  if (how == CONCURRENT) options.jitter = seed + 1;
  planrt_session *session;
  PLANC_TRY(planrt_session_new(plan, &options, &session));
  planc_status status = planrt_init(session);
  if (!status) status = run_in(session, how, 3, seed);
  planrt_session_free(session);
  return status;
}

START_TEST(replicas_have_several_gpus) {
  planc_graph *graph = judge_graph(sum_text);
  for (int32_t replicas = 2; replicas <= 3; replicas++) {
    planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1, .replicas = replicas};
    const planc_job jobs[] = {job, job};
    planc_plan *plan;
    ok(script_make(two_jobs, jobs, 2, ARENA, 256 + HOST_ARENA, &plan));
    judge_expect(plan, PLANC_OK, "ok", "two jobs");
    ok(run_synthetic(plan, (manner)_i, false, 11));
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* Each replica has its own chunks: those of the range are in another order than those of the arena. */
START_TEST(replicas_have_virtual_memory) {
  enum { CHUNK = 65536 };
  static const planc_mapping mappings[] = {{.first = 1, .n = 1}, {.first = 0, .n = 1}};
  const planc_job job = {.rounds = one, .batch = 1, .n_rounds = 1, .iterations = 1, .replicas = 3};
  planc_job jobs[] = {job};
  planc_graph *graph = judge_graph(sum_text);
  char *text = judge_edited(sum_plan, "x#0 256\n", "x#0 65536\n");
  planc_plan *plan;
  jobs[0].graph = graph;
  ok(script_make(text, jobs, 1, 2 * CHUNK, HOST_ARENA, &plan));
  tables_map(plan, CHUNK, mappings, 2);
  judge_expect(plan, PLANC_OK, "ok", "chunks");
  ok(run_synthetic(plan, (manner)_i, true, 12));
  planc_plan_free(plan);
  free(text);
  planc_graph_free(graph);
}
END_TEST

/* What replicas do with each other takes the session no memory for each pair of them. */
START_TEST(actions_grow_with_replicas) {
  enum { MANY = 64 };
  planc_graph *graph = judge_graph(sum_text);
  const planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1, .replicas = MANY};
  planrt_options options = {.synthetic = true, .verify = true, .poison = true, .concurrent = _i == CONCURRENT};
  planrt_session *session;
  planc_plan *plan;
  ok(script_make(sum_plan, &job, 1, 768 + MANY * 256, HOST_ARENA, &plan));
  ok(planrt_session_new(plan, &options, &session));
  const planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  for (int k = 0; k < RT_N_PARTS; k++) ck_assert_int_le(session->parts[k].n, 3 * sections[k]->n * MANY);
  ok(planrt_init(session));
  ok(run_in(session, (manner)_i, 3, 5));
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* Runs the plan unchecked and interleaved by several seeds, until one of them finds a difference. */
static planc_status run_unchecked(const planc_plan *plan, manner how) {
  planrt_options options = {.synthetic = true, .verify = true, .poison = true, .unchecked = true};
  planrt_session *session;
  planc_status status = NULL;
  PLANC_TRY(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  for (uint64_t seed = 0; seed < 40 && !status; seed++) status = run_in(session, how, 4, seed);
  planrt_session_free(session);
  return status;
}

/* What is not ordered between replicas, or copied wrongly, is found. */
START_TEST(wrong_exchanges_are_found) {
  static const struct {
    const char *find, *replace;
    manner how;
    const char *message;
  } cases[] = {
      {"release 4\n", "release 4\n", INTERLEAVED, NULL},
      {"copy 4 3 peers on 1\n", "", IN_ORDER, "replica 0, iteration 0: what op g puts out differs"},
      {"wait 2 peers on 1\n", "", INTERLEAVED, "differs from the reference"},
      {"wait 2 peers on 1\n", "wait 2 on 1\n", INTERLEAVED, "differs from the reference"},
      {"wait 3 lag 1 peers on 2\n", "", INTERLEAVED, "differs from the reference"},
      {"wait 3 lag 1 peers on 2\n", "wait 3 lag 1 on 2\n", INTERLEAVED, "differs from the reference"},
      {"copy 4 3 peers on 1\n", "wait 3 peers on 1\ncopy 4 3 peers on 1\n", INTERLEAVED,
       "replica 0: deadlock: stream 0 waits at body[18] for event 3"},
      {"copy 4 3 peers on 1\n", "wait 3 peers on 1\ncopy 4 3 peers on 1\n", IN_ORDER, "body[15], replica 0: stream 1"},
      {"copy 4 3 peers on 1\n", "copy 4 3 on 1\n", IN_ORDER, "dw has 4 bytes, not"},
      {"copy 4 3 peers on 1\n", "copy 4 1 peers on 1\n", IN_ORDER, "hold different buffers"},
      {"copy 3 2 on 2\n", "copy 3 2 peers on 2\n", IN_ORDER, "hold different buffers"},
      {"copy 4 3 peers on 1\n", "copy 4 user peers on 1\n", IN_ORDER, "between the user and other replicas"},
      {"copy 4 3 peers on 1\n", "copy 4 3 peers on 1 bytes 8\n", IN_ORDER, "dw has 4 bytes, not 8"},
      {"acquire 4 dw#1 768\n", "acquire 4 dw#1 1280\n", IN_ORDER, "address 1280 is outside the arena"},
  };
  planc_graph *graph = judge_graph(sum_text);
  char *text = judge_edited(sum_plan, cases[_i].find, cases[_i].replace);
  for (int32_t replicas = 3; replicas <= 4; replicas++) {
    planc_plan *plan = plan_of(graph, text, replicas);
    planc_status status = run_unchecked(plan, cases[_i].how);
    if (cases[_i].message)
      assert_fails(status, PLANC_INVALID_PLAN, cases[_i].message);
    else
      ok(status);
    planc_plan_free(plan);
  }
  free(text);
  planc_graph_free(graph);
}
END_TEST

/* --- What a session asks of its device ---------------------------------------------------------------------------- */

static rt_device_options opened;

static planc_status note_options(const rt_device_options *options, rt_device **out) {
  if (options->n_streams > 1) opened = *options; /* the reference has one */
  return rt_host_backend.open(options, out);
}

/* An arena of each replica in each memory, of which all but the last end where the next begins; streams and events of
 * each, and those of the lanes and of the one input of each. */
START_TEST(every_replica_has_its_own) {
  enum { LANES = 2, PER_HANDOVER = 3, STREAMS = 3, REPLICAS = 3 };
  planc_graph *graph = judge_graph(sum_text);
  planc_plan *plan = plan_of(graph, sum_plan, REPLICAS);
  planrt_backend noting = rt_host_backend;
  noting.open = note_options;
  planrt_options options = {.backend = &noting, .synthetic = true, .concurrent = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ck_assert_int_eq(opened.arena_bytes, REPLICAS * ARENA);
  ck_assert_int_eq(opened.host_arena_bytes, (REPLICAS - 1) * 256 + HOST_ARENA);
  ck_assert_int_eq(opened.storage_bytes, 0);
  ck_assert_int_eq(opened.n_streams, REPLICAS * STREAMS + LANES);
  ck_assert_int_eq(opened.n_events, REPLICAS * (N_WRITTEN_OUT_EVENTS + PER_HANDOVER));
  int32_t streams, told_apart;
  planrt_streams_of(session, &streams, &told_apart);
  ck_assert_int_eq(streams, opened.n_streams);
  planrt_session_free(session);
  noting.parts = false;
  assert_fails(planrt_session_new(plan, &options, &session), PLANC_DEVICE, "the plan is for 3 GPUs, backend host runs");
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

START_TEST(bare_runs_have_all_replicas) {
  planc_graph *graph = judge_graph(sum_text);
  planc_plan *plan = plan_of(graph, sum_plan, 3);
  planrt_options options = {.feed = feed_samples, .bare = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 8));
  ck_assert_int_gt(planrt_period(session), 0);
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Any graph, by stand-ins -------------------------------------------------------------------------------------- */

START_TEST(random_graphs) {
  static const weave_mode modes[] = {WEAVE_RESIDENT, WEAVE_SWAP, WEAVE_STORE};
  for (uint64_t seed = (uint64_t)_i * 6; seed < (uint64_t)_i * 6 + 6; seed++) {
    planc_graph *graph;
    ok(randgraph_make(3000 + seed, &(randgraph_options){.max_ops = 24}, &graph));
    static const int64_t rounds[] = {2, 1, 2};
    planc_job job = {.graph = graph,
                     .batch = seed % 2 ? 5 : 2,
                     .n_rounds = seed % 2 ? 3 : 1,
                     .rounds = rounds,
                     .iterations = 1 + (int32_t)(seed / 2 % 2),
                     .replicas = 2 + (int32_t)(seed % 3)};
    woven w;
    char what[64];
    snprintf(what, sizeof what, "graph %lu", (unsigned long)seed);
    ok_in(weave(&job, modes[seed % 3], (int64_t)(seed % 2) * 256, &w), what);
    for (int how = 0; how < N_MANNERS; how++) ok_in(run_synthetic(&w.plan, (manner)how, seed % 4 == 3, seed), what);
    woven_free(&w);
    planc_graph_free(graph);
  }
}
END_TEST

/* --- Training ----------------------------------------------------------------------------------------------------- */

static const char net_text[] =
    "planc-graph: 1\nname: net\nloss: loss\ntensors:\n"
    "  x: input f32[N,6]\n  labels: input i64[N]\n  w: param f32[5,6]\n  h: f32[N,5]\n"
    "  b: f32[N,5]\nSTATISTICS"
    "  d: f32[N,5]\n  v: param f32[3,5]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: h, type: linear, in: [x, w], out: [h]}\n"
    "  - {op: b, type: NORMALISATION}\n"
    "  - {op: d, type: dropout, in: [b], out: [d], attrs: {p: 0.25, seed: 1}}\n"
    "  - {op: z, type: linear, in: [d, v], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

enum { WHOLE_BATCH = 12, ITERATIONS = 6, MOST_VALUES = 2048 };

/* What comes out of a run. */
typedef struct outcome {
  double losses[ITERATIONS];
  int32_t results[MOST_REPLICAS]; /* how many there were */
  char values[MOST_REPLICAS][MOST_VALUES];
  int64_t bytes; /* of them */
} outcome;

static planc_graph *train(bool normalises) {
  static const char statistics[] =
      "  gamma: param f32[5]\n  beta: param f32[5]\n  mean: state f32[5]\n  var: state f32[5]\n  m: f32[5]\n  s: "
      "f32[5]\n";
  static const char batchnorm[] = "batchnorm, in: [h, gamma, beta], out: [b, m, s], effects: [mean, var]";
  char *tensors = judge_edited(net_text, "STATISTICS", normalises ? statistics : "");
  char *text = judge_edited(tensors, "NORMALISATION", normalises ? batchnorm : "relu, in: [h], out: [b]");
  planc_graph *forward = graph_of(text), *trained;
  free(tensors);
  free(text);
  ok(planc_graph_train(forward, PLANC_ADAM, &trained));
  planc_graph_free(forward);
  return trained;
}

static planc_status add_loss(void *user, const planrt_result *result) {
  outcome *to = user;
  ck_assert_int_eq(result->job, 0);
  ck_assert_int_lt(result->replica, MOST_REPLICAS);
  if (result->bytes != sizeof(float) || result->iteration >= ITERATIONS) return NULL;
  to->losses[result->iteration] += (double)*(const float *)result->data;
  to->results[result->replica]++;
  return NULL;
}

static void read_values(const planrt_session *session, const planc_graph *graph, int32_t replicas, outcome *out) {
  for (int32_t r = 0; r < replicas; r++) {
    out->bytes = 0;
    for (int32_t s = 0; s < graph->n_storages; s++) {
      const planc_storage *storage = &graph->storages[s];
      if (storage->kind != PLANC_KIND_param && storage->kind != PLANC_KIND_state) continue;
      ck_assert_int_le(out->bytes + storage->bytes.fixed, MOST_VALUES);
      ok(planrt_read(session, r, 0, s, out->values[r] + out->bytes, storage->bytes.fixed));
      out->bytes += storage->bytes.fixed;
    }
  }
}

static void weave_net(const planc_graph *graph, int32_t replicas, weave_mode mode, woven *out) {
  int64_t batch = WHOLE_BATCH / (replicas > 1 ? replicas : 1);
  int64_t rounds[] = {batch / 2, batch - batch / 2};
  planc_job job = {.graph = graph,
                   .batch = batch,
                   .n_rounds = replicas > 0 ? 2 : 1,
                   .rounds = replicas > 0 ? rounds : &batch,
                   .iterations = 1,
                   .replicas = replicas};
  ok(weave(&job, mode, 0, out));
}

static planrt_session *open_net(const woven *w, manner how, outcome *out) {
  planrt_options options = {.seed = 4,
                            .verify = true,
                            .poison = true,
                            .sink = add_loss,
                            .user = out,
                            .concurrent = how == CONCURRENT,
                            .storage_path = "/var/tmp"};
  planrt_session *session;
  ok(planrt_session_new(&w->plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

static void run_net(const planc_graph *graph, int32_t replicas, weave_mode mode, manner how, outcome *out) {
  woven w;
  weave_net(graph, replicas, mode, &w);
  *out = (outcome){0};
  planrt_session *session = open_net(&w, how, out);
  ok(run_in(session, how, ITERATIONS, 3));
  read_values(session, graph, replicas > 1 ? replicas : 1, out);
  planrt_session_free(session);
  woven_free(&w);
}

/* The same samples and dropout masks as a job that has the whole batch for itself, but for the order of sums. */
START_TEST(replicas_train_as_one_job_does) {
  planc_graph *graph = train(false);
  static outcome whole, several;
  run_net(graph, 0, WEAVE_RESIDENT, IN_ORDER, &whole);
  ck_assert_double_lt(whole.losses[ITERATIONS - 1], whole.losses[0]);
  for (int32_t replicas = 2; replicas <= 4; replicas++) {
    run_net(graph, replicas, (weave_mode)(_i % 2), (manner)(_i / 2), &several);
    for (int k = 0; k < ITERATIONS; k++) ck_assert_double_eq_tol(several.losses[k], whole.losses[k], 1e-5);
    ck_assert_int_eq(several.bytes, whole.bytes);
    for (int32_t r = 0; r < replicas; r++) {
      ck_assert_mem_eq(several.values[r], several.values[0], (size_t)several.bytes);
      ck_assert_int_eq(several.results[r], 2 * ITERATIONS);
    }
    for (int64_t b = 0; b < whole.bytes; b += (int64_t)sizeof(float)) {
      float a, c;
      memcpy(&a, whole.values[0] + b, sizeof a);
      memcpy(&c, several.values[0] + b, sizeof c);
      ck_assert_float_eq_tol(a, c, 2e-4F);
    }
  }
  planc_graph_free(graph);
}
END_TEST

/* Of batch statistics each has those of its samples; what is trained is the same. */
START_TEST(statistics_are_each_replicas_own) {
  planc_graph *graph = train(true);
  static outcome out;
  woven w;
  weave_net(graph, 3, WEAVE_SWAP, &w);
  planrt_session *session = open_net(&w, IN_ORDER, &out);
  ok(planrt_run(session, 2));
  float means[3][5], weights[3][30];
  for (int32_t r = 0; r < 3; r++) {
    ok(planrt_read(session, r, 0, storage_named(graph, "mean"), means[r], sizeof means[r]));
    ok(planrt_read(session, r, 0, storage_named(graph, "w"), weights[r], sizeof weights[r]));
  }
  ck_assert_mem_eq(weights[1], weights[0], sizeof weights[0]);
  ck_assert_mem_eq(weights[2], weights[0], sizeof weights[0]);
  ck_assert_mem_ne(means[1], means[0], sizeof means[0]);
  ck_assert_mem_ne(means[2], means[0], sizeof means[0]);
  ck_assert_mem_ne(means[2], means[1], sizeof means[1]);
  assert_fails(planrt_read(session, 3, 0, 0, means, sizeof means), PLANC_USAGE, "there is no replica 3");
  assert_fails(planrt_write(session, -1, 0, 0, means, sizeof means), PLANC_USAGE, "there is no replica -1");
  planrt_session_free(session);
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

/* --- Checkpoints and other plans ---------------------------------------------------------------------------------- */

static char path[64];

static void name_file(void) {
  snprintf(path, sizeof path, "/tmp/planc-replicas-%ld", (long)getpid());
}
static void remove_file(void) {
  unlink(path);
}

/* Saved and resumed, or with another plan from the middle on, a run is what it would have been. */
START_TEST(runs_go_on) {
  planc_graph *graph = train(true);
  static outcome whole, parts;
  woven first, second;
  run_net(graph, 3, WEAVE_RESIDENT, IN_ORDER, &whole);
  weave_net(graph, 3, WEAVE_RESIDENT, &first);
  weave_net(graph, 3, WEAVE_SWAP, &second);
  parts = (outcome){0};
  planrt_session *session = open_net(&first, IN_ORDER, &parts);
  ok(planrt_run(session, 2));
  if (_i == 0) {
    ok(planrt_adopt(&session, &second.plan));
  } else {
    ok(planrt_save(session, path));
    planrt_session_free(session);
    session = open_net(&second, CONCURRENT, &parts);
    ok(planrt_resume(session, path));
  }
  ok(planrt_run(session, ITERATIONS - 2));
  read_values(session, graph, 3, &parts);
  for (int32_t r = 0; r < 3; r++) ck_assert_mem_eq(parts.values[r], whole.values[r], (size_t)whole.bytes);
  for (int k = 0; k < ITERATIONS; k++) ck_assert_double_eq(parts.losses[k], whole.losses[k]);
  planrt_session_free(session);
  woven_free(&first);
  woven_free(&second);
  planc_graph_free(graph);
}
END_TEST

/* With as many samples each, but another number of replicas, it is another training. */
START_TEST(other_numbers_of_replicas_are_refused) {
  planc_graph *graph = train(true);
  static outcome out;
  static const int64_t batch = 4;
  woven w[3];
  static const int32_t replicas[] = {2, 3, 0};
  for (int k = 0; k < 3; k++) {
    planc_job job = {
        .graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1, .replicas = replicas[k]};
    ok(weave(&job, WEAVE_RESIDENT, 0, &w[k]));
  }
  planrt_session *session = open_net(&w[0], IN_ORDER, &out);
  ok(planrt_save(session, path));
  for (int k = 1; k < 3; k++) {
    const char *told = k == 1 ? "made for 3 replicas, the run has 2" : "made for 1 replica, the run has 2";
    assert_fails(planrt_can_adopt(session, &w[k].plan, NULL), PLANC_STALE, told);
    planrt_session *other = open_net(&w[k], IN_ORDER, &out);
    assert_fails(planrt_resume(other, path), PLANC_STALE, "made for 2 replicas, the run has ");
    planrt_session_free(other);
  }
  planrt_session_free(session);
  for (int k = 0; k < 3; k++) woven_free(&w[k]);
  planc_graph_free(graph);
}
END_TEST

/* --- Evaluation --------------------------------------------------------------------------------------------------- */

static planc_status feed_zeros(void *user, const planrt_feed_request *request) {
  int64_t *most = user;
  if (request->offset + request->count > *most) *most = request->offset + request->count;
  memset(request->out, 0, (size_t)request->bytes);
  return NULL;
}

/* Held-out samples come in batches as large as the training's, and what the first replica has is judged. */
START_TEST(the_first_replica_is_evaluated) {
  planc_graph *graph = train(false);
  woven w;
  weave_net(graph, 3, WEAVE_RESIDENT, &w);
  planrt_options options = {.evaluate = true};
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 1));
  int64_t most = 0;
  double accuracy;
  /* All probabilities are equal where nothing comes in: the first class is the label that is given. */
  ok(planrt_evaluate(session, 0, feed_zeros, &most, 2 * WHOLE_BATCH, &accuracy));
  ck_assert_int_eq(most, WHOLE_BATCH);
  ck_assert_double_eq(accuracy, 1.0);
  ok(planrt_run(session, 1));
  planrt_session_free(session);
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

/* --- Timelines ---------------------------------------------------------------------------------------------------- */

/* When an instruction of a period ran on the first replica, all that it did there. */
static planc_span span_of(const planrt_session *session, int64_t period, int32_t instr) {
  const rt_part *body = &session->parts[RT_BODY];
  planc_span out = {.start_ns = INT64_MAX, .end_ns = -1};
  for (int32_t i = 0; i < body->n; i++) {
    const rt_action *action = &body->actions[i];
    if (action->replica != 0 || action->instr != instr) continue;
    const rt_span *span = &session->spans[period % session->options.timeline * session->n_spans + action->span];
    if (span->start_ns < out.start_ns) out.start_ns = span->start_ns;
    if (span->end_ns > out.end_ns) out.end_ns = span->end_ns;
  }
  return out;
}

/* A timeline is one replica's: what it takes from all others is one span. */
START_TEST(timelines_are_of_one_replica) {
  enum { REPLICAS = 4, TIMED = 6, KEPT = 3, PERIODS = 5 };
  planc_graph *graph = judge_graph(sum_text);
  planc_plan *plan = plan_of(graph, sum_plan, REPLICAS);
  planrt_options options = {.feed = feed_samples, .timeline = KEPT};
  planrt_session *session;
  planc_timeline *timeline;
  ok(planrt_session_new(plan, &options, &session));
  ck_assert_int_eq(session->n_spans, TIMED + REPLICAS - 2);
  ok(planrt_init(session));
  ok(planrt_run(session, PERIODS));
  ok(planrt_timeline_write(session, path));
  ok(planc_timeline_read(path, plan, &timeline));
  ck_assert_int_eq(timeline->n_periods, KEPT);
  ck_assert_int_eq(timeline->n_timed, TIMED);
  int64_t origin = span_of(session, PERIODS - KEPT, timeline->instrs[0]).start_ns;
  for (int32_t p = 0; p < KEPT; p++)
    for (int32_t k = 0; k < TIMED; k++) {
      planc_span span = span_of(session, PERIODS - KEPT + p, timeline->instrs[k]);
      const planc_span *read = &timeline->spans[p * TIMED + k];
      ck_assert_int_eq(read->start_ns, span.start_ns - origin);
      ck_assert_int_eq(read->end_ns, span.end_ns - origin);
    }
  planc_timeline_free(timeline);
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("replicas");
  TCase *tests = tcase_create("all");
  name_file();
  tcase_set_timeout(tests, 60);
  tcase_add_unchecked_fixture(tests, NULL, remove_file);
  tcase_add_loop_test(tests, gradients_are_summed_in_the_order_of_the_replicas, 0, N_MANNERS);
  tcase_add_loop_test(tests, replicas_have_several_gpus, 0, N_MANNERS);
  tcase_add_loop_test(tests, replicas_have_virtual_memory, 0, N_MANNERS);
  tcase_add_loop_test(tests, actions_grow_with_replicas, 0, 3);
  tcase_add_loop_test(tests, wrong_exchanges_are_found, 0, 14);
  tcase_add_test(tests, every_replica_has_its_own);
  tcase_add_test(tests, bare_runs_have_all_replicas);
  tcase_add_loop_test(tests, random_graphs, 0, 4);
  tcase_add_loop_test(tests, replicas_train_as_one_job_does, 0, 2 * N_MANNERS);
  tcase_add_test(tests, statistics_are_each_replicas_own);
  tcase_add_loop_test(tests, runs_go_on, 0, 2);
  tcase_add_test(tests, other_numbers_of_replicas_are_refused);
  tcase_add_test(tests, the_first_replica_is_evaluated);
  tcase_add_test(tests, timelines_are_of_one_replica);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
