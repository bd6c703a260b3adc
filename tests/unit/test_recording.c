/* What a session calls on its backend is what the plan says: call by call, with every argument, on a backend that
 * records. Plans of all policies over random graphs, random schedules that move and recompute, several rounds,
 * iterations and jobs; in file order, concurrent, interleaved and captured. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "planc/policy.h"
#include "tests/support/expected_calls.h"
#include "tests/support/graphtext.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* --- Every way of running a plan ---------------------------------------------------------------------------------- */

static const planrt_options ways[] = {
    {.seed = 1},
    {.seed = 2, .poison = true, .link_bytes_per_s = 1000},
    {.seed = 3, .poison = true, .verify = true, .deterministic = true},
    {.concurrent = true, .jitter = 5},
    {.concurrent = true, .poison = true, .verify = true, .synthetic = true},
    {.concurrent = true, .timeline = 2},
    {.concurrent = true, .replay = true},
    {.concurrent = true, .replay = true, .verify = true},
    {.concurrent = true, .replay = true, .poison = true, .deterministic = true},
};
enum { WAYS = sizeof ways / sizeof *ways };

static planrt_options with_callbacks(planrt_options options, bool sink) {
  options.backend = &recording_backend;
  options.feed = recording_feed;
  if (sink) options.sink = recording_sink;
  return options;
}

static void count_closes(int32_t devices) {
  int32_t opened = 0, closed = 0;
  for (int64_t i = 0; i < recording_length(); i++) {
    opened += recording_at(i)->kind == RECORDED_OPEN;
    closed += recording_at(i)->kind == RECORDED_CLOSE;
  }
  ck_assert_int_eq(opened, devices);
  ck_assert_int_eq(closed, devices);
}

static void run_one_way(const planc_plan *plan, const planrt_options *options, const char *what) {
  planrt_session *session;
  recording_start(NULL);
  ok_in(planrt_session_new(plan, options, &session), what);
  expected_calls *expected = expected_new(plan, options);
  expected_opening(expected);
  expected_compare(expected, what);
  ok_in(planrt_init(session), what);
  ck_assert(isnan(planrt_get_step(session).learning_rate));
  expected_run(expected, planrt_get_step(session), 3, 3);
  ok_in(planrt_run(session, 3), what);
  expected_compare(expected, what);
  planrt_set_step(session, (planrt_step){.learning_rate = 0.25, .period = 7});
  expected_run(expected, planrt_get_step(session), 1, 1);
  ok_in(planrt_run(session, 1), what);
  expected_compare(expected, what);
  if (!options->concurrent) {
    expected_interleaved(expected, planrt_get_step(session), 3);
    ok_in(planrt_run_interleaved(session, 3, options->seed), what);
    expected_compare(expected, what);
  }
  expected_places(expected, session);
  expected_free(expected);
  planrt_session_free(session);
  count_closes(options->verify ? 2 : 1);
  recording_end();
}

static void run_every_way(const planc_plan *plan, const char *what) {
  for (int w = 0; w < WAYS; w++) {
    char name[96];
    planrt_options options = with_callbacks(ways[w], w % 4 != 3);
    snprintf(name, sizeof name, "%s, way %d", what, w);
    run_one_way(plan, &options, name);
  }
}

START_TEST(plans_of_policies) {
  if (!is_sampled(_i, 3)) return;
  planc_graph *graph;
  randgraph_options options = {.max_ops = 24, .allow_batch_coupled = _i % 4 == 0, .unsplittable = _i % 4 == 2};
  ok(randgraph_make(3000 + (uint64_t)_i, &options, &graph));
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1 + _i % 7, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    char what[64];
    planc_plan *plan;
    snprintf(what, sizeof what, "%s, graph %d", policy->name, _i);
    problem.terms.settings.effort = policy->supports & PLANC_POLICY_SEARCHES ? 1 : 0; /* short searches */
    ok_in(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]), what);
    ok_in(planc_make_plan(&problem, policy, &plan), what);
    run_every_way(plan, what);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

static int32_t count_instrs(const planc_plan *plan, planc_instr_op op) {
  int32_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++) n += plan->body.instrs[i].op == op;
  return n;
}

static int32_t count_moves(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++) n += copies_own(plan, &plan->body.instrs[i], "compute");
  return n;
}

static int32_t count_parked(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t b = 0; b < plan->n_boundary; b++) n += is_parked(plan, &plan->boundary[b]);
  return n;
}

static int32_t count_skipped(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t u = 0; u < plan->n_uses; u++) n += plan->uses[u] < 0;
  return n;
}

START_TEST(random_schedules) {
  int32_t moves = 0, parked = 0, skipped = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    planc_graph *graph;
    planc_plan *plan;
    randcase c;
    char what[32];
    snprintf(what, sizeof what, "schedule %d", (int)seed);
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24, .inference = seed % 5 == 4}, &graph));
    ok(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 3), &c));
    ok(randschedule_make(seed, NULL, &c));
    ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    moves += count_moves(plan);
    parked += count_parked(plan);
    skipped += count_skipped(plan);
    run_every_way(plan, what);
    planc_plan_free(plan);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(moves, 3);
  ck_assert_int_gt(parked, 10);
  ck_assert_int_gt(skipped, 3);
}
END_TEST

/* Several rounds, so that gradients add up in place and through temporaries, and iterations. */
START_TEST(rounds_and_iterations) {
  int32_t in_place = 0, through = 0;
  for (uint64_t seed = 0; seed < 24; seed++) {
    static const int64_t rounds[] = {3, 1, 2};
    planc_graph *graph;
    woven w;
    char what[32];
    snprintf(what, sizeof what, "woven plan %d", (int)seed);
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24}, &graph));
    planc_job job = {
        .graph = graph, .batch = 6, .n_rounds = 3, .rounds = rounds, .iterations = 1 + (int32_t)(seed % 3)};
    ok(weave(&job, seed % 4 ? WEAVE_SWAP : WEAVE_RESIDENT, (int64_t)(seed % 3) * 256, &w));
    for (int32_t i = 0; i < w.trace->n_instances; i++) {
      in_place += w.trace->instances[i].accumulates;
      through += w.trace->instances[i].role == PLANC_ROLE_ACCUMULATE;
    }
    run_every_way(&w.plan, what);
    woven_free(&w);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(in_place, 10);
  ck_assert_int_gt(through, 10);
}
END_TEST

/* --- Several jobs ------------------------------------------------------------------------------------------------- */

static const char small_text[] =
    "planc-graph: 1\nname: small\nloss: l\ntensors:\n  x: input u8[N,64]\n  w: param u8[64]\n  l: f32[]\nops:\n"
    "  - {op: f, type: t.t, in: [x, w], out: [l]}\n"
    "  - {op: u, type: t.t, phase: optimizer, in: [w], out: [w]}\n";

/* Job 0 runs two iterations a period, job 1 one; they take turns at one place for samples and one for losses. */
static const char two_jobs[] =
    "boundary w#0 0\nboundary w#1 256\n"
    "prologue\nacquire 0 w#0 0\ncopy 0 user on 1\nrecord 9 on 1\nacquire 1 w#1 256\ncopy 1 user on 4\n"
    "record 10 on 4\nwait 9 on 0\nwait 10 on 3\nwait 9 on 5\nwait 10 on 5\nrecord 0 on 5\n"
    "body\n"
    "wait 0 lag 1 on 1\nacquire 2 x#0 512\ncopy 2 user on 1\nrecord 1 on 1\nwait 1 on 0\nacquire 3 l#0 1024\n"
    "exec f#0 use 2 0 3\nexec u#0 use 0\nrecord 2 on 0\nwait 2 on 2\ncopy user 3 on 2\nrecord 3 on 2\nrelease 2\n"
    "release 3\nwait 3 on 1\nacquire 4 x#1 512\ncopy 4 user on 1\nrecord 4 on 1\nwait 4 on 0\nacquire 5 l#1 1024\n"
    "exec f#1 use 4 0 5\nexec u#1 ws 1280 64 use 0\nrecord 5 on 0\nwait 5 on 2\ncopy user 5 on 2\nrecord 6 on 2\n"
    "release 4\nrelease 5\nwait 6 on 4\nacquire 6 x#2 512\ncopy 6 user on 4\nrecord 7 on 4\nwait 7 on 3\n"
    "acquire 7 l#2 1024\nexec f#2 on 3 use 6 1 7\nexec u#2 on 3 use 1\nrecord 8 on 3\nwait 8 on 5\n"
    "copy user 7 on 5\nrecord 0 on 5\nrelease 6\nrelease 7\n"
    "epilogue\nwait 0 lag 1 on 2\nwait 0 lag 1 on 5\ncopy user 0 on 2\ncopy user 1 on 5\nrelease 0\nrelease 1\n";

typedef struct two {
  planc_graph *graph;
  planc_plan *plan;
  planrt_options options;
  planrt_session *session;
  expected_calls *expected;
} two;

/* The plan, to be run in one of the ways. */
static void make_two(two *t, int way) {
  static const int64_t three[] = {3}, pair[] = {2};
  *t = (two){.graph = graph_of(small_text), .options = with_callbacks(ways[way], true)};
  const planc_job jobs[] = {{.graph = t->graph, .batch = 3, .n_rounds = 1, .rounds = three, .iterations = 2},
                            {.graph = t->graph, .batch = 2, .n_rounds = 1, .rounds = pair, .iterations = 1}};
  ok(script_make(two_jobs, jobs, 2, 1344, 0, &t->plan));
}

/* Opens a session; where that fails, only the status is left. */
static planc_status open_two(two *t, const recording_options *how) {
  recording_start(how);
  PLANC_TRY(planrt_session_new(t->plan, &t->options, &t->session));
  t->expected = expected_new(t->plan, &t->options);
  expected_opening(t->expected);
  expected_compare(t->expected, "opening");
  return planrt_init(t->session);
}

static void close_two(two *t) {
  if (t->session) {
    expected_free(t->expected);
    planrt_session_free(t->session);
  }
  t->session = NULL;
  recording_end();
}

static void free_two(two *t) {
  planc_plan_free(t->plan);
  planc_graph_free(t->graph);
}

START_TEST(several_jobs) {
  two t;
  make_two(&t, 0);
  run_every_way(t.plan, "two jobs");
  free_two(&t);
}
END_TEST

/* --- Runs --------------------------------------------------------------------------------------------------------- */

/* More periods than are compared at once: rows are used again. */
START_TEST(long_runs) {
  static const int64_t runs[] = {0, 2 * PLANRT_VERIFY_PERIODS + 3, 1, PLANRT_VERIFY_PERIODS};
  int64_t period = 0;
  two t;
  make_two(&t, _i);
  ok(open_two(&t, NULL));
  for (int r = 0; r < 4; r++) {
    planrt_step step = planrt_get_step(t.session);
    ck_assert_int_eq(step.period, period);
    expected_run(t.expected, step, runs[r], runs[r]);
    ok(planrt_run(t.session, runs[r]));
    expected_compare(t.expected, "long run");
    period += runs[r];
  }
  expected_places(t.expected, t.session);
  close_two(&t);
  free_two(&t);
}
END_TEST

typedef struct stopper {
  volatile sig_atomic_t stop;
  int64_t at; /* iteration of job 0 */
} stopper;

static planc_status feed_and_stop(void *user, const planrt_feed_request *request) {
  stopper *s = user;
  if (request->job == 0 && request->iteration == s->at) s->stop = 1;
  return recording_feed(NULL, request);
}

/* The body in which a run is stopped is its last, and the epilogue waits for that; stopped before its first, it has
 * none. */
START_TEST(stopped_runs) {
  enum { LAST = 5 };
  stopper s = {.at = 2 * LAST + 1};
  two t;
  make_two(&t, _i);
  t.options.feed = feed_and_stop;
  t.options.user = &s;
  t.options.stop = &s.stop;
  ok(open_two(&t, NULL));
  expected_run(t.expected, planrt_get_step(t.session), 12, LAST + 1);
  ok(planrt_run(t.session, 12));
  ck_assert_int_eq(planrt_get_step(t.session).period, LAST + 1);
  expected_compare(t.expected, "stopped run");
  expected_run(t.expected, planrt_get_step(t.session), 12, 0);
  ok(planrt_run(t.session, 12));
  ck_assert_int_eq(planrt_get_step(t.session).period, LAST + 1);
  expected_compare(t.expected, "stopped before it starts");
  close_two(&t);
  free_two(&t);
}
END_TEST

/* Each launch and copy of the last periods has a span of its own. */
START_TEST(spans_of_the_last_periods) {
  enum { PERIODS = 7, TIMELINE = 3, MOST = 512 };
  static const rt_span *spans[MOST];
  int32_t each = 0, n = 0;
  two t;
  make_two(&t, 0);
  t.options.timeline = TIMELINE;
  ok(open_two(&t, NULL));
  ok(planrt_run(t.session, PERIODS));
  each = count_instrs(t.plan, PLANC_INSTR_exec) + count_instrs(t.plan, PLANC_INSTR_copy);
  for (int64_t i = 0; i < recording_length(); i++) {
    if (!recording_at(i)->span) continue;
    ck_assert_int_lt(n, MOST);
    spans[n++] = recording_at(i)->span;
  }
  ck_assert(n == PERIODS * each);
  for (int32_t a = 0; a < n; a++)
    for (int32_t b = 0; b < a; b++) {
      bool same_row = (a / each - b / each) % TIMELINE == 0;
      if ((spans[a] == spans[b]) != (same_row && a % each == b % each)) ck_abort_msg("spans %d and %d", a, b);
    }
  close_two(&t);
  free_two(&t);
}
END_TEST

/* --- The reference ------------------------------------------------------------------------------------------------ */

static const planc_instr *first_run(const planc_plan *plan, int32_t instance) {
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec && plan->body.instrs[i].id == instance)
      return &plan->body.instrs[i];
  ck_abort_msg("instance %d is not run", instance);
  return NULL;
}

/* The trace in its own order, each instance by the algorithm of its first run, told what that was told. */
START_TEST(reference_runs_the_trace) {
  enum { PERIODS = 3, FIRST = 4, INSTANCES = 6 };
  int32_t prepared = 0, launched = 0;
  two t;
  make_two(&t, _i);
  ok(open_two(&t, NULL));
  planrt_set_step(t.session, (planrt_step){.learning_rate = 0.5, .period = FIRST});
  ok(planrt_run(t.session, PERIODS));
  for (int64_t i = 0; i < recording_length(); i++) {
    const recorded_call *call = recording_at(i);
    if (call->device != 1) continue;
    if (call->kind == RECORDED_OPEN) {
      ck_assert(call->options.deterministic); /* bits are compared */
      ck_assert_int_eq(call->options.synthetic, t.options.synthetic);
    }
    if (call->kind != RECORDED_PREPARE && call->kind != RECORDED_LAUNCH) continue;
    const planc_instr *exec = first_run(t.plan, call->id);
    ck_assert_str_eq(call->algorithm, t.plan->algorithms[exec->aux]);
    ck_assert_int_eq(call->bytes, exec->bytes);
    if (call->kind == RECORDED_PREPARE) {
      ck_assert_int_eq(call->id, prepared++);
      continue;
    }
    ck_assert_int_eq(prepared, INSTANCES);
    ck_assert_int_eq(call->id, launched % INSTANCES);
    ck_assert_int_eq(call->launch.step.period, FIRST + launched++ / INSTANCES);
    ck_assert(call->launch.step.learning_rate == 0.5 && call->launch.seed == t.options.seed && !call->launch.inference);
  }
  ck_assert(launched == PERIODS * INSTANCES);
  close_two(&t);
  free_two(&t);
}
END_TEST

static planc_status run_wrong(two *t, recording_options wrong) {
  ok(open_two(t, &wrong));
  planc_status status = planrt_run(t->session, PLANRT_VERIFY_PERIODS + 6);
  close_two(t);
  return status;
}

/* What is wrong in one period is found in that one: digests and results are those of the periods they are kept for. */
START_TEST(wrong_periods_are_named) {
  static const int64_t periods[] = {0, 5, PLANRT_VERIFY_PERIODS - 1, PLANRT_VERIFY_PERIODS + 2};
  two t;
  make_two(&t, _i);
  for (int p = 0; p < 4; p++) {
    char digest[64], result[64];
    snprintf(digest, sizeof digest, "iteration %d: what op f puts out differs", (int)periods[p] * 2);
    snprintf(result, sizeof result, "iteration %d, round 0, l differs", (int)periods[p] * 2);
    assert_fails(run_wrong(&t, (recording_options){.wrong_digests = periods[p] + 1}), PLANC_INVALID_PLAN, digest);
    assert_fails(run_wrong(&t, (recording_options){.wrong_results = periods[p] + 1}), PLANC_INVALID_PLAN, result);
  }
  ok(run_wrong(&t, (recording_options){0}));
  free_two(&t);
}
END_TEST

/* --- Refusals and failures ---------------------------------------------------------------------------------------- */

START_TEST(more_taken_than_reserved) {
  enum { RESERVED = 1000 };
  two t;
  make_two(&t, _i);
  device_of(t.plan)->reserved_bytes = RESERVED;
  device_of(t.plan)->budget_bytes += RESERVED;
  t.plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] += RESERVED;
  ok(open_two(&t, &(recording_options){.taken_bytes = RESERVED}));
  ck_assert_int_eq(planrt_taken(t.session), RESERVED);
  close_two(&t);
  assert_fails(open_two(&t, &(recording_options){.taken_bytes = RESERVED + 1}), PLANC_DEVICE,
               "1001 bytes of the device are taken beside the arena, and the plan reserves 1000");
  count_closes(1);
  close_two(&t);
  free_two(&t);
}
END_TEST

/* What others had of the device before the session is not the plan's. */
START_TEST(what_others_take_does_not_count) {
  enum { RESERVED = 1000, DEVICE = 100000, CONTEXT = 500, OTHERS = 700 };
  recording_options how = {.device_bytes = DEVICE, .before_bytes = CONTEXT + OTHERS, .context_bytes = CONTEXT};
  two t;
  make_two(&t, _i);
  device_of(t.plan)->reserved_bytes = RESERVED;
  device_of(t.plan)->budget_bytes += RESERVED;
  t.plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] += RESERVED;
  how.taken_bytes = RESERVED + OTHERS;
  ok(open_two(&t, &how));
  ck_assert_int_eq(planrt_taken(t.session), RESERVED);
  close_two(&t);
  how.taken_bytes++;
  assert_fails(open_two(&t, &how), PLANC_DEVICE, "1001 bytes of the device are taken beside the arena");
  close_two(&t);
  how.context_bytes = 0; /* then even the context may be others' */
  how.taken_bytes = RESERVED + OTHERS + CONTEXT;
  ok(open_two(&t, &how));
  close_two(&t);
  free_two(&t);
}
END_TEST

/* A device that cannot be opened says what budget it has memory for, if that is why. */
START_TEST(too_little_memory_is_told_as_a_budget) {
  enum { MIB = 1 << 20, RESERVED = 3 * MIB, CONTEXT = MIB };
  two t;
  make_two(&t, 0);
  device_of(t.plan)->reserved_bytes = RESERVED;
  device_of(t.plan)->budget_bytes += RESERVED;
  t.plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] += RESERVED;
  recording_options how = {
      .device_bytes = 6 * MIB, .before_bytes = CONTEXT + 3 * MIB - 100, .context_bytes = CONTEXT, .fail_at = 1};
  const struct {
    int64_t device_bytes;
    const char *said;
  } cases[] = {
      {how.device_bytes,
       "3.00 MiB of a device with 6.00 MiB, 3.00 MiB of them taken already: plan for a budget of 3M: "},
      {how.device_bytes - 200, "3.00 MiB of them taken already: no budget will do: "},
      {100 * MIB, ""},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    how.device_bytes = cases[k].device_bytes;
    planc_status status = open_two(&t, &how);
    ck_assert_msg(cases[k].said[0] || !strstr(planc_status_message(status), "budget"), "%s",
                  planc_status_message(status));
    assert_fails(status, PLANC_DEVICE, cases[k].said);
    close_two(&t);
  }
  free_two(&t);
}
END_TEST

static void replay_is_refused(two *t, const char *why) {
  assert_fails(open_two(t, NULL), PLANC_USAGE, why);
  count_closes(1);
  for (int64_t i = 0; i < recording_length(); i++) ck_assert(recording_at(i)->kind != RECORDED_LAUNCH);
  close_two(t);
}

START_TEST(no_replay) {
  planrt_backend without = recording_backend;
  two t;
  make_two(&t, 0);
  t.options.replay = true;
  replay_is_refused(&t, "streams beside each other");
  t.options.concurrent = true;
  t.options.timeline = 1;
  replay_is_refused(&t, "no timeline");
  t.options.timeline = 0;
  without.capture = NULL;
  t.options.backend = &without;
  replay_is_refused(&t, "backend recording cannot capture and replay");
  free_two(&t);
}
END_TEST

/* Opens and runs; a run that has failed is run again, and is then as the plan says. */
static planc_status run_again(two *t, const recording_options *how, int64_t *out_calls) {
  planc_status status = open_two(t, how);
  if (!status) status = planrt_run(t->session, 2);
  *out_calls = recording_fallible();
  if (status && t->session) {
    expected_skip(t->expected);
    expected_run(t->expected, planrt_get_step(t->session), 2, 2);
    ok_in(planrt_run(t->session, 2), planc_status_message(status));
    expected_compare(t->expected, planc_status_message(status));
  }
  close_two(t);
  return status;
}

/* Every call in turn fails, at once or, on streams, when its work runs. */
START_TEST(every_call_may_fail) {
  int64_t calls, unused;
  two t;
  make_two(&t, _i / 2);
  ok(run_again(&t, NULL, &calls));
  for (int64_t k = 1; k <= calls; k++) {
    char message[32];
    snprintf(message, sizeof message, "call %d, ", (int)k);
    assert_fails(run_again(&t, &(recording_options){.fail_at = k, .fail_late = _i % 2}, &unused), PLANC_DEVICE,
                 message);
  }
  free_two(&t);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("recording");
  TCase *c = tcase_create("recording");
  tcase_set_timeout(c, 300);
  tcase_add_unchecked_fixture(c, read_profile, free_profile);
  tcase_add_loop_test(c, plans_of_policies, 0, 24);
  tcase_add_test(c, random_schedules);
  tcase_add_test(c, rounds_and_iterations);
  tcase_add_test(c, several_jobs);
  tcase_add_loop_test(c, long_runs, 0, WAYS);
  tcase_add_loop_test(c, stopped_runs, 0, WAYS);
  tcase_add_test(c, spans_of_the_last_periods);
  for (int w = 0; w < WAYS; w++) {
    if (!ways[w].verify) continue;
    tcase_add_loop_test(c, reference_runs_the_trace, w, w + 1);
    tcase_add_loop_test(c, wrong_periods_are_named, w, w + 1);
  }
  tcase_add_loop_test(c, more_taken_than_reserved, 0, WAYS);
  tcase_add_loop_test(c, what_others_take_does_not_count, 0, WAYS);
  tcase_add_test(c, too_little_memory_is_told_as_a_budget);
  tcase_add_test(c, no_replay);
  tcase_add_loop_test(c, every_call_may_fail, 0, 2 * WAYS);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
