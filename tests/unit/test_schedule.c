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
  ok(planc_schedule_new(trace, (const planc_costs *const[]){costs}, NULL, 0, &s));
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
  ok(planc_schedule_boundary(s, W, planc_schedule_device(s), PLANC_BLANK, &r[W]));
  ok(planc_schedule_acquire(s, X, planc_schedule_device(s), PLANC_BLANK, &r[X]));
  ok(planc_schedule_prefetch(s, r[X], 0));
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &r[Y]));
  ok(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false));
}

static void run_b(void) {
  ok(planc_schedule_acquire(s, Z, planc_schedule_device(s), PLANC_BLANK, &r[Z]));
  ok(planc_schedule_exec(s, 1, 0, PLANC_BLANK, false));
}

START_TEST(a_whole_schedule_is_taken) {
  run_a();
  ok(planc_schedule_release(s, r[X]));
  ok(planc_schedule_offload(s, r[Y], planc_schedule_host(s)));
  ok(planc_schedule_release(s, r[Y]));
  ck_assert_int_eq(planc_schedule_resident(s, Y, 1), -1);
  ck_assert(planc_schedule_on_host(s, Y, 1));
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &r[Y]));
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
  refused(planc_schedule_boundary(s, X, planc_schedule_host(s), PLANC_BLANK, &r[X]), "x"); /* does not persist */
  ok(planc_schedule_boundary(s, W, planc_schedule_host(s), PLANC_BLANK, &r[W]));
  refused(planc_schedule_boundary(s, W, planc_schedule_host(s), PLANC_BLANK, &r[W]), "w");
  refused(planc_schedule_boundary(s, W, planc_schedule_device(s), PLANC_BLANK, &r[W]), "w");
  ck_assert_int_eq(planc_schedule_n_away(s), 1);
  ck_assert_int_eq(planc_schedule_resident(s, W, 0), -1);
  ck_assert(planc_schedule_on_host(s, W, 0));
  ck_assert_int_eq(planc_schedule_away_at_end(s, W), r[W]);
  ok(planc_schedule_acquire(s, X, planc_schedule_device(s), PLANC_BLANK, &r[X]));
  ok(planc_schedule_prefetch(s, r[X], 0));
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &r[Y]));
  refused(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false), "w");
  ok(planc_schedule_acquire(s, W, planc_schedule_device(s), PLANC_BLANK, &r[W]));
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
  ok(planc_schedule_boundary(s, W, planc_schedule_device(s), PLANC_BLANK, &r[W]));
  ok(planc_schedule_acquire(s, X, planc_schedule_device(s), PLANC_BLANK, &r[X]));
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &r[Y]));
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
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &other));
  refused(planc_schedule_offload(s, other, planc_schedule_host(s)), "y"); /* empty */
  refused(planc_schedule_prefetch(s, other, 1), "y");                     /* never offloaded */
  refused(planc_schedule_deliver(s, r[Y]), "y");                          /* no result */
  ok(planc_schedule_move(s, other, r[Y]));
  ck_assert_int_eq(planc_schedule_content(s, other), 1);
}
END_TEST

/* The last command is a copy between memories, from one side to another. */
static const planc_command *copied(planc_memory_kind from, planc_memory_kind to) {
  const planc_command *last = &planc_schedule_commands(s)[planc_schedule_n_commands(s) - 1];
  for (int32_t k = 0; k < PLANC_N_MEMORY_KINDS * PLANC_N_MEMORY_KINDS; k++) {
    int32_t one = k / PLANC_N_MEMORY_KINDS, other = k % PLANC_N_MEMORY_KINDS;
    bool are = one == (int32_t)from && other == (int32_t)to;
    ck_assert_int_eq(planc_schedule_copies(s, last, (planc_memory_kind)one, (planc_memory_kind)other), are);
  }
  ck_assert_int_eq(planc_schedule_gives(s, last), to != PLANC_MEMORY_DEVICE);
  ck_assert_int_eq(planc_schedule_kind_of(s, last->residency), to);
  ck_assert_int_eq(planc_schedule_kind_of(s, last->source), from);
  return last;
}

START_TEST(copies_lead_from_memory_to_memory) {
  run_a();
  ok(planc_schedule_offload(s, r[Y], planc_schedule_host(s)));
  const planc_command out = *copied(PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST);
  ck_assert_int_eq(out.source, r[Y]);
  ck_assert_int_eq(planc_schedule_route(s, out.stream), PLANC_ROUTE_D2H);
  ck_assert_int_eq(planc_schedule_buffer(s, &out), Y);
  refused(planc_schedule_release(s, out.residency), "y"); /* is not the policy's to close */
  refused(planc_schedule_await(s, PLANC_STREAM_COMPUTE, out.residency), "y");
  ok(planc_schedule_await(s, PLANC_STREAM_COMPUTE, r[Y]));
  refused(planc_schedule_await(s, PLANC_ROUTE_STORE, r[Y]), "y");
  ok(planc_schedule_release(s, r[Y]));
  ck_assert(planc_schedule_gives(s, &planc_schedule_commands(s)[planc_schedule_n_commands(s) - 1]));
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &r[Y]));
  ok(planc_schedule_prefetch(s, r[Y], 1));
  const planc_command *in = copied(PLANC_MEMORY_HOST, PLANC_MEMORY_DEVICE);
  ck_assert_int_eq(in->source, out.residency);
  ck_assert_int_eq(in->residency, r[Y]);
  ck_assert_int_eq(planc_schedule_route(s, in->stream), PLANC_ROUTE_H2D);
  int32_t other;
  ok(planc_schedule_acquire(s, Y, planc_schedule_device(s), PLANC_BLANK, &other));
  ok(planc_schedule_move(s, other, r[Y]));
  ck_assert_int_eq(copied(PLANC_MEMORY_DEVICE, PLANC_MEMORY_DEVICE)->stream, planc_schedule_compute(s, 0, 0));
  ok(planc_schedule_acquire(s, X, planc_schedule_device(s), PLANC_BLANK, &other));
  ok(planc_schedule_prefetch(s, other, 0));
  ck_assert_int_eq(copied(PLANC_MEMORY_USER, PLANC_MEMORY_DEVICE)->source, PLANC_USER);
  run_b();
  ok(planc_schedule_deliver(s, r[Z]));
  const planc_command *delivers = copied(PLANC_MEMORY_DEVICE, PLANC_MEMORY_USER);
  ck_assert_int_eq(delivers->residency, PLANC_USER);
  ck_assert_int_eq(planc_schedule_buffer(s, delivers), Z);
}
END_TEST

/* --- Memories ----------------------------------------------------------------------------------------------------- */

static const planc_memory table[] = {{.kind = PLANC_MEMORY_DEVICE},
                                     {.kind = PLANC_MEMORY_HOST},
                                     {.kind = PLANC_MEMORY_STORAGE},
                                     {.kind = PLANC_MEMORY_USER}};

enum { DEVICE, HOST, STORAGE, USER, N_MEMORIES };

static planc_status over(const planc_memory *memories, int32_t n) {
  planc_schedule_free(s);
  return planc_schedule_new(trace, (const planc_costs *const[]){costs}, memories, n, &s);
}

START_TEST(memories_are_named_by_number) {
  int32_t n, away;
  ok(over(table, N_MEMORIES));
  ck_assert_int_eq(planc_schedule_device(s), DEVICE);
  ck_assert_int_eq(planc_schedule_host(s), HOST);
  ck_assert_int_eq(planc_schedule_first_of(s, PLANC_MEMORY_STORAGE), STORAGE);
  ck_assert_int_eq(planc_schedule_memories(s, &n)[STORAGE].kind, PLANC_MEMORY_STORAGE);
  ck_assert_int_eq(n, N_MEMORIES);
  refused(planc_schedule_boundary(s, W, USER, PLANC_BLANK, &away), "w");
  refused(planc_schedule_boundary(s, W, HOST, 0, &away), "w"); /* lowering places it */
  refused(planc_schedule_acquire(s, Y, USER, PLANC_BLANK, &away), "y");
  refused(planc_schedule_acquire(s, Y, N_MEMORIES, PLANC_BLANK, &away), "y");
  refused(planc_schedule_acquire(s, Y, -1, PLANC_BLANK, &away), "y");
  refused(planc_schedule_acquire(s, Y, HOST, 0, &away), "y"); /* lowering places it */
  ok(planc_schedule_acquire(s, Y, STORAGE, PLANC_BLANK, &away));
  ck_assert_int_eq(planc_schedule_residencies(s)[away].memory, STORAGE);
  ck_assert_int_eq(planc_schedule_n_commands(s), 0);
  refused(planc_schedule_release(s, away), "y");
}
END_TEST

START_TEST(copies_need_links) {
  int32_t stored, other;
  ok(over(table, N_MEMORIES));
  run_a();
  refused(planc_schedule_offload(s, r[Y], STORAGE), "y"); /* only the host is linked to it */
  refused(planc_schedule_offload(s, r[Y], DEVICE), "y");
  refused(planc_schedule_offload(s, r[Y], USER), "y");
  ok(planc_schedule_offload(s, r[Y], HOST));
  int32_t on_host = planc_schedule_away(s, Y, HOST, 1);
  ck_assert_int_ge(on_host, 0);
  ck_assert_int_eq(planc_schedule_away(s, Y, STORAGE, 1), -1);
  refused(planc_schedule_offload(s, on_host, HOST), "y");
  ok(planc_schedule_acquire(s, Y, STORAGE, PLANC_BLANK, &stored));
  refused(planc_schedule_offload(s, stored, HOST), "y"); /* empty */
  refused(planc_schedule_prefetch(s, stored, 1), "y");   /* not on the device */
  ok(planc_schedule_move(s, stored, on_host));
  refused(planc_schedule_move(s, stored, on_host), "y"); /* full */
  const planc_command *last = &planc_schedule_commands(s)[planc_schedule_n_commands(s) - 1];
  ck_assert(planc_schedule_copies(s, last, PLANC_MEMORY_HOST, PLANC_MEMORY_STORAGE));
  ck_assert(planc_schedule_gives(s, last));
  ck_assert_int_eq(planc_schedule_route(s, last->stream), PLANC_ROUTE_STORE);
  ck_assert_int_eq(planc_schedule_away(s, Y, STORAGE, 1), stored);
  ok(planc_schedule_acquire(s, Y, DEVICE, PLANC_BLANK, &other));
  refused(planc_schedule_move(s, other, stored), "y");
  refused(planc_schedule_deliver(s, stored), "y");
  ok(planc_schedule_offload(s, stored, HOST));
  last = &planc_schedule_commands(s)[planc_schedule_n_commands(s) - 1];
  ck_assert(!planc_schedule_gives(s, last));
  ck_assert_int_eq(planc_schedule_route(s, last->stream), PLANC_ROUTE_LOAD);
  ok(planc_schedule_prefetch(s, other, 1));
}
END_TEST

/* What is parked in storage alone is not on the host. */
START_TEST(what_is_parked_in_storage_comes_by_the_host) {
  int32_t stored;
  ok(over(table, N_MEMORIES));
  ok(planc_schedule_boundary(s, W, STORAGE, PLANC_BLANK, &stored));
  ck_assert(!planc_schedule_on_host(s, W, 0));
  ck_assert_int_eq(planc_schedule_away_at_end(s, W), stored);
  ok(planc_schedule_acquire(s, W, DEVICE, PLANC_BLANK, &r[W]));
  refused(planc_schedule_prefetch(s, r[W], 0), "w");
  ok(planc_schedule_offload(s, stored, HOST));
  ok(planc_schedule_prefetch(s, r[W], 0));
}
END_TEST

START_TEST(tables_have_one_device_and_one_host) {
  assert_fails(over(&table[HOST], 2), PLANC_INTERNAL, "one device and one host");
  assert_fails(over(table, 1), PLANC_INTERNAL, "one device and one host");
  const planc_memory two[] = {table[DEVICE], table[DEVICE], table[HOST], table[USER]};
  assert_fails(over(two, 4), PLANC_INTERNAL, "one device and one host");
  assert_fails(over(two, 1000), PLANC_INTERNAL, "one device and one host");
  ok(over(NULL, 0));
  ck_assert_int_eq(planc_schedule_first_of(s, PLANC_MEMORY_STORAGE), -1);
}
END_TEST

START_TEST(jobs_and_streams_are_limited) {
  int32_t residency;
  assert_fails(planc_schedule_side_by_side(s, 1, 2), PLANC_INTERNAL, "no job 1");
  assert_fails(planc_schedule_side_by_side(s, 0, 0), PLANC_INTERNAL, "0 compute streams");
  assert_fails(planc_schedule_side_by_side(s, 0, PLANC_PLAN_MAX_STREAMS), PLANC_INTERNAL, "a plan has at most");
  ck_assert_int_eq(planc_schedule_stream(s, -1, PLANC_STREAM_COMPUTE), -1);
  ck_assert_int_eq(planc_schedule_stream(s, 1, PLANC_STREAM_COMPUTE), -1);
  ok(planc_schedule_acquire(s, X, planc_schedule_device(s), PLANC_BLANK, &residency));
  assert_fails(planc_schedule_side_by_side(s, 0, 2), PLANC_INTERNAL, "stated behind residencies");
  planc_trace many = *trace;
  planc_schedule *none;
  many.n_jobs = PLANC_PLAN_MAX_JOBS + 1;
  assert_fails(planc_schedule_new(&many, NULL, NULL, 0, &none), PLANC_INTERNAL, "a plan has at most 256");
}
END_TEST

START_TEST(residencies_close_once) {
  run_a();
  ok(planc_schedule_release(s, r[X]));
  refused(planc_schedule_release(s, r[X]), "x");
  refused(planc_schedule_boundary(s, W, planc_schedule_device(s), PLANC_BLANK, &r[W]), "w"); /* too late */
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

/* --- Rounds side by side ------------------------------------------------------------------------------------------ */

enum { ROUNDS = 3, OPS = 2 };

/* Two jobs of three rounds, of which two run side by side, and all. */
static void set_up_rounds(void) {
  static const int64_t rounds[ROUNDS] = {1, 1, 1};
  set_up();
  planc_schedule_free(s);
  planc_trace_free(trace);
  planc_job job = {.graph = graph, .batch = ROUNDS, .n_rounds = ROUNDS, .rounds = rounds, .iterations = 1};
  ok(planc_expand((const planc_job[]){job, job}, 2, &trace));
  ok(planc_schedule_new(trace, (const planc_costs *const[]){costs, costs}, NULL, 0, &s));
  ck_assert_int_eq(planc_schedule_n_streams(s), 2 * PLANC_N_STREAMS);
  ok(planc_schedule_side_by_side(s, 0, 2));
  ok(planc_schedule_side_by_side(s, 1, 3));
}

/* The last command, which runs an op of a round of job 0. */
static int32_t run_op(int32_t round, int32_t op) {
  const planc_instance *it = &trace->instances[round * OPS + op];
  ck_assert(it->job == 0 && it->round == round && it->op == op);
  for (int32_t k = it->first_access; k < it->first_access + it->n_accesses; k++) {
    int32_t buffer = trace->accesses[k].buffer, residency;
    if (planc_schedule_open(s, buffer) >= 0) continue;
    ok(planc_schedule_acquire(s, buffer, planc_schedule_device(s), PLANC_BLANK, &residency));
    if (trace->accesses[k].read == 0) ok(planc_schedule_prefetch(s, residency, 0));
  }
  ok(planc_schedule_exec(s, round * OPS + op, 0, PLANC_BLANK, false));
  return planc_schedule_n_commands(s) - 1;
}

static int32_t stream_of(int32_t command) {
  return planc_schedule_commands(s)[command].stream;
}

START_TEST(rounds_have_compute_streams) {
  static const int32_t first[] = {0, 6, 0}, second[] = {3, 7, 8};
  int32_t residency;
  ck_assert_int_eq(planc_schedule_n_streams(s), 9);
  ck_assert_int_eq(planc_schedule_n_compute(s, 0), 2);
  for (int32_t k = 0; k < ROUNDS; k++) {
    ck_assert_int_eq(planc_schedule_compute(s, 0, k), first[k]);
    ck_assert_int_eq(planc_schedule_compute(s, 1, k), second[k]);
    ck_assert_int_eq(planc_schedule_route(s, second[k]), PLANC_STREAM_COMPUTE);
  }
  ck_assert_int_eq(planc_schedule_compute(s, 1, -1), 3);
  ck_assert_int_eq(planc_schedule_route(s, 4), PLANC_ROUTE_H2D);
  ok(planc_schedule_boundary(s, W, planc_schedule_device(s), PLANC_BLANK, &residency));
  ck_assert_int_eq(stream_of(run_op(0, 0)), 0);
  ck_assert_int_eq(stream_of(run_op(1, 0)), 6);
  ck_assert_int_eq(stream_of(run_op(2, 0)), 0);
  int32_t of_second = planc_schedule_open(s, trace->accesses[trace->instances[OPS].first_access].buffer);
  ok(planc_schedule_await(s, PLANC_STREAM_COMPUTE, of_second));
  ck_assert_int_eq(stream_of(planc_schedule_n_commands(s) - 1), 6);
  refused(planc_schedule_follow(s, PLANC_STREAM_COMPUTE, 0, 1), "side by side");
}
END_TEST

/* Until something else runs on the stream, a round of another may be beside it. */
START_TEST(workspaces_last_while_rounds_may_overlap) {
  int32_t residency, ends[64];
  ok(planc_schedule_boundary(s, W, planc_schedule_device(s), PLANC_BLANK, &residency));
  int32_t a0 = run_op(0, 0), a1 = run_op(1, 0), b0 = run_op(0, 1), a2 = run_op(2, 0), b1 = run_op(1, 1);
  int32_t b2 = run_op(2, 1), n = planc_schedule_n_commands(s);
  ck_assert_int_le(n, 64);
  planc_schedule_workspace_ends(s, ends);
  ck_assert_int_eq(ends[a0], b0);
  ck_assert_int_eq(ends[a1], b1);
  ck_assert_int_eq(ends[b0], a2);
  ck_assert_int_eq(ends[a2], b2);
  ck_assert_int_eq(ends[b1], n);
  ck_assert_int_eq(ends[b2], n);
  ck_assert_int_eq(ends[a0 - 1], a0);
}
END_TEST

START_TEST(streams_are_not_without_number) {
  ok(planc_schedule_side_by_side(s, 0, PLANC_PLAN_MAX_STREAMS - 7));
  refused(planc_schedule_side_by_side(s, 0, PLANC_PLAN_MAX_STREAMS - 6), "1025 streams, and a plan has at most 1024");
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
  tcase_add_test(tests, copies_lead_from_memory_to_memory);
  tcase_add_test(tests, memories_are_named_by_number);
  tcase_add_test(tests, copies_need_links);
  tcase_add_test(tests, what_is_parked_in_storage_comes_by_the_host);
  tcase_add_test(tests, tables_have_one_device_and_one_host);
  tcase_add_test(tests, jobs_and_streams_are_limited);
  tcase_add_test(tests, residencies_close_once);
  tcase_add_test(tests, the_end_must_be_whole);
  TCase *rounds = tcase_create("rounds");
  tcase_add_checked_fixture(rounds, set_up_rounds, tear_down);
  tcase_add_test(rounds, rounds_have_compute_streams);
  tcase_add_test(rounds, workspaces_last_while_rounds_may_overlap);
  tcase_add_test(rounds, streams_are_not_without_number);
  suite_add_tcase(suite, rounds);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
