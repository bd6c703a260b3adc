/* Bare runs: the plan's calls and copies in one queue and nothing else, which compute what any run of the plan does.
 * Periods of any run: what is awaited to time them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

static const char net[] =
    "planc-graph: 1\nname: net\nloss: loss\ntensors:\n  x: input f32[N,3,8,8]\n  labels: input i64[N]\n"
    "  w: param f32[4,3,3,3]\n  c: f32[N,4,8,8]\n  r: f32[N,4,8,8] of c\n  flat: f32[N,256] of r\n"
    "  v: param f32[5,256]\n  z: f32[N,5]\n  loss: f32[]\n  probs: f32[N,5]\nops:\n"
    "  - {op: c, type: conv2d, in: [x, w], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: r, type: relu, in: [c], out: [r]}\n"
    "  - {op: z, type: linear, in: [flat, v], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

static planc_graph *net_graph(void) {
  planc_graph *forward = graph_of(net), *graph;
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  planc_graph_free(forward);
  return graph;
}

/* --- What reaches the backend ------------------------------------------------------------------------------------- */

static int32_t n_streams, n_events, others;
static int64_t n_launches, n_copies, n_rests, launched_before_rest;

static planc_status open_counted(const rt_device_options *options, rt_device **out) {
  ck_assert(options->concurrent);
  n_streams = options->n_streams;
  n_events = options->n_events;
  return rt_host_backend.open(options, out);
}

static planc_status launch(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *how,
                           rt_span *span) {
  n_launches++;
  others += span != NULL || stream != 0;
  return rt_host_backend.launch(device, stream, call, how, span);
}

static planc_status copy(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                         int64_t bytes, rt_span *span) {
  n_copies++;
  others += span != NULL || stream != 0;
  return rt_host_backend.copy(device, stream, direction, to, from, bytes, span);
}

static planc_status host(rt_device *device, int32_t stream, rt_host_work work, void *user, const void *what,
                         int64_t period) {
  others++;
  return rt_host_backend.host(device, stream, work, user, what, period);
}

static planc_status record(rt_device *device, int32_t stream, int32_t event, int64_t generation) {
  others++;
  return rt_host_backend.record(device, stream, event, generation);
}

static planc_status await(rt_device *device, int32_t stream, int32_t event, int64_t generation) {
  others++;
  return rt_host_backend.wait(device, stream, event, generation);
}

static planc_status synchronize(rt_device *device) {
  if (n_rests == 0) launched_before_rest = n_launches;
  n_rests++;
  return rt_host_backend.synchronize(device);
}

static planrt_backend counted(void) {
  planrt_backend backend = rt_host_backend;
  backend.open = open_counted;
  backend.launch = launch;
  backend.copy = copy;
  backend.host = host;
  backend.record = record;
  backend.wait = await;
  backend.synchronize = synchronize;
  n_launches = n_copies = n_rests = others = 0;
  return backend;
}

static planc_status drop(void *user, const planrt_result *result) {
  (void)user, (void)result;
  return NULL;
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

enum { PERIODS = 5, MOST_VALUES = 16384 };

/* All params and state after some periods. */
static int64_t run(const planc_plan *plan, const planrt_options *options, char *out, int64_t *out_period_ns) {
  planrt_session *session;
  int64_t bytes = 0;
  ok(planrt_session_new(plan, options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, PERIODS));
  ck_assert_int_eq(planrt_get_step(session).period, PERIODS);
  rt_homes at = {.storage = -1};
  while (rt_next_home(session, 0, &at)) {
    ck_assert_int_le(bytes + at.bytes, MOST_VALUES);
    memcpy(out + bytes, at.home, (size_t)at.bytes);
    bytes += at.bytes;
  }
  *out_period_ns = planrt_period(session);
  planrt_session_free(session);
  return bytes;
}

START_TEST(bare_runs_compute_the_same) {
  static const int64_t rounds[] = {4, 2};
  static char want[MOST_VALUES], got[MOST_VALUES];
  planc_graph *graph = net_graph();
  planc_job job = {.graph = graph, .batch = 6, .n_rounds = 2, .rounds = rounds, .iterations = 1};
  woven w;
  ok(weave(&job, _i ? WEAVE_SWAP : WEAVE_RESIDENT, 512, &w));
  ck_assert_int_gt(w.plan.n_streams, 1);
  ck_assert_int_gt(w.plan.n_events, 0);
  planrt_options options = {.concurrent = true, .same_samples = true, .sink = drop};
  int64_t period_ns, bytes = run(&w.plan, &options, want, &period_ns);

  planrt_backend backend = counted();
  options = (planrt_options){.backend = &backend, .bare = true, .sink = drop};
  ck_assert_int_eq(run(&w.plan, &options, got, &period_ns), bytes);
  ck_assert_int_gt(period_ns, 0);
  ck_assert_mem_eq(got, want, (size_t)bytes);
  ck_assert_int_eq(n_streams, 1);
  ck_assert_int_eq(n_events, 0);
  ck_assert_int_eq(others, 0);
  ck_assert_int_gt(n_launches, 0);
  ck_assert_int_gt(n_copies, 0);
  ck_assert_int_eq(n_rests, 3); /* behind the first period, the last one, and all */
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

START_TEST(what_a_bare_run_cannot_be) {
  static const int64_t rounds[] = {4};
  static const planrt_options wrong[] = {{.bare = true, .verify = true}, {.bare = true, .evaluate = true},
                                         {.bare = true, .timeline = 1},  {.bare = true, .replay = true},
                                         {.bare = true, .poison = true}, {.bare = true, .jitter = 1}};
  planc_graph *graph = net_graph();
  planc_job job = {.graph = graph, .batch = 4, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  woven w;
  planrt_session *session;
  ok(weave(&job, WEAVE_RESIDENT, 512, &w));
  assert_fails(planrt_session_new(&w.plan, &wrong[_i], &session), PLANC_USAGE, "a bare run is neither");
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

/* A first period alone is nothing that a bare run could tell. */
START_TEST(a_bare_run_takes_two_periods) {
  static const int64_t rounds[] = {4};
  planc_graph *graph = net_graph();
  planc_job job = {.graph = graph, .batch = 4, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  woven w;
  planrt_session *session;
  planrt_options options = {.bare = true};
  ok(weave(&job, WEAVE_RESIDENT, 512, &w));
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  for (int64_t periods = 0; periods < 2; periods++)
    assert_fails(planrt_run(session, periods), PLANC_USAGE, "it takes two periods or more");
  ck_assert_int_eq(planrt_get_step(session).period, 0);
  ok(planrt_run(session, 2));
  ck_assert_int_gt(planrt_period(session), 0);
  planrt_session_free(session);
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

/* --- Periods ------------------------------------------------------------------------------------------------------ */

/* Periods are timed between two rests of the device, behind a quarter of them; a run that is not timed has none but its
 * last. */
START_TEST(what_is_awaited_to_time_a_period) {
  static const int64_t rounds[] = {4};
  static const struct {
    planrt_options options;
    int64_t periods, before; /* those that are not timed; 0: none is */
  } runs[] = {{{.concurrent = true}, 1, 0},
              {{.concurrent = true}, 2, 1},
              {{.concurrent = true}, 9, 2},
              {{.concurrent = true}, 12, 3},
              {{.concurrent = false}, 3, 1},
              {{.concurrent = true, .timeline = 4}, 3, 0},
              {{.concurrent = true, .verify = true}, 3, 0}};
  planc_graph *graph = net_graph();
  planc_job job = {.graph = graph, .batch = 4, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  woven w;
  planrt_session *session;
  planrt_backend backend = counted();
  backend.open = rt_host_backend.open;
  ok(weave(&job, WEAVE_SWAP, 512, &w));
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    planrt_options options = runs[i].options;
    options.backend = &backend;
    ok(planrt_session_new(&w.plan, &options, &session));
    ok(planrt_init(session));
    n_rests = n_launches = 0;
    ok(planrt_run(session, runs[i].periods));
    bool timed = runs[i].before > 0;
    ck_assert_int_eq(planrt_period(session) > 0, timed);
    if (!options.verify) ck_assert_int_eq(n_rests, timed ? 3 : 1);
    if (timed) ck_assert_int_eq(launched_before_rest * runs[i].periods, n_launches * runs[i].before);
    /* What is known is the last run's. */
    ok(planrt_run(session, 1));
    ck_assert_int_eq(planrt_period(session), 0);
    planrt_session_free(session);
  }
  woven_free(&w);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("bare");
  TCase *c = tcase_create("bare");
  tcase_add_loop_test(c, bare_runs_compute_the_same, 0, 2);
  tcase_add_loop_test(c, what_a_bare_run_cannot_be, 0, 6);
  tcase_add_test(c, a_bare_run_takes_two_periods);
  tcase_add_test(c, what_is_awaited_to_time_a_period);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
