/* The schedule builder: a right schedule is taken, every wrong command is refused and says what is wrong. */
#include <check.h>
#include <string.h>

#include "planc/schedule.h"
#include "tests/support/unit.h"

static const char graph_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "loss: z\n"
    "tensors:\n"
    "  x: input f32[N,4]\n"
    "  w: param f32[4]\n"
    "  y: f32[N,4]\n"
    "  z: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x, w], out: [y]}\n"
    "  - {op: b, type: t.b, in: [y], out: [z]}\n";

enum { X, W, Y, Z }; /* buffers, in the order of first access */

static planc_graph *graph;
static planc_profile *profile;
static planc_trace *trace;
static planc_costs *costs;
static planc_schedule *s;
static int32_t r[4]; /* residency of each buffer */

static void set_up(void) {
  static const int64_t rounds[] = {1};
  ok(planc_graph_parse(graph_text, sizeof graph_text - 1, "chain", &graph));
  ok(planc_profile_read("profiles/k40m.json", &profile));
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  ok(planc_expand(&job, 1, &trace));
  ok(planc_costs_make(profile, graph, 1, rounds, &costs));
  ok(planc_schedule_new(trace, (const planc_costs *const[]){costs}, &s));
  static const char *const names[] = {"x", "w", "y", "z"};
  for (int32_t b = 0; b < 4; b++) ck_assert_str_eq(planc_trace_buffer_name(trace, b), names[b]);
}

static void tear_down(void) {
  planc_schedule_free(s);
  planc_costs_free(costs);
  planc_trace_free(trace);
  planc_profile_free(profile);
  planc_graph_free(graph);
}

static void refused(planc_status status, const char *name) {
  assert_fails(status, PLANC_INTERNAL, name);
}

/* Up to and including op a. */
static void run_a(void) {
  ok(planc_schedule_boundary(s, W, PLANC_BLANK, &r[W]));
  ok(planc_schedule_acquire(s, X, PLANC_BLANK, &r[X]));
  ok(planc_schedule_prefetch(s, r[X], 0));
  ok(planc_schedule_acquire(s, Y, PLANC_BLANK, &r[Y]));
  ok(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false));
}

static void run_b(void) {
  ok(planc_schedule_acquire(s, Z, PLANC_BLANK, &r[Z]));
  ok(planc_schedule_exec(s, 1, 0, PLANC_BLANK, false));
}

START_TEST(a_whole_schedule_is_taken) {
  run_a();
  ok(planc_schedule_release(s, r[X]));
  ok(planc_schedule_offload(s, r[Y]));
  ok(planc_schedule_release(s, r[Y]));
  ck_assert_int_eq(planc_schedule_resident(s, Y, 1), -1);
  ck_assert(planc_schedule_on_host(s, Y, 1));
  ok(planc_schedule_acquire(s, Y, PLANC_BLANK, &r[Y]));
  ck_assert_int_eq(planc_schedule_content(s, r[Y]), -1);
  ok(planc_schedule_prefetch(s, r[Y], 1));
  ck_assert_int_eq(planc_schedule_resident(s, Y, 1), r[Y]);
  run_b();
  ok(planc_schedule_deliver(s, r[Z]));
  ok(planc_schedule_release(s, r[Y]));
  ok(planc_schedule_release(s, r[Z]));
  ok(planc_schedule_finish(s));
}
END_TEST

/* w never changes here: its parked copy stays good. */
START_TEST(what_is_at_home_comes_from_there) {
  refused(planc_schedule_park(s, X, &r[X]), "x"); /* does not persist */
  ok(planc_schedule_park(s, W, &r[W]));
  refused(planc_schedule_park(s, W, &r[W]), "w");
  refused(planc_schedule_boundary(s, W, PLANC_BLANK, &r[W]), "w");
  ck_assert_int_eq(planc_schedule_n_parked(s), 1);
  ck_assert_int_eq(planc_schedule_resident(s, W, 0), -1);
  ck_assert(planc_schedule_on_host(s, W, 0));
  ck_assert_int_eq(planc_schedule_parking(s, W), PLANC_PARKED);
  ok(planc_schedule_acquire(s, X, PLANC_BLANK, &r[X]));
  ok(planc_schedule_prefetch(s, r[X], 0));
  ok(planc_schedule_acquire(s, Y, PLANC_BLANK, &r[Y]));
  refused(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false), "w");
  ok(planc_schedule_acquire(s, W, PLANC_BLANK, &r[W]));
  ok(planc_schedule_prefetch(s, r[W], 0));
  ok(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false));
  run_b();
  ok(planc_schedule_deliver(s, r[Z]));
  ok(planc_schedule_release(s, r[X]));
  ok(planc_schedule_release(s, r[Y]));
  ok(planc_schedule_release(s, r[Z]));
  refused(planc_schedule_finish(s), "w"); /* still on the device */
  ok(planc_schedule_release(s, r[W]));
  ok(planc_schedule_finish(s));
}
END_TEST

START_TEST(ops_need_their_operands) {
  ok(planc_schedule_boundary(s, W, PLANC_BLANK, &r[W]));
  ok(planc_schedule_acquire(s, X, PLANC_BLANK, &r[X]));
  ok(planc_schedule_acquire(s, Y, PLANC_BLANK, &r[Y]));
  refused(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false), "x"); /* acquired, not filled */
  ok(planc_schedule_prefetch(s, r[X], 0));
  ok(planc_schedule_release(s, r[Y]));
  refused(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false), "y"); /* nowhere to write */
}
END_TEST

START_TEST(ops_run_once) {
  run_a();
  refused(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false), "a");
  ok(planc_schedule_exec(s, 0, 0, PLANC_BLANK, true));
  refused(planc_schedule_exec(s, 1, 0, PLANC_BLANK, true), "b"); /* nothing to run again */
}
END_TEST

START_TEST(copies_need_content) {
  run_a();
  refused(planc_schedule_prefetch(s, r[X], 0), "x"); /* full */
  int32_t other;
  ok(planc_schedule_acquire(s, Y, PLANC_BLANK, &other));
  refused(planc_schedule_offload(s, other), "y");     /* empty */
  refused(planc_schedule_prefetch(s, other, 1), "y"); /* never offloaded */
  refused(planc_schedule_deliver(s, r[Y]), "y");      /* no result */
  ok(planc_schedule_move(s, other, r[Y]));
  ck_assert_int_eq(planc_schedule_content(s, other), 1);
}
END_TEST

START_TEST(residencies_close_once) {
  run_a();
  ok(planc_schedule_release(s, r[X]));
  refused(planc_schedule_release(s, r[X]), "x");
  refused(planc_schedule_boundary(s, W, PLANC_BLANK, &r[W]), "w"); /* too late */
}
END_TEST

START_TEST(the_end_must_be_whole) {
  run_a();
  refused(planc_schedule_finish(s), "b"); /* has not run */
  run_b();
  ok(planc_schedule_release(s, r[X]));
  ok(planc_schedule_release(s, r[Y]));
  refused(planc_schedule_finish(s), "z"); /* not delivered */
  ok(planc_schedule_deliver(s, r[Z]));
  refused(planc_schedule_finish(s), "z"); /* still open */
  ok(planc_schedule_release(s, r[Z]));
  ok(planc_schedule_finish(s));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("schedule");
  TCase *tests = tcase_create("all");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, a_whole_schedule_is_taken);
  tcase_add_test(tests, what_is_at_home_comes_from_there);
  tcase_add_test(tests, ops_need_their_operands);
  tcase_add_test(tests, ops_run_once);
  tcase_add_test(tests, copies_need_content);
  tcase_add_test(tests, residencies_close_once);
  tcase_add_test(tests, the_end_must_be_whole);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
