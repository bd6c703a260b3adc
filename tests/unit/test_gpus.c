/* Several GPUs: replicas in the trace and in the file, numerics against one GPU, a shared link. What the checker makes
 * of replicas is tested with its rules, what policies make for several GPUs with the policies. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planrt/planrt.h"
#include "runtime/backend.h"
#include "tests/support/graphtext.h"
#include "tests/support/judge.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"

static const int64_t two[] = {2}, one_and_one[] = {1, 1};

/* --- The trace ---------------------------------------------------------------------------------------------------- */

static const char pair_text[] =
    "planc-graph: 1\n"
    "name: pair\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  dw: grad f32[64]\n"
    "ops:\n"
    "  - {op: g, type: t.g, phase: backward, in: [x], out: [dw], flags: [accumulates]}\n"
    "  - {op: u, type: t.u, phase: optimizer, in: [w, dw], out: [w]}\n";

/* "g" of job 0 as "g0", what sums as "=g0"; an access as (buffer read>write), a buffer by its number. */
static const char *line(const planc_trace *trace) {
  static char text[4096];
  size_t length = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%d", i ? " " : "",
                               instance->role == PLANC_ROLE_EXCHANGE ? "=" : "", planc_trace_op(trace, i)->name,
                               instance->job);
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      char write[16] = "";
      if (access->write >= 0) snprintf(write, sizeof write, ">%d", access->write);
      length += (size_t)snprintf(text + length, sizeof text - length, "(%d %d%s)", access->buffer, access->read, write);
    }
    ck_assert_uint_lt(length, sizeof text);
  }
  return text;
}

static planc_job replicated(const planc_graph *graph, int32_t replicas) {
  return (planc_job){.graph = graph, .batch = 2, .n_rounds = 1, .rounds = two, .iterations = 1, .replicas = replicas};
}

/* Buffers: 0 x of round 0, 1 dw, 2 x of round 1; 3 is 1 of the other two, 4 w. */
START_TEST(gradients_are_exchanged_behind_the_rounds) {
  planc_graph *graph = judge_graph(pair_text);
  planc_job job = replicated(graph, 3);
  job.n_rounds = 2;
  job.rounds = one_and_one;
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  ck_assert_str_eq(line(trace), "g0(0 0)(1 -1>1) g0(2 0)(1 1>2) =g0(1 2>3)(3 0) u0(4 0>1)(1 3)");
  ck_assert_int_eq(trace->buffers[1].sent, 2);
  ck_assert_int_eq(trace->buffers[1].peer, -1);
  ck_assert_int_eq(trace->buffers[3].peer, 1);
  ck_assert_int_eq(trace->buffers[3].sent, -1);
  ck_assert_int_eq(trace->buffers[3].flags, PLANC_BUFFER_FED);
  ck_assert_int_eq(trace->buffers[3].kind, PLANC_KIND_temp);
  ck_assert_int_eq(trace->buffers[3].bytes, 2 * 256);
  /* The first one makes the gradient of nothing; what adds to it does not run again, nor does what persists. */
  for (int32_t i = 0; i < trace->n_instances; i++) ck_assert_int_eq(planc_trace_recomputable(trace, i), i == 0);
  ck_assert_str_eq(planc_trace_type(trace, 2), "exchange");
  ck_assert_int_eq(trace->instances[1].sample_offset, 1);
  ck_assert_int_eq(planc_trace_replicas(trace), 3);
  ck_assert_int_eq(planc_job_whole_batch(&trace->jobs[0]), 6);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

/* The others' gradients begin at multiples of 256 bytes, whatever their size. */
START_TEST(others_lie_apart) {
  planc_graph *graph = judge_graph(
      "planc-graph: 1\nname: odd\ntensors:\n  x: input f32[N,32]\n  w: param f32[65]\n  dw: grad f32[65]\nops:\n"
      "  - {op: g, type: t.g, phase: backward, in: [x], out: [dw], flags: [accumulates]}\n"
      "  - {op: u, type: t.u, phase: optimizer, in: [w, dw], out: [w]}\n");
  planc_job job = replicated(graph, 4);
  planc_trace *trace;
  ok(planc_expand(&job, 1, &trace));
  ck_assert_int_eq(planc_other_stride(260), 512);
  ck_assert_int_eq(trace->buffers[2].bytes, 3 * 512);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

/* Two jobs beside each other, in two iterations each. */
START_TEST(every_iteration_has_its_exchange) {
  planc_graph *graph = judge_graph(pair_text);
  planc_job jobs[] = {replicated(graph, 3), replicated(graph, 3)};
  jobs[0].iterations = jobs[1].iterations = 2;
  planc_trace *trace;
  ok(planc_expand(jobs, 2, &trace));
  ck_assert_int_eq(trace->n_instances, 2 * 2 * 3);
  int32_t n = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    if (instance->role != PLANC_ROLE_EXCHANGE) continue;
    n++;
    ck_assert_int_eq(instance->n_accesses, 2);
    const planc_access *own = &trace->accesses[instance->first_access], *others = own + 1;
    ck_assert_int_eq(trace->buffers[others->buffer].peer, own->buffer);
    ck_assert_int_eq(trace->buffers[own->buffer].sent, own->read);
    for (int32_t k = 0; k < 2; k++) {
      ck_assert_int_eq(trace->buffers[own[k].buffer].job, instance->job);
      ck_assert_int_eq(trace->buffers[own[k].buffer].iteration, instance->iteration);
    }
  }
  ck_assert_int_eq(n, 4);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

START_TEST(all_jobs_have_equally_many_replicas) {
  planc_graph *graph = judge_graph(pair_text);
  static const int32_t cases[][2] = {{2, 3}, {2, 1}, {0, 2}, {3, 0}};
  planc_trace *trace;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    planc_job jobs[] = {replicated(graph, cases[c][0]), replicated(graph, cases[c][1])};
    assert_fails(planc_expand(jobs, 2, &trace), PLANC_BAD_INPUT, "job 1: ");
  }
  planc_job one = replicated(graph, INT32_MAX);
  one.batch = INT64_MAX / 2;
  one.rounds = &one.batch;
  assert_fails(planc_expand(&one, 1, &trace), PLANC_BAD_INPUT, "more than 2^63 samples");
  planc_graph_free(graph);
}
END_TEST

/* But for the exchanges a replica does what a job does that trains alone: they make one version more of each gradient.
 */
START_TEST(a_replica_does_what_a_job_does_alone) {
  static const int64_t rounds[] = {3, 2};
  planc_graph *graph;
  ok(randgraph_make(UINT64_C(9000) + (uint64_t)_i, NULL, &graph));
  planc_job job = {.graph = graph, .rounds = rounds, .n_rounds = 1 + _i / 2 % 2, .iterations = 1 + _i / 4 % 2};
  job.batch = job.n_rounds == 1 ? 3 : 5;
  planc_trace *alone, *replica;
  ok(planc_expand(&job, 1, &alone));
  job.replicas = 2 + _i % 2;
  ok(planc_expand(&job, 1, &replica));
  int32_t k = 0, n_exchanges = 0;
  for (int32_t i = 0; i < replica->n_instances; i++) {
    const planc_instance *a = &replica->instances[i], *b = &alone->instances[k];
    n_exchanges += a->role == PLANC_ROLE_EXCHANGE;
    if (a->role == PLANC_ROLE_EXCHANGE) continue;
    ck_assert_int_lt(k++, alone->n_instances);
    ck_assert_int_eq(a->op, b->op);
    ck_assert_int_eq(a->role, b->role);
    ck_assert_int_eq(a->iteration, b->iteration);
    ck_assert_int_eq(a->round, b->round);
    ck_assert_int_eq(a->batch, b->batch);
    ck_assert_int_eq(a->sample_offset, b->sample_offset);
    ck_assert_int_eq(a->accumulates, b->accumulates);
    ck_assert_int_eq(a->n_accesses, b->n_accesses);
    for (int32_t n = 0; n < a->n_accesses; n++) {
      const planc_access *x = &replica->accesses[a->first_access + n], *y = &alone->accesses[b->first_access + n];
      const planc_buffer *of = &replica->buffers[x->buffer];
      int32_t behind = of->sent >= 0 && x->read >= 0 && x->read > of->sent;
      ck_assert_int_eq(of->storage, alone->buffers[y->buffer].storage);
      ck_assert_int_eq(of->bytes, alone->buffers[y->buffer].bytes);
      ck_assert_int_eq(x->read, y->read < 0 ? -1 : y->read + behind);
      ck_assert_int_eq(x->effect, y->effect);
    }
  }
  ck_assert_int_eq(k, alone->n_instances);
  ck_assert_int_eq(replica->n_buffers, alone->n_buffers + n_exchanges);
  planc_trace_free(replica);
  planc_trace_free(alone);
  planc_graph_free(graph);
}
END_TEST

/* An optimizer op that reads what one replica made of its samples is none of the whole batch. */
START_TEST(what_cannot_be_split_has_no_replicas) {
  planc_graph *graph = judge_graph(
      "planc-graph: 1\nname: part\ntensors:\n  x: input f32[N,4]\n  g: grad f32[4]\n  y: f32[N,4]\nops:\n"
      "  - {op: b, type: t.b, phase: backward, in: [x], out: [g, y]}\n"
      "  - {op: s, type: t.s, phase: optimizer, in: [g, y]}\n");
  planc_job job = replicated(graph, 2);
  planc_trace *trace;
  assert_fails(planc_expand(&job, 1, &trace), PLANC_BAD_INPUT, "op s runs once for all rounds but touches y");
  planc_graph_free(graph);
}
END_TEST

/* --- The file ----------------------------------------------------------------------------------------------------- */

/* Events: 0 the input is there; 1 the gradient is made; 2 it is sent; 3 the others' have come; 4 the optimizer has run;
 * 5 the boundary is there. */
static const char exchange[] =
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

static planc_plan *exchange_plan(const planc_graph *graph, const char *text) {
  const planc_job job = replicated(graph, 2);
  planc_plan *plan;
  ok(script_make(text, &job, 1, 1024, 256, &plan));
  return plan;
}

/* What is written is read again, and twice the same. */
START_TEST(plans_of_replicas_are_read_as_written) {
  planc_graph *graph = judge_graph(pair_text);
  planc_plan *plan = exchange_plan(graph, exchange), *again;
  char *text, *text_again;
  size_t length, length_again;
  judge_expect(plan, PLANC_OK, "ok", "the exchange");
  ok(planc_plan_print(plan, &text, &length));
  ck_assert_ptr_nonnull(strstr(text, ",\"replicas\":2,\"memories\":"));
  ck_assert_ptr_nonnull(strstr(text, "{\"i\":\"copy\",\"r\":4,\"from\":3,\"peers\":1,\"bytes\":256,\"s\":1}\n"));
  ck_assert_ptr_nonnull(strstr(text, "{\"i\":\"wait\",\"e\":3,\"lag\":1,\"peers\":1,\"s\":2}\n"));
  ok(planc_plan_parse(text, length, "x.plan", &again));
  ck_assert_int_eq(planc_plan_replicas(again), 2);
  ck_assert_int_eq(planc_plan_gpus(again), 1);
  ok(planc_plan_print(again, &text_again, &length_again));
  ck_assert_str_eq(text, text_again);
  planc_plan_free(again);
  free(text_again);
  static const char *const refused[] = {"\"replicas\":0", "\"replicas\":1", "\"replicas\":4097"};
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    char *other = judge_edited(text, "\"replicas\":2", refused[k]);
    assert_fails(planc_plan_parse(other, strlen(other), "x.plan", &again), PLANC_BAD_INPUT, "not between 2 and 4096");
    free(other);
  }
  free(text);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Numerics ----------------------------------------------------------------------------------------------------- */

static const char net_text[] =
    "planc-graph: 1\nname: net\nloss: loss\ntensors:\n"
    "  x: input f32[N,1,6,6]\n  labels: input i64[N]\n"
    "  c.w: param f32[4,1,3,3]\n  c.b: param f32[4]\n  c: f32[N,4,6,6]\n  r: f32[N,4,6,6] of c\n"
    "  p: f32[N,4,3,3]\n  flat: f32[N,36] of p\n  d: f32[N,36]\n"
    "  f.w: param f32[3,36]\n  f.b: param f32[3]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: c, type: conv2d, in: [x, c.w, c.b], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: r, type: relu, in: [c], out: [r]}\n"
    "  - {op: p, type: maxpool2d, in: [r], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: d, type: dropout, in: [flat], out: [d], attrs: {p: 0.25, seed: 1}}\n"
    "  - {op: f, type: linear, in: [d, f.w, f.b], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

enum { ITERATIONS = 8, BATCH = 12, WEIGHTS = 3 * 36 };

typedef struct outcome {
  float losses[ITERATIONS];
  float weights[3][WEIGHTS]; /* by replica */
} outcome;

static planc_status add_loss(void *user, const planrt_result *result) {
  outcome *to = user;
  to->losses[result->iteration] += *(const float *)result->data;
  return NULL;
}

/* Trains on `gpus`, each with a twelfth of its part of the batch as a round; everything is verified against the
 * reference. */
static void run_net(const planc_graph *graph, const planc_profile *profile, const char *policy, int32_t gpus,
                    outcome *out) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = BATCH / gpus,
                           .terms.gpus = gpus,
                           .job.sub_batch = strcmp(policy, "modnn") == 0 ? 2 : 0,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 20,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_plan *plan;
  ok_in(planc_make_plan(&problem, planc_policy_find(policy), &plan), policy);
  ck_assert_int_eq(planc_plan_gpus(plan), 1);
  ck_assert_int_eq(planc_plan_replicas(plan), gpus);
  ok_in(planc_check(plan, NULL, NULL), policy);
  *out = (outcome){0};
  planrt_options options = {.sink = add_loss, .user = out, .verify = true, .poison = true};
  planrt_session *session;
  ok_in(planrt_session_new(plan, &options, &session), policy);
  ok(planrt_init(session));
  planrt_set_step(session, (planrt_step){.learning_rate = 0.05});
  ok_in(planrt_run(session, ITERATIONS), policy);
  for (int32_t t = 0; t < graph->n_tensors; t++) {
    if (strcmp(graph->tensors[t].name, "f.w") != 0) continue;
    for (int32_t j = 0; j < gpus; j++)
      ok(planrt_read(session, j, 0, graph->tensors[t].storage, out->weights[j], sizeof out->weights[j]));
  }
  planrt_session_free(session);
  planc_plan_free(plan);
}

/* The same samples, dropout masks, means and updates as on one GPU; all replicas have the same bits after them. */
START_TEST(several_gpus_train_as_one_does) {
  static const char *const policies[] = {"none", "modnn", "vdnn-all", "window", "cheap", "lms", "capuchin"};
  planc_graph *forward = graph_of(net_text), *graph;
  planc_profile *profile;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  outcome one, several;
  run_net(graph, profile, "none", 1, &one);
  ck_assert_float_lt(one.losses[ITERATIONS - 1], one.losses[0]);
  for (int32_t gpus = 2; gpus <= 3; gpus++) {
    run_net(graph, profile, policies[_i], gpus, &several);
    for (int32_t j = 1; j < gpus; j++)
      ck_assert_mem_eq(several.weights[j], several.weights[0], sizeof several.weights[0]);
    for (int k = 0; k < ITERATIONS; k++) ck_assert_float_eq_tol(several.losses[k], one.losses[k], 1e-5F);
    for (int k = 0; k < WEIGHTS; k++) ck_assert_float_eq_tol(several.weights[0][k], one.weights[0][k], 1e-5F);
  }
  planc_profile_free(profile);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* Nobody runs a plan for several GPUs on a backend that has one. */
START_TEST(one_device_is_not_several) {
  planc_graph *graph = judge_graph(pair_text);
  planc_plan *plan = exchange_plan(graph, exchange);
  planrt_backend single = rt_host_backend;
  single.parts = false;
  planrt_options options = {.backend = &single, .synthetic = true};
  planrt_session *session;
  assert_fails(planrt_session_new(plan, &options, &session), PLANC_DEVICE, "the plan is for 2 GPUs, backend host runs");
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- The simulator ------------------------------------------------------------------------------------------------ */

/* 256 bytes in 256 + 100 ns. */
static planc_simulation simulate_copies(const planc_graph *graph, const char *text, int32_t replicas, bool shared,
                                        int64_t duplex_ppm) {
  planc_plan *plan = exchange_plan(graph, text);
  ((planc_job *)plan->jobs)[0].replicas = replicas;
  plan->device.in_flight = 1000;
  plan->device.duplex_ppm = duplex_ppm;
  const planc_link link = {.bytes_per_second = 1000000000, .latency_ns = 100};
  tables_links(plan, link, link);
  for (int32_t l = 0; shared && l < plan->n_links; l++) plan->links[l].bus = plan->links[l].engine % 2;
  planc_simulation s;
  ok(planc_simulate(plan, NULL, &s));
  planc_plan_free(plan);
  return s;
}

/* All GPUs copy at once: in on a link of their own, or in turns on one; and out in the same way beside that. */
START_TEST(gpus_share_a_link_or_do_not) {
  planc_graph *graph = judge_graph(pair_text);
  static const char in[] = "body\nacquire 0 x#0 0\ncopy 0 user on 1\n";
  static const char both[] =
      "body\nacquire 0 x#0 0\nacquire 1 x#0 256\nacquire 2 x#0 0 host\ncopy 0 user on 1\ncopy 2 1 on 2\n";
  for (int32_t n = 2; n <= 4; n += 2) { /* rates are rounded down, and these are whole */
    planc_simulation s = simulate_copies(graph, in, n, false, 1000000);
    ck_assert_int_eq(s.period_ns, 356);
    ck_assert_int_eq(s.copied_bytes[PLANC_ROUTE_H2D], n * 256);
    ck_assert_int_eq(s.copy_ns[PLANC_ROUTE_H2D], 356); /* of each engine */
    s = simulate_copies(graph, in, n, true, 1000000);
    ck_assert_int_eq(s.period_ns, n * 356);
    ck_assert_int_eq(s.copy_ns[PLANC_ROUTE_H2D], n * 356);
    ck_assert_int_eq(simulate_copies(graph, both, n, false, 500000).period_ns, 2 * 356);
    ck_assert_int_eq(simulate_copies(graph, both, n, true, 500000).period_ns, n * 2 * 356);
  }
  planc_graph_free(graph);
}
END_TEST

/* On one bus for both ways copies the same way share it, and only one the other way slows them further. */
START_TEST(a_bus_both_ways_is_not_against_itself) {
  planc_graph *graph = judge_graph(pair_text);
  static const char *const scripts[] = {
      "gpus 0 1\nbody\nacquire 0 x#0 0\nacquire 1 x#1 0\ncopy 0 user on 1\ncopy 1 user on 4\n",
      "gpus 0 1\nbody\nacquire 0 x#0 0\nacquire 1 x#0 256\nacquire 2 x#0 0 host\ncopy 0 user on 1\ncopy 2 1 on 2\n"};
  static const int64_t ns[] = {2 * 356, 4 * 356};
  for (int k = 0; k < 2; k++) {
    const planc_job jobs[] = {replicated(graph, 0), replicated(graph, 0)};
    const planc_link link = {.bytes_per_second = 1000000000, .latency_ns = 100};
    planc_plan *plan;
    planc_simulation s;
    ok(script_make(scripts[k], jobs, 2, 1024, 512, &plan));
    plan->device.in_flight = 1000;
    plan->device.duplex_ppm = 500000;
    tables_links(plan, link, link);
    for (int32_t l = 0; l < plan->n_links; l++) plan->links[l].bus = 0;
    ok(planc_simulate(plan, NULL, &s));
    ck_assert_int_eq(s.period_ns, ns[k]);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* What comes from the others is one copy from each. */
START_TEST(peers_are_copied_from_in_turn) {
  planc_graph *graph = judge_graph(pair_text);
  static const char fetch[] = "body\nacquire 0 dw#0 0 host\nacquire 1 dw#1 0\ncopy 1 0 peers on 1\n";
  for (int32_t n = 2; n <= 4; n += 2) { /* rates are rounded down, and these are whole */
    planc_simulation s = simulate_copies(graph, fetch, n, false, 1000000);
    ck_assert_int_eq(s.period_ns, (n - 1) * 356);
    ck_assert_int_eq(s.copied_bytes[PLANC_ROUTE_H2D], n * (n - 1) * 256);
    ck_assert_int_eq(simulate_copies(graph, fetch, n, true, 1000000).period_ns, n * (n - 1) * 356);
  }
  planc_graph_free(graph);
}
END_TEST

/* Two jobs, each on a GPU of its own: GPU 0 computes 3000 ns, GPU 1 1000. Times on a GPU are means, and what is live is
 * counted on each. */
START_TEST(times_are_means_over_gpus) {
  planc_graph *graph = judge_graph(pair_text);
  const planc_job jobs[] = {replicated(graph, 0), replicated(graph, 0)};
  planc_plan *plan;
  ok(
      script_make("gpus 0 1\nbody\nacquire 0 x#0 0\nacquire 1 dw#0 256\nacquire 2 x#1 0\nacquire 3 dw#1 256\n"
                  "exec g#0 use 0 1\nexec g#1 on 3 use 2 3\n"
                  "release 0\nrelease 1\nrelease 2\nrelease 3\n",
                  jobs, 2, 1024, 512, &plan));
  plan->device = (planc_plan_device){.duplex_ppm = 1000000, .in_flight = 1000};
  planc_instr *instrs = (planc_instr *)plan->body.instrs;
  instrs[4].time_ns = 3000;
  instrs[5].time_ns = 1000;
  planc_simulation s;
  ok(planc_simulate(plan, NULL, &s));
  ck_assert_int_eq(s.period_ns, 3000);
  ck_assert_int_eq(s.compute_ns, 2000);
  ck_assert_int_eq(s.live_peak_bytes, 512);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gpus");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, gradients_are_exchanged_behind_the_rounds);
  tcase_add_test(tests, others_lie_apart);
  tcase_add_test(tests, every_iteration_has_its_exchange);
  tcase_add_test(tests, all_jobs_have_equally_many_replicas);
  tcase_add_loop_test(tests, a_replica_does_what_a_job_does_alone, 0, 40);
  tcase_add_test(tests, what_cannot_be_split_has_no_replicas);
  tcase_add_test(tests, plans_of_replicas_are_read_as_written);
  tcase_add_loop_test(tests, several_gpus_train_as_one_does, 0, 7);
  tcase_add_test(tests, one_device_is_not_several);
  tcase_add_test(tests, gpus_share_a_link_or_do_not);
  tcase_add_test(tests, a_bus_both_ways_is_not_against_itself);
  tcase_add_test(tests, peers_are_copied_from_in_turn);
  tcase_add_test(tests, times_are_means_over_gpus);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
