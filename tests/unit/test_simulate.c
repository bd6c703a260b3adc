/* The simulator on hand-made plans whose times are worked out by hand: overlap, backlog, waits across bodies, duplex
 * and slow-down, launches. Plans made here need not be valid: the simulator only follows streams and events. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cost/routes.h"
#include "plan/derived.h"
#include "planc/metrics.h"
#include "planc/simulate.h"
#include "planner/analysis/plan_streams.h"
#include "runtime/random.h"
#include "tests/support/plan_tables.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"

static const char graph_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "loss: z\n"
    "tensors:\n"
    "  x: input f32[N,1225]\n" /* 4900 bytes at batch 1 */
    "  y: f32[N,1]\n"
    "  z: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x], out: [y], traffic: 0}\n"
    "  - {op: b, type: t.b, in: [y], out: [z], traffic: 0}\n";

static planc_graph *graph;
static const int64_t one[] = {1};

static void set_up(void) {
  ck_assert(!planc_graph_parse(graph_text, sizeof graph_text - 1, "chain", &graph));
}
static void tear_down(void) {
  planc_graph_free(graph);
}

typedef struct device {
  int64_t launch_ns, slowdown_ppm, duplex_ppm;
  int32_t in_flight;
} device;

/* What a visitor is told, in its order. */
typedef struct told {
  int32_t n;
  uint64_t hash;
} told;

static void tell(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  told *t = user;
  const uint64_t values[] = {(uint64_t)(instr - plan->body.instrs), (uint64_t)start_ns, (uint64_t)end_ns};
  for (int i = 0; i < 3; i++) t->hash = (t->hash ^ values[i]) * UINT64_C(0x9e3779b97f4a7c15);
  t->n++;
}

/* Where only what is steady is asked for, all is told but what an epilogue takes. */
static void assert_steady_is_the_same(const planc_plan *plan, planc_simulate_options options) {
  planc_simulation whole, steady;
  told of[4] = {{0}};
  options.visitor = tell;
  for (int i = 0; i < 2; i++) {
    options.launch_visitor = NULL;
    options.steady_only = i > 0;
    options.user = &of[i];
    ok(planc_simulate(plan, &options, i > 0 ? &steady : &whole));
    options.launch_visitor = tell;
    options.user = &of[2 + i];
    ok(planc_simulate(plan, &options, i > 0 ? &steady : &whole));
  }
  ck_assert_int_gt(of[0].n, 0);
  ck_assert(of[0].n == of[1].n && of[0].hash == of[1].hash);
  ck_assert(of[2].n == of[3].n && of[2].hash == of[3].hash);
  ck_assert_int_eq(steady.prologue_ns, whole.prologue_ns);
  ck_assert_int_eq(steady.first_period_ns, whole.first_period_ns);
  ck_assert_int_eq(steady.period_ns, whole.period_ns);
  ck_assert_int_eq(steady.averaged, whole.averaged);
  ck_assert_int_eq(steady.slowdown_ns, whole.slowdown_ns);
  ck_assert_int_eq(steady.misses, whole.misses);
  ck_assert_mem_eq(steady.stall_ns, whole.stall_ns, sizeof whole.stall_ns);
  ck_assert_mem_eq(steady.copy_ns, whole.copy_ns, sizeof whole.copy_ns);
}

/* Simulates the script of `n_jobs` jobs; their execs take `a_ns` and `b_ns`. A copy of x takes 100 + 4900 ns. */
static planc_simulation simulate_as(planc_simulate_options options, int32_t n_jobs, const char *script, device d,
                                    int64_t a_ns, int64_t b_ns) {
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  const planc_job jobs[] = {job, job};
  planc_plan *plan;
  planc_status status = script_make(script, jobs, n_jobs, 1 << 20, 1 << 20, &plan);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  plan->device.launch_ns = d.launch_ns;
  plan->device.slowdown_ppm = d.slowdown_ppm;
  plan->device.duplex_ppm = d.duplex_ppm ? d.duplex_ppm : 1000000;
  plan->device.in_flight = d.in_flight ? d.in_flight : 1000;
  const planc_link link = {.bytes_per_second = 1000000000, .latency_ns = 100};
  tables_links(plan, link, link);
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec) {
      instr->time_ns = instr->id % 2 == 0 ? a_ns : b_ns;
      instr->busy_ppm = 1000000;
    }
  }
  planc_simulation s;
  status = planc_simulate(plan, &options, &s);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  assert_steady_is_the_same(plan, options);
  planc_plan_free(plan);
  return s;
}

static planc_simulation simulate_jobs(int32_t n_jobs, const char *script, device d, int64_t a_ns, int64_t b_ns) {
  return simulate_as((planc_simulate_options){0}, n_jobs, script, d, a_ns, b_ns);
}
static planc_simulation simulate(const char *script, device d, int64_t a_ns, int64_t b_ns) {
  return simulate_as((planc_simulate_options){0}, 1, script, d, a_ns, b_ns);
}
static planc_simulation simulate_captured(const char *script, device d, int64_t a_ns, int64_t b_ns) {
  return simulate_as((planc_simulate_options){.captured = true}, 1, script, d, a_ns, b_ns);
}

#define OPERANDS "body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 z 9216\n"
#define CLOSE "release 0\nrelease 1\nrelease 2\n"

START_TEST(ops_add_up) {
  planc_simulation s = simulate(OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE, (device){0}, 1000, 2000);
  ck_assert_int_eq(s.period_ns, 3000);
  ck_assert_int_eq(s.compute_ns, 3000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D] + s.stall_ns[PLANC_STALL_D2H] + s.stall_ns[PLANC_STALL_LAUNCH], 0);
}
END_TEST

/* The copy of the next body runs beside this one's ops: the slower of the two engines sets the pace. */
START_TEST(copies_overlap_and_back_up) {
  static const char script[] =
      OPERANDS "copy 0 user on 1\nrecord 0 on 1\nexec a use 0 1\nwait 0 on 0\nexec b use 1 2\n" CLOSE;
  planc_simulation s = simulate(script, (device){0}, 1000, 2000);
  ck_assert_int_eq(s.period_ns, 5000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], 2000);
  ck_assert_int_eq(s.copied_bytes[PLANC_ROUTE_H2D], 4900);
  ck_assert_int_eq(s.copy_ns[PLANC_ROUTE_H2D], 5000);
  ck_assert_int_eq(s.misses, 1);
  s = simulate(script, (device){0}, 6000, 2000);
  ck_assert_int_eq(s.period_ns, 8000);
  ck_assert_int_eq(s.misses, 0);
}
END_TEST

/* A copy that has to wait for the last op of the body before cannot run ahead. */
START_TEST(lag_one_holds_a_copy_back) {
  planc_simulation s =
      simulate("prologue\nrecord 1 on 0\n" OPERANDS
               "wait 1 lag 1 on 1\ncopy 0 user on 1\nrecord 0 on 1\nexec a use 0 1\nwait 0 on 0\nexec b use 1 2\n"
               "record 1 on 0\n" CLOSE,
               (device){0}, 1000, 2000);
  ck_assert_int_eq(s.period_ns, 5000 + 2000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], 4000);
}
END_TEST

/* While a copy runs an op takes a tenth longer: all of `a` (10,000 ns of work) and none of `b`. */
START_TEST(copies_slow_ops) {
  static const char script[] =
      "prologue\nrecord 1 on 0\n" OPERANDS
      "wait 1 lag 1 on 1\ncopy 0 user on 1\nrecord 0 on 1\nexec a use 0 1\nwait 0 on 0\nexec b use 1 2\n"
      "record 1 on 0\n" CLOSE;
  device d = {.slowdown_ppm = 100000};
  /* 5,000 ns beside the copy do the work of 5,000 / 1.1 ns; the rest runs at full speed. */
  planc_simulation s = simulate(script, d, 10000, 2000);
  ck_assert_int_eq(s.period_ns, 5000 + (10000 - 4545) + 2000);
  ck_assert_int_le(llabs(s.slowdown_ns - 455), 1);
}
END_TEST

/* Launches until all of time is over. */
START_TEST(what_takes_too_long_is_refused) {
  enum { OPS = 600 };
  static const char op[] = "exec a use 0 1\n";
  static char script[sizeof OPERANDS + OPS * sizeof op + sizeof CLOSE] = OPERANDS;
  for (int i = 0; i < OPS; i++) strcat(script, op);
  strcat(script, CLOSE);
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  planc_simulation s;
  ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
  plan->device.in_flight = 1;
  plan->device.launch_ns = INT64_C(1) << 53;
  assert_fails(planc_simulate(plan, NULL, &s), PLANC_BAD_INPUT, "it takes too long to simulate");
  plan->device.launch_ns = 1000;
  ok(planc_simulate(plan, NULL, &s));
  ck_assert_int_eq(s.period_ns, OPS * (1000 + 1000)); /* each op is awaited */
  planc_plan_free(plan);
}
END_TEST

/* Two copies of 5,000 ns that start together at half speed end together. */
START_TEST(duplex_slows_copies) {
  static const char script[] =
      "prologue\nrecord 2 on 0\n" OPERANDS
      "wait 2 lag 1 on 1\nwait 2 lag 1 on 2\ncopy 0 user on 1\nrecord 0 on 1\nacquire 3 x 0 host\ncopy 3 0 on "
      "2\nrecord 1 on 2\n"
      "wait 0 on 0\nwait 1 on 0\nexec a use 0 1\nexec b use 1 2\nrecord 2 on 0\nrelease 3\n" CLOSE;
  ck_assert_int_eq(simulate(script, (device){.duplex_ppm = 500000}, 1000, 2000).period_ns, 10000 + 3000);
  ck_assert_int_eq(simulate(script, (device){0}, 1000, 2000).period_ns, 5000 + 3000);
}
END_TEST

/* The copy of x takes 5,000 ns and one op waits for it; where the other copy, out, ends later it is that one's doing.
 */
START_TEST(a_copy_that_is_awaited_last_is_missed) {
  static const char in_last[] =
      "prologue\nrecord 2 on 0\n" OPERANDS
      "wait 2 lag 1 on 1\nwait 2 lag 1 on 2\ncopy 0 user on 1\nrecord 0 on 1\nacquire 3 x 0 host\ncopy 3 0 on 2 bytes "
      "900\n"
      "record 1 on 2\nwait 0 on 0\nwait 1 on 0\nexec a use 0 1\nexec b use 1 2\nrecord 2 on 0\nrelease 3\n" CLOSE;
  static const char out_last[] =
      "prologue\nrecord 2 on 0\n" OPERANDS
      "wait 2 lag 1 on 1\nwait 2 lag 1 on 2\ncopy 0 user on 1 bytes 900\nrecord 0 on 1\nacquire 3 x 0 host\ncopy 3 0 "
      "on 2\n"
      "record 1 on 2\nwait 0 on 0\nwait 1 on 0\nexec a use 0 1\nexec b use 1 2\nrecord 2 on 0\nrelease 3\n" CLOSE;
  ck_assert_int_eq(simulate(in_last, (device){0}, 1000, 2000).misses, 1);
  planc_simulation s = simulate(out_last, (device){0}, 1000, 2000);
  ck_assert_int_eq(s.misses, 0);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], 1000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_D2H], 4000);
}
END_TEST

START_TEST(launches_bind) {
  static const char script[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  planc_simulation s = simulate(script, (device){.launch_ns = 500}, 100, 200);
  ck_assert_int_eq(s.period_ns, 1000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_LAUNCH], 700);
  /* With one op in flight nothing is launched ahead: each op costs its launch and its time. */
  ck_assert_int_eq(simulate(script, (device){.launch_ns = 500, .in_flight = 1}, 1000, 2000).period_ns, 4000);
}
END_TEST

/* A captured body begins when the one before has ended: no copy runs ahead, and waits for that body are over. */
START_TEST(captured_bodies_do_not_overlap) {
  static const char ahead[] =
      OPERANDS "copy 0 user on 1\nrecord 0 on 1\nexec a use 0 1\nwait 0 on 0\nexec b use 1 2\n" CLOSE;
  static const char behind[] =
      "prologue\nrecord 1 on 0\n" OPERANDS
      "wait 1 lag 1 on 1\ncopy 0 user on 1\nrecord 0 on 1\nexec a use 0 1\nwait 0 on 0\nexec b use 1 2\n"
      "record 1 on 0\n" CLOSE;
  ck_assert_int_eq(simulate(ahead, (device){0}, 1000, 2000).period_ns, 5000);
  ck_assert_int_eq(simulate_captured(ahead, (device){0}, 1000, 2000).period_ns, 5000 + 2000);
  ck_assert_int_eq(simulate_captured(behind, (device){0}, 1000, 2000).period_ns, 5000 + 2000);
  ck_assert_int_eq(simulate_captured(ahead, (device){.launch_ns = 500}, 1000, 2000).period_ns, 5000 + 2000);
}
END_TEST

/* It costs one launch, whatever is in it, and nothing of it waits for room in a queue. */
START_TEST(a_captured_body_is_launched_once) {
  static const char script[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  ck_assert_int_eq(simulate(script, (device){.launch_ns = 500}, 100, 200).period_ns, 1000);
  ck_assert_int_eq(simulate_captured(script, (device){.launch_ns = 500}, 100, 200).period_ns, 500);
  ck_assert_int_eq(simulate_captured(script, (device){.launch_ns = 500, .in_flight = 1}, 1000, 2000).period_ns, 3000);
}
END_TEST

/* The dispatchers of two jobs launch side by side, each only what is its job's; the ops share the GPU at half speed. */
START_TEST(every_job_has_its_own_host) {
  static const char script[] =
      "body\nacquire 0 x#0 0\nacquire 1 y#0 8192\nacquire 2 z#0 9216\nacquire 3 x#1 16384\nacquire 4 y#1 24576\n"
      "acquire 5 z#1 25600\nexec a#0 use 0 1\nexec b#0 use 1 2\nexec a#1 on 3 use 3 4\nexec b#1 on 3 use 4 5\n" CLOSE
      "release 3\nrelease 4\nrelease 5\n";
  planc_simulation s = simulate_jobs(2, script, (device){.launch_ns = 500}, 100, 200);
  ck_assert_int_eq(s.period_ns, 1000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_LAUNCH], 1000 - 2 * (100 + 200));
  ck_assert_int_eq(s.compute_ns, 600);
}
END_TEST

/* One dispatcher launches one op after the other, and what is in flight is of both jobs. */
START_TEST(one_dispatcher_may_serve_all_jobs) {
  static const char script[] =
      "body\nacquire 0 x#0 0\nacquire 1 y#0 8192\nacquire 2 z#0 9216\nacquire 3 x#1 16384\nacquire 4 y#1 24576\n"
      "acquire 5 z#1 25600\nexec a#0 use 0 1\nexec b#0 use 1 2\nexec a#1 on 3 use 3 4\nexec b#1 on 3 use 4 5\n" CLOSE
      "release 3\nrelease 4\nrelease 5\n";
  static const planc_simulate_options shared = {.one_dispatcher = true}, few = {.one_dispatcher = true, .in_flight = 1};
  ck_assert_int_eq(simulate_as(shared, 2, script, (device){.launch_ns = 500}, 100, 200).period_ns, 2000);
  ck_assert_int_eq(simulate_as(shared, 2, script, (device){.launch_ns = 10}, 100, 200).period_ns, 600);
  ck_assert_int_eq(simulate_as(few, 2, script, (device){.launch_ns = 500}, 100, 200).period_ns, 2600);
  static const char alone[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  ck_assert_int_eq(simulate_as(shared, 1, alone, (device){.launch_ns = 500}, 100, 200).period_ns, 1000);
}
END_TEST

/* Sequential scheduling: what is launched waits for nothing, and all launches are waited for. */
START_TEST(launches_and_ops_may_take_turns) {
  static const planc_simulate_options sequential = {.in_flight = 1}, tracked = {.in_flight = 1, .track_ns = 70};
  static const char script[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  for (int64_t launch_ns = 10; launch_ns < 1000; launch_ns *= 3) {
    device d = {.launch_ns = launch_ns};
    ck_assert_int_eq(simulate_as(sequential, 1, script, d, 100, 200).period_ns, 300 + 2 * launch_ns);
    ck_assert_int_eq(simulate_as(tracked, 1, script, d, 100, 200).period_ns, 300 + 2 * (launch_ns + 70));
  }
}
END_TEST

/* The first launch of a body waits for all of the one before it. */
START_TEST(bodies_may_be_apart) {
  static const planc_simulate_options apart = {.apart = true};
  static const char script[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  ck_assert_int_eq(simulate_as(apart, 1, script, (device){.launch_ns = 500}, 100, 200).period_ns, 2 * 500 + 200);
  ck_assert_int_eq(simulate_as(apart, 1, script, (device){.launch_ns = 10}, 100, 200).period_ns, 10 + 300);
}
END_TEST

/* x has 4900 bytes, y and z have 4 each; all are acquired before the first op. */
START_TEST(hosts_may_track_memory) {
  static const char script[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  static const struct {
    int64_t every, period_ns;
  } cases[] = {{0, 2 * 800}, {1, 2 * 500 + 300}, {4908, 2 * 500 + 300}, {4909, 2 * 500}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    planc_simulate_options options = {.track_ns = 300, .track_bytes = cases[k].every};
    ck_assert_int_eq(simulate_as(options, 1, script, (device){.launch_ns = 500}, 100, 200).period_ns,
                     cases[k].period_ns);
  }
}
END_TEST

/* What is replayed as a whole is launched at once. */
START_TEST(captured_bodies_have_nothing_to_track) {
  static const char script[] = OPERANDS "exec a use 0 1\nexec b use 1 2\n" CLOSE;
  static const planc_simulate_options wrong[] = {{.captured = true, .track_ns = 1},
                                                 {.captured = true, .one_dispatcher = true},
                                                 {.captured = true, .in_flight = 3},
                                                 {.captured = true, .apart = true}};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  planc_simulation s;
  ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
    assert_fails(planc_simulate(plan, &wrong[k], &s), PLANC_USAGE, "replayed as a whole");
  planc_plan_free(plan);
}
END_TEST

/* Two jobs of which each would fill the GPU: a period takes what both have to do together, however unequal that is, and
 * whichever of them comes first. */
START_TEST(unequal_jobs_stay_together) {
  static const char script[] =
      "body\nacquire 0 x#0 0\nacquire 1 y#0 8192\nacquire 2 z#0 9216\nacquire 3 x#1 16384\nacquire 4 y#1 24576\n"
      "acquire 5 z#1 25600\nexec a#0 use 0 1\nexec b#0 use 1 2\nexec a#1 on 3 use 3 4\nexec b#1 on 3 use 4 5\n" CLOSE
      "release 3\nrelease 4\nrelease 5\n";
  static const int64_t pairs[][2] = {{1000, 700}, {1000, 100}, {1000, 1}, {1000, 950}, {300, 1000}, {1000, 1000}};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  const planc_job jobs[] = {job, job};
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
    planc_plan *plan;
    planc_simulation s;
    ok(script_make(script, jobs, 2, 1 << 20, 1 << 20, &plan));
    plan->device.duplex_ppm = 1000000;
    plan->device.in_flight = 1000;
    for (int32_t i = 0, n = 0; i < plan->body.n; i++) {
      planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
      if (instr->op != PLANC_INSTR_exec) continue;
      instr->time_ns = pairs[k][n++ / 2];
      instr->busy_ppm = 1000000;
    }
    ok(planc_simulate(plan, NULL, &s));
    ck_assert_int_eq(s.period_ns, 2 * (pairs[k][0] + pairs[k][1]));
    planc_plan_free(plan);
  }
}
END_TEST

/* Two jobs that each have a GPU as if to themselves, and of which one is a little slower: the other falls ahead of it
 * in every period, for longer than is simulated. Where both are as fast, periods repeat at once. */
START_TEST(what_never_repeats_is_a_mean) {
  static const char script[] =
      "body\nacquire 0 x#0 0\nacquire 1 y#0 8192\nacquire 2 z#0 9216\nacquire 3 x#1 16384\nacquire 4 y#1 24576\n"
      "acquire 5 z#1 25600\nexec a#0 use 0 1\nexec b#0 use 1 2\nexec a#1 on 3 use 3 4\nexec b#1 on 3 use 4 5\n" CLOSE
      "release 3\nrelease 4\nrelease 5\n";
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  const planc_job jobs[] = {job, job};
  for (int64_t slower_ns = 0; slower_ns <= 10; slower_ns += 10) {
    planc_plan *plan;
    planc_simulation s;
    ok(script_make(script, jobs, 2, 1 << 20, 1 << 20, &plan));
    plan->device.duplex_ppm = 1000000;
    plan->device.in_flight = 1000;
    for (int32_t i = 0, n = 0; i < plan->body.n; i++) {
      planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
      if (instr->op != PLANC_INSTR_exec) continue;
      instr->time_ns = 100000 + (n++ == 0 ? slower_ns : 0);
      instr->busy_ppm = 400000;
    }
    ok(planc_simulate(plan, NULL, &s));
    ck_assert_int_eq(s.averaged > 0, slower_ns > 0);
    ck_assert_int_eq(s.period_ns, 200000 + slower_ns);
    planc_plan_free(plan);
  }
}
END_TEST

/* In a period x gets two of the three chunks of the last workspace (3 unmapped, 2 mapped), and the workspace gets them
 * back with the third (1 mapped). y and z share a chunk, which is mapped in the first period only. The dispatcher waits
 * for the execs before each of these. */
START_TEST(chunks_are_mapped_in_the_step) {
  static const char script[] =
      "body\nacquire 0 x 0\nacquire 1 y 8192\nexec a use 0 1\nrelease 0\nacquire 2 z 12288\n"
      "exec b ws 16384 12288 use 1 2\nrelease 1\nrelease 2\n";
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  ok(script_make(script, &job, 1, 1 << 20, 0, &plan));
  plan->device.duplex_ppm = 1000000;
  plan->device.in_flight = 1000;
  for (int32_t i = 0; i < plan->body.n; i++) ((planc_instr *)&plan->body.instrs[i])->time_ns = 500;
  planc_simulation s;
  assert_fails(planc_simulate(plan, &(planc_simulate_options){.maps_in_step = true, .chunk_ns = 1000}, &s), PLANC_USAGE,
               "no virtual memory");
  planc_mapping mappings[] = {{0, 7}};
  tables_map(plan, 4096, mappings, 1);
  ok(planc_simulate(plan, &(planc_simulate_options){.maps_in_step = true, .chunk_ns = 0}, &s));
  int64_t chunks = s.mapped_chunks;
  ck_assert_int_eq(s.period_ns, 1000);
  ok(planc_simulate(plan, &(planc_simulate_options){.maps_in_step = true, .chunk_ns = 1000}, &s));
  ck_assert_int_eq(s.mapped_chunks, chunks);
  ck_assert_int_eq(s.period_ns, 1000 + chunks * 1000);
  ck_assert_int_eq(chunks, 6);
  plan->memories[0].alignment = 0;
  assert_fails(planc_simulate(plan, &(planc_simulate_options){.maps_in_step = true, .chunk_ns = 1000}, &s),
               PLANC_INVALID_PLAN, "memory 0: an alignment of 0");
  planc_plan_free(plan);
}
END_TEST

/* What a copy is called follows from its memories: not from the engine, nor from the order of that one's links. */
START_TEST(an_engine_may_copy_both_ways) {
  static const char script[] = OPERANDS
      "acquire 3 x 0 host\nexec a use 0 1\nrecord 0 on 0\nwait 0 on 2\ncopy 3 0 on 2\nrecord 1 on 2\n"
      "wait 1 on 0\nexec b use 1 2\nrelease 3\n" CLOSE;
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  const planc_link link = {.bytes_per_second = 1000000000, .latency_ns = 100};
  for (int turned = 0; turned < 2; turned++) {
    planc_plan *plan;
    planc_simulation s;
    ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
    plan->device.in_flight = 1000;
    tables_links(plan, link, link);
    for (int32_t l = 0; l < plan->n_links; l++) {
      planc_plan_link *it = &plan->links[l];
      int32_t from = it->from;
      it->engine = 0;
      if (!turned) continue;
      it->from = it->to;
      it->to = from;
    }
    ((planc_stream *)plan->streams)[2].on = 0;
    ok(planc_simulate(plan, NULL, &s));
    ck_assert_int_eq(s.stall_ns[PLANC_STALL_D2H], 5000);
    ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], 0);
    ck_assert_int_eq(s.copy_ns[PLANC_ROUTE_D2H], 5000);
    ck_assert_int_eq(s.copy_ns[PLANC_ROUTE_H2D], 0);
    ck_assert_int_eq(s.misses, 0);
    planc_plan_free(plan);
  }
}
END_TEST

/* x leaves the GPU, goes on to storage, and comes back the same way before b runs. */
START_TEST(storage_is_waited_for_under_its_own_name) {
  static const char script[] = "storage 65536\n" OPERANDS
                               "acquire 3 x 0 host\nacquire 4 x 0 storage\nacquire 5 x 8192 host\nacquire 6 x 16384\n"
                               "exec a use 0 1\nrecord 0 on 0\nwait 0 on 2\ncopy 3 0 on 2\nrecord 1 on 2\n"
                               "wait 1 on 3\ncopy 4 3 on 3\nrecord 2 on 3\nwait 2 on 4\ncopy 5 4 on 4\nrecord 3 on 4\n"
                               "wait 3 on 1\ncopy 6 5 on 1\nrecord 4 on 1\nwait 4 on 0\nexec b use 1 2\n"
                               "release 3\nrelease 4\nrelease 5\nrelease 6\n" CLOSE;
  planc_simulation s = simulate(script, (device){0}, 1000, 1000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_D2H], 5000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_STORE], 4900);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_LOAD], 4900);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], 5000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_LAUNCH], 0);
  ck_assert_int_eq(s.period_ns, 2000 + 2 * 5000 + 2 * 4900);
  ck_assert(s.copy_ns[PLANC_ROUTE_D2H] == 5000 && s.copy_ns[PLANC_ROUTE_H2D] == 5000 &&
            s.copy_ns[PLANC_ROUTE_STORE] == 4900 && s.copy_ns[PLANC_ROUTE_LOAD] == 4900);
  ck_assert(s.copied_bytes[PLANC_ROUTE_D2H] == 4900 && s.copied_bytes[PLANC_ROUTE_H2D] == 4900 &&
            s.copied_bytes[PLANC_ROUTE_STORE] == 4900 && s.copied_bytes[PLANC_ROUTE_LOAD] == 4900);
  ck_assert_int_eq(s.misses, 1);
}
END_TEST

/* Where storage is linked to the GPU, an op for which a load comes late is missed as for any other copy to the GPU. A
 * copy that ends elsewhere comes late for no op, whatever engine it is on. */
START_TEST(an_op_is_missed_by_what_comes_to_its_gpu) {
  static const char loaded[] = "storage 65536\nprologue\nrecord 1 on 0\n" OPERANDS
                               "acquire 3 x 0 storage\nwait 1 lag 1 on 4\ncopy 0 3 on 4\nrecord 0 on 4\nwait 0 on 0\n"
                               "exec a use 0 1\nexec b use 1 2\nrecord 1 on 0\nrelease 3\n" CLOSE;
  static const char passing[] = "prologue\nrecord 1 on 0\n" OPERANDS
                                "acquire 3 x 0 host\nwait 1 lag 1 on 1\ncopy 3 user on 1\nrecord 0 on 1\nwait 0 on 0\n"
                                "exec a use 0 1\nexec b use 1 2\nrecord 1 on 0\nrelease 3\n" CLOSE;
  const planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  planc_simulation s;
  ok(script_make(loaded, &job, 1, 1 << 20, 1 << 20, &plan));
  plan->device.in_flight = 1000;
  for (int32_t l = 0; l < plan->n_links; l++) {
    planc_plan_link *it = &plan->links[l];
    if (plan->memories[it->from].kind == PLANC_MEMORY_STORAGE && plan->memories[it->to].kind == PLANC_MEMORY_HOST)
      it->to = 0;
  }
  ok(planc_simulate(plan, NULL, &s));
  ck_assert_int_gt(s.stall_ns[PLANC_STALL_LOAD], 0);
  ck_assert_int_eq(s.misses, 1);
  planc_plan_free(plan);
  s = simulate(passing, (device){0}, 1000, 1000);
  ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], 5000);
  ck_assert_int_eq(s.misses, 0);
}
END_TEST

/* What is stored and loaded counts for all replicas, and what each reads of its peers for as many as they are. */
START_TEST(storage_is_counted_with_peers) {
  static const char script[] = "storage 65536\n" OPERANDS
                               "acquire 3 x 0 host\nacquire 4 x 0 storage\nacquire 5 x 8192 host\nexec a use 0 1\n"
                               "copy 3 0 on 2\ncopy 4 3 on 3\ncopy 5 4 on 4\nexec b use 1 2\n"
                               "release 3\nrelease 4\nrelease 5\n" CLOSE;
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1, .replicas = 3};
  planc_plan *plan;
  ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_copy && instr->id == 5) instr->peers = true;
  }
  ok(pl_plan_derive(plan));
  planc_job_predictions total = planc_outcome_of(plan).total;
  ck_assert_int_eq(total.copied_bytes[PLANC_ROUTE_D2H], 3 * 4900);
  ck_assert_int_eq(total.copied_bytes[PLANC_ROUTE_STORE], 3 * 4900);
  ck_assert_int_eq(total.copied_bytes[PLANC_ROUTE_LOAD], 3 * 2 * 4900);
  planc_plan_free(plan);
}
END_TEST

START_TEST(a_route_follows_from_memories) {
  enum { H2D = PLANC_ROUTE_H2D, D2H = PLANC_ROUTE_D2H, STORE = PLANC_ROUTE_STORE, LOAD = PLANC_ROUTE_LOAD };
  static const planc_memory_kind kinds[] = {PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST, PLANC_MEMORY_STORAGE,
                                            PLANC_MEMORY_USER};
  static const int routes[4][4] = {/* to device, host, storage, user */
                                   {H2D, D2H, STORE, D2H},
                                   {H2D, H2D, STORE, D2H},
                                   {LOAD, LOAD, STORE, LOAD},
                                   {H2D, H2D, STORE, D2H}};
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      ck_assert_int_eq(pl_route_between(kinds[from], kinds[to]), (planc_route)routes[from][to]);
}
END_TEST

/* --- Slow dispatchers --------------------------------------------------------------------------------------------- */

enum { OPS = 6, AHEAD = 4, LONG_RUN = 20000, LAST = 5000 };

/* A dispatcher that launches OPS ops a body from time 0 on, and one stream that runs them when a prologue has ended;
 * bodies are launched at most AHEAD behind the last one that has ended. */
typedef struct queue {
  int64_t launch_ns, prologue_ns, times[OPS], compute_ns; /* the last: the sum of times */
  int32_t in_flight;
} queue;

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* The mean of the last bodies of a run that is longer than any lead lasts. */
static int64_t run_long(const queue *q) {
  static int64_t ends[LONG_RUN * OPS];
  int64_t dispatcher = 0, stream = q->prologue_ns;
  for (int32_t i = 0; i < LONG_RUN * OPS; i++) {
    int32_t body = i / OPS;
    if (body == AHEAD) dispatcher = later(dispatcher, q->prologue_ns);
    if (body > AHEAD) dispatcher = later(dispatcher, ends[(body - AHEAD) * OPS - 1]);
    if (i >= q->in_flight) dispatcher = later(dispatcher, ends[i - q->in_flight]);
    dispatcher += q->launch_ns;
    ends[i] = stream = later(stream, dispatcher) + q->times[i % OPS];
  }
  return (ends[LONG_RUN * OPS - 1] - ends[(LONG_RUN - LAST) * OPS - 1]) / LAST;
}

typedef struct visits {
  int32_t n_ended, n_launched;
  int64_t last_ns;
} visits;

static void count_ended(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start, int64_t end) {
  visits *v = user;
  ck_assert(instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n);
  ck_assert_int_ge(start, 0);
  ck_assert_int_ge(end, v->last_ns);
  v->last_ns = end;
  v->n_ended++;
}

static void count_launched(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start, int64_t end) {
  visits *v = user;
  ck_assert(instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n);
  ck_assert_int_eq(end - start, plan->device.launch_ns);
  v->n_launched++;
}

/* What is shown is one body, all of it. */
static int64_t simulate_queue(const queue *q) {
  static const char script[] =
      "prologue\ncopy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\n" OPERANDS
      "exec a use 0 1\nexec b use 1 2\nexec a use 0 1\nexec b use 1 2\nexec a use 0 1\nexec b use 1 2\n" CLOSE;
  const planc_link link = {.bytes_per_second = INT64_C(1000000000000000), .latency_ns = q->prologue_ns};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  planc_simulation s;
  ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
  plan->device.launch_ns = q->launch_ns;
  plan->device.in_flight = q->in_flight;
  tables_links(plan, link, link);
  for (int32_t i = 0, n = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec) instr->time_ns = q->times[n++];
  }
  visits v = {0};
  planc_simulate_options shown = {.visitor = count_ended, .launch_visitor = count_launched, .user = &v};
  ok(planc_simulate(plan, &shown, &s));
  ck_assert_int_eq(v.n_ended, OPS);
  ck_assert_int_eq(v.n_launched, OPS);
  planc_plan_free(plan);
  return s.period_ns;
}

static int64_t draw(uint64_t seed, uint64_t *n, int64_t below) {
  return (int64_t)(rt_random(seed, (*n)++) % (uint64_t)below);
}

/* Launching a body takes about as long as running it, an eighth more at most: never so little more that LONG_RUN would
 * be too short for the lead of AHEAD bodies and one. */
static queue draw_queue(uint64_t seed) {
  uint64_t n = 0;
  queue q = {.in_flight = draw(seed, &n, 2) ? 1000 : 1 + (int32_t)draw(seed, &n, 2 * OPS)};
  for (int32_t i = 0; i < OPS; i++) {
    q.times[i] = 1000 + draw(seed, &n, draw(seed, &n, 3) ? 300000 : 10000);
    q.compute_ns += q.times[i];
  }
  int64_t each = q.compute_ns / OPS;
  do {
    q.launch_ns = each - each / 16 + draw(seed, &n, each / 5);
  } while (llabs(q.launch_ns - each) < each / 1000 + 1);
  q.prologue_ns = draw(seed, &n, 10 * q.compute_ns);
  return q;
}

/* However long the prologue has let the dispatcher launch ahead. */
START_TEST(a_lead_is_used_up) {
  int32_t n_slow = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    queue q = draw_queue(seed);
    int64_t got = simulate_queue(&q), expected = run_long(&q), launches = OPS * q.launch_ns;
    ck_assert_msg(llabs(got - expected) <= 1, "queue %d: %lld ns, in the long run %lld", (int)seed, (long long)got,
                  (long long)expected);
    if (q.in_flight >= OPS) ck_assert_int_eq(got, later(launches, q.compute_ns));
    n_slow += launches > q.compute_ns;
  }
  ck_assert_int_gt(n_slow, 1000);
}
END_TEST

/* In ten seconds of prologue the dispatcher gets as far ahead as it may, and a body's launches take 3.2 ms where its
 * copies take 3.0: the lead lasts for about as many bodies as are simulated. */
START_TEST(a_lead_may_last_as_long_as_bodies_do) {
  enum { LAUNCHES = 8 };
  const planc_link slow = {.bytes_per_second = INT64_C(1000000000000), .latency_ns = 3000000};
  const planc_link slower = {.bytes_per_second = INT64_C(1000000000000), .latency_ns = INT64_C(10000000000)};
  planc_plan *plan;
  planc_simulation s;
  ok(planc_plan_read("tests/data/plan/home.plan", &plan));
  plan->device.in_flight = 1000000;
  for (int32_t l = 0; l < plan->n_links; l++)
    plan->links[l].cost = (planc_link){.bytes_per_second = INT64_C(1000000000000)};
  plan->links[0].cost = slow;   /* from the user to the device */
  plan->links[1].cost = slower; /* from the user to the host: in the prologue only */
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec) instr->time_ns = 1;
  }
  for (plan->device.launch_ns = 399900; plan->device.launch_ns <= 400600; plan->device.launch_ns += 25) {
    visits v = {0};
    planc_simulate_options options = {.visitor = count_ended, .launch_visitor = count_launched, .user = &v};
    ok(planc_simulate(plan, &options, &s));
    ck_assert_int_eq(s.period_ns, LAUNCHES * plan->device.launch_ns);
    ck_assert_int_eq(v.n_ended, LAUNCHES);
    ck_assert_int_eq(v.n_launched, LAUNCHES);
  }
  planc_plan_free(plan);
}
END_TEST

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

/* Side by side, none in the other's way: a period is as long as the longer one. */
START_TEST(each_job_has_its_own_times) {
  static const char script[] =
      "body\nacquire 0 x 0\nacquire 1 y 8192\nacquire 2 z 9216\nacquire 3 x#1 16384\nacquire 4 y#1 24576\n"
      "acquire 5 z#1 25600\ncopy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nexec a use 0 1\nexec b use 1 2\n"
      "exec a#1 on 3 use 3 4\nexec b#1 on 3 use 4 5\nrelease 0\nrelease 1\nrelease 2\nrelease 3\nrelease 4\n"
      "release 5\n";
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  planc_job_predictions jobs[2] = {{.ideal_ns = 7}, {.ideal_ns = 8}};
  planc_simulation s;
  ok(script_make(script, (planc_job[]){job, job}, 2, 1 << 20, 1 << 20, &plan));
  plan->device.in_flight = 1000;
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    instr->busy_ppm = 500000;
    if (instr->op == PLANC_INSTR_exec) instr->time_ns = instr->stream == 0 ? 4000 : 350;
  }
  ok(planc_simulate(plan, &(planc_simulate_options){.jobs = jobs}, &s));
  ck_assert_int_eq(s.period_ns, 8000);
  ck_assert_int_eq(jobs[0].busy_ns, 8000);
  ck_assert_int_eq(jobs[0].stall_ns, 0);
  ck_assert_int_eq(jobs[1].busy_ns, 700);
  ck_assert_int_eq(jobs[1].stall_ns, 7300);
  ck_assert_int_eq(jobs[0].ideal_ns + jobs[1].ideal_ns, 15); /* what is not simulated stays */
  plan->predicted.bound_ns = 5;
  plan->predicted.jobs[1].ideal_ns = 6;
  ok(planc_simulate_predictions(plan));
  ck_assert_int_eq(plan->predicted.period_ns, 8000);
  ck_assert_int_eq(plan->predicted.bound_ns, 5);
  ck_assert_int_eq(plan->predicted.jobs[1].ideal_ns, 6);
  ck_assert_int_eq(plan->predicted.jobs[1].stall_ns, 7300);
  ck_assert_int_eq(planc_plan_predicted_total(plan).busy_ns, 8700);
  planc_plan_free(plan);
}
END_TEST

/* Of a single job they are what the GPU does: it computes, slowed down, or waits for one thing or another. */
START_TEST(a_single_job_s_times_are_the_gpu_s) {
  static const char script[] =
      OPERANDS "copy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nexec a use 0 1\nexec b use 1 2\n" CLOSE;
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  ok(script_make(script, &job, 1, 1 << 20, 1 << 20, &plan));
  for (int captured = 0; captured < 2; captured++) {
    planc_job_predictions times;
    planc_simulation s;
    int64_t stalls = 0;
    plan->device.slowdown_ppm = 100000;
    plan->device.launch_ns = 700;
    plan->device.in_flight = 1;
    for (int32_t i = 0; i < plan->body.n; i++) ((planc_instr *)plan->body.instrs)[i].time_ns = 1000;
    ok(planc_simulate(plan, &(planc_simulate_options){.captured = captured, .jobs = &times}, &s));
    for (int k = 0; k < PLANC_N_STALLS; k++) stalls += s.stall_ns[k];
    ck_assert_int_gt(stalls, 0);
    ck_assert_int_gt(captured ? 1 : s.slowdown_ns, 0);
    ck_assert_int_eq(times.busy_ns, s.compute_ns + s.slowdown_ns);
    ck_assert_int_eq(times.stall_ns, stalls);
    ck_assert_int_eq(times.busy_ns + times.stall_ns, s.period_ns);
  }
  planc_plan_free(plan);
}
END_TEST

START_TEST(live_bytes) {
  planc_simulation s = simulate(
      "body\nacquire 0 x 0\nacquire 1 y 8192\nexec a ws 16384 1000 use 0 1\nrelease 0\nacquire 2 z 9216\n"
      "exec b use 1 2\nrelease 1\nrelease 2\n",
      (device){0}, 1, 1);
  ck_assert_int_eq(s.live_peak_bytes, 4900 + 4 + 1000);
  ck_assert_int_eq(s.peak_bytes, 1 << 20);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("simulate");
  TCase *tests = tcase_create("all");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, ops_add_up);
  tcase_add_test(tests, copies_overlap_and_back_up);
  tcase_add_test(tests, lag_one_holds_a_copy_back);
  tcase_add_test(tests, copies_slow_ops);
  tcase_add_test(tests, what_takes_too_long_is_refused);
  tcase_add_test(tests, duplex_slows_copies);
  tcase_add_test(tests, a_copy_that_is_awaited_last_is_missed);
  tcase_add_test(tests, launches_bind);
  tcase_add_test(tests, captured_bodies_do_not_overlap);
  tcase_add_test(tests, a_captured_body_is_launched_once);
  tcase_add_test(tests, one_dispatcher_may_serve_all_jobs);
  tcase_add_test(tests, launches_and_ops_may_take_turns);
  tcase_add_test(tests, bodies_may_be_apart);
  tcase_add_test(tests, hosts_may_track_memory);
  tcase_add_test(tests, captured_bodies_have_nothing_to_track);
  tcase_add_test(tests, every_job_has_its_own_host);
  tcase_add_test(tests, unequal_jobs_stay_together);
  tcase_add_test(tests, what_never_repeats_is_a_mean);
  tcase_add_test(tests, chunks_are_mapped_in_the_step);
  tcase_add_test(tests, an_engine_may_copy_both_ways);
  tcase_add_test(tests, storage_is_waited_for_under_its_own_name);
  tcase_add_test(tests, an_op_is_missed_by_what_comes_to_its_gpu);
  tcase_add_test(tests, storage_is_counted_with_peers);
  tcase_add_test(tests, a_route_follows_from_memories);
  tcase_add_test(tests, a_lead_is_used_up);
  tcase_add_test(tests, a_lead_may_last_as_long_as_bodies_do);
  tcase_add_test(tests, each_job_has_its_own_times);
  tcase_add_test(tests, a_single_job_s_times_are_the_gpu_s);
  tcase_add_test(tests, live_bytes);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
