/* A storage below the host: what the host's budget has no room for is kept there, in plans that the checker accepts;
 * and so is what a schedule itself states there. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planrt/planrt.h"
#include "tests/support/lower_for.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

static planc_profile *profile;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.links[PLANC_ROUTE_STORE] = (planc_link){.bytes_per_second = 1000000000, .latency_ns = 20000};
  profile->device.links[PLANC_ROUTE_LOAD] = (planc_link){.bytes_per_second = 2000000000, .latency_ns = 10000};
}

static void tear_down(void) {
  planc_profile_free(profile);
}

static int64_t arena_of(const planc_plan *plan, planc_memory_kind kind) {
  return planc_plan_memory(plan, kind)->arena_bytes;
}

/* How many copies of the body pass the devices by. */
static int32_t storage_copies(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++)
    n += copies_on(plan, &plan->body.instrs[i], "store") + copies_on(plan, &plan->body.instrs[i], "load");
  return n;
}

/* The same is done, and nothing is stored. */
static void assert_stores_nothing(const planc_plan *plan, const planc_plan *like) {
  ck_assert_int_eq(arena_of(plan, PLANC_MEMORY_STORAGE), 0);
  ck_assert_int_eq(arena_of(plan, PLANC_MEMORY_HOST), arena_of(like, PLANC_MEMORY_HOST));
  ck_assert_int_eq(storage_copies(plan), 0);
  ck_assert_int_eq(plan->n_streams, like->n_streams);
  ck_assert_int_eq(plan->body.n, like->body.n);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *a = &plan->body.instrs[i], *b = &like->body.instrs[i];
    ck_assert(a->op == b->op && a->stream == b->stream && a->id == b->id && a->address == b->address);
  }
}

/* Lowers a case within a budget of the host; true when that holds. */
static bool fits_in(randcase *c, int64_t host, int32_t *n_copies, int64_t *out_arena) {
  planc_plan *plan;
  planc_simulation simulation;
  c->problem.terms.budgets[PLANC_MEMORY_HOST] = host;
  ok_in(lower_for(&c->problem, "random", &c->candidate, &plan), "lowering");
  *out_arena = arena_of(plan, PLANC_MEMORY_HOST);
  *n_copies += storage_copies(plan);
  ck_assert_int_gt(arena_of(plan, PLANC_MEMORY_STORAGE), 0);
  for (int32_t m = 0; m < plan->n_memories; m++) plan->memories[m].budget_bytes = -1;
  ok_in(planc_check(plan, NULL, NULL), "check");
  ok_in(planc_simulate(plan, NULL, &simulation), "simulation");
  planc_plan_free(plan);
  return *out_arena <= host;
}

/* With no host at all every content is there only while it is copied: budgets from what that needs on hold. */
START_TEST(what_the_host_has_no_room_for_is_stored) {
  int32_t n_copies = 0, n_fit = 0, n_tried = 0;
  for (uint64_t seed = 0; seed < 120; seed++) {
    planc_graph *graph;
    planc_plan *whole, *same;
    randcase c;
    randgraph_options options = {.max_ops = 12, .max_elements = 256};
    int64_t least, arena;
    ok_in(randgraph_make(seed, &options, &graph), "graph");
    ok_in(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 2), &c), "case");
    ok_in(randschedule_make(seed, NULL, &c), "schedule");
    c.problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
    ok_in(lower_for(&c.problem, "random", &c.candidate, &whole), "lowering");
    int64_t needs = arena_of(whole, PLANC_MEMORY_HOST);
    c.problem.terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40;
    ok_in(lower_for(&c.problem, "random", &c.candidate, &same), "lowering");
    assert_stores_nothing(same, whole);
    if (needs > 0) ck_assert(!fits_in(&c, 0, &n_copies, &least));
    for (int64_t percent = 25; needs > 0 && percent < 100; percent += 25, n_tried++) {
      int64_t host = needs * percent / 100;
      bool fits = fits_in(&c, host, &n_copies, &arena);
      ck_assert(fits || host < least);
      n_fit += fits;
    }
    planc_plan_free(whole);
    planc_plan_free(same);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_tried, 200);
  ck_assert_int_gt(n_fit, n_tried / 3);
  ck_assert_int_gt(n_copies, 500);
}
END_TEST

/* --- Budgets of the host ------------------------------------------------------------------------------------------ */

static const struct {
  const char *path, *policy;
  int64_t batch, budget;
  int64_t least;    /* percent of what the policy needs on the host for which there is a plan */
  int64_t permille; /* by which less of the host may be faster, where free ranges stay between what is large */
} rows[] = {{"graphs/resnet34.yaml", "vdnn-all", 16, INT64_C(2) << 30, 15, 0},
            {"graphs/recorded/resnet50.yaml", "lms", 16, INT64_C(1200) << 20, 10, 0},
            {"graphs/recorded/vgg16.yaml", "vdnn-all", 16, INT64_C(4) << 30, 25, 0},
            {"graphs/vgg16.yaml", "naive", 64, INT64_C(4) << 30, 25, 5}};

static planc_graph *trained(const char *path) {
  planc_graph *forward, *graph;
  ok_in(planc_graph_read(path, &forward), path);
  if (strstr(path, "recorded")) return forward;
  ok_in(planc_graph_train(forward, PLANC_SGD, &graph), path);
  planc_graph_free(forward);
  return graph;
}

/* The host's budget holds, storage has what it has no room for, and less of the host is never faster. Storage without
 * limit is as good as much of it. */
START_TEST(a_smaller_host_stores_more_and_is_not_faster) {
  planc_graph *graph = trained(rows[_i].path);
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = rows[_i].batch,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = rows[_i].budget,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40};
  const planc_policy *policy = planc_policy_find(rows[_i].policy);
  planc_plan *plan;
  ok(planc_make_plan(&problem, policy, &plan));
  int64_t needs = arena_of(plan, PLANC_MEMORY_HOST), first_ns = plan->predicted.period_ns, ns = first_ns, stored = 0;
  ck_assert_int_eq(arena_of(plan, PLANC_MEMORY_STORAGE), 0);
  planc_plan_free(plan);
  for (int64_t percent = 95; percent >= rows[_i].least; percent -= 5) {
    problem.terms.budgets[PLANC_MEMORY_HOST] = needs * percent / 100;
    ok_in(planc_make_plan(&problem, policy, &plan), "plan");
    ok_in(planc_check(plan, NULL, NULL), "check");
    ck_assert_int_le(arena_of(plan, PLANC_MEMORY_HOST), problem.terms.budgets[PLANC_MEMORY_HOST]);
    stored = arena_of(plan, PLANC_MEMORY_STORAGE);
    ck_assert_int_ge(stored, needs - problem.terms.budgets[PLANC_MEMORY_HOST]);
    ck_assert_int_ge(plan->predicted.period_ns, ns - ns / 1000 * rows[_i].permille);
    ns = plan->predicted.period_ns;
    planc_plan_free(plan);
  }
  ck_assert_int_gt(ns, 2 * first_ns);
  problem.terms.budgets[PLANC_MEMORY_STORAGE] = -1;
  ok(planc_make_plan(&problem, policy, &plan));
  ok(planc_check(plan, NULL, NULL));
  ck_assert_int_eq(planc_plan_memory(plan, PLANC_MEMORY_STORAGE)->budget_bytes, -1);
  ck_assert_int_eq(arena_of(plan, PLANC_MEMORY_STORAGE), stored);
  ck_assert_int_eq(plan->predicted.period_ns, ns);
  planc_plan_free(plan);
  problem.terms.budgets[PLANC_MEMORY_STORAGE] = stored - 1;
  assert_fails(planc_make_plan(&problem, policy, &plan), PLANC_INFEASIBLE, "bytes of storage");
  planc_graph_free(graph);
}
END_TEST

/* NULL where there is none. */
static planc_plan *plan_with(planc_problem problem, const planc_policy *policy, int64_t host, int64_t storage) {
  planc_plan *plan = NULL;
  problem.terms.budgets[PLANC_MEMORY_HOST] = host;
  problem.terms.budgets[PLANC_MEMORY_STORAGE] = storage;
  planc_status status = planc_make_plan(&problem, policy, &plan);
  ck_assert(!status || planc_status_code(status) == PLANC_INFEASIBLE);
  planc_status_free(status);
  return plan;
}

/* Whoever has a plan without storage has one with it that is no slower. */
START_TEST(storage_makes_no_plan_slower) {
  enum { GRAPHS = 40 };
  static const char *const policies[] = {"priced", "naive"};
  const planc_policy *policy = planc_policy_find(policies[_i]);
  int32_t n = 0, n_compared = 0, n_faster = 0, n_only = 0;
  for (uint64_t seed = 0; seed < GRAPHS; seed++) {
    if (!is_sampled((int)seed, 3)) continue;
    planc_graph *graph;
    n++;
    randgraph_options options = {.max_ops = 12, .max_elements = 1 << 16};
    ok_in(randgraph_make(seed, &options, &graph), "graph");
    planc_problem problem = {.job.graph = graph, .job.profile = profile, .job.batch = 4, .job.sub_batch = 4};
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40;
    planc_plan *none = plan_with(problem, planc_policy_find("none"), -1, 0);
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = none->predicted.peak_bytes[PLANC_MEMORY_DEVICE] * 3 / 4;
    planc_plan *whole = plan_with(problem, policy, -1, 0);
    int64_t needs = whole ? whole->predicted.peak_bytes[PLANC_MEMORY_HOST] : 0;
    for (int64_t percent = 20; needs > 0 && percent <= 120; percent += 20) {
      planc_plan *without = plan_with(problem, policy, needs * percent / 100, 0);
      planc_plan *with = plan_with(problem, policy, needs * percent / 100, INT64_C(1) << 40);
      ck_assert(with || !without);
      if (without && with) {
        ck_assert_int_le(with->predicted.period_ns, without->predicted.period_ns);
        n_faster += with->predicted.period_ns < without->predicted.period_ns;
      }
      n_compared += without != NULL;
      n_only += with && !without;
      planc_plan_free(without);
      planc_plan_free(with);
    }
    planc_plan_free(none);
    planc_plan_free(whole);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_compared, n / 4);
  ck_assert_int_gt(n_faster + n_only, 0);
}
END_TEST

START_TEST(a_device_must_know_a_storage) {
  planc_graph *forward, *graph;
  planc_plan *plan;
  ok(planc_graph_read("graphs/resnet34.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 16,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 31,
                           .terms.budgets[PLANC_MEMORY_HOST] = 1 << 20,
                           .terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40};
  profile->device.links[PLANC_ROUTE_LOAD].bytes_per_second = 0;
  assert_fails(planc_make_plan(&problem, planc_policy_find("vdnn-all"), &plan), PLANC_USAGE, "nothing of storage");
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* --- A schedule that states storage ------------------------------------------------------------------------------- */

static const char chain_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "loss: z\n"
    "tensors:\n"
    "  x: input f32[N,64]\n"
    "  w: param f32[64]\n"
    "  y: f32[N,64]\n"
    "  z: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x, w], out: [y]}\n"
    "  - {op: b, type: t.b, in: [y], out: [z]}\n";

enum { X, W, Y, Z, N_BUFFERS }; /* in the order of first access */

/* w is parked in storage, and comes by way of the host; y goes to storage between the ops, and comes back. Then
 * it goes the same way again, and nobody reads it: lowering leaves that out. */
static void state_by_hand(planc_schedule *s) {
  int32_t r[N_BUFFERS], device = planc_schedule_device(s), host = planc_schedule_host(s), away;
  int32_t storage = planc_schedule_first_of(s, PLANC_MEMORY_STORAGE);
  ok(planc_schedule_boundary(s, W, storage, PLANC_BLANK, &away));
  ok(planc_schedule_offload(s, away, host));
  ok(planc_schedule_acquire(s, W, device, PLANC_BLANK, &r[W]));
  ok(planc_schedule_prefetch(s, r[W], 0));
  ok(planc_schedule_acquire(s, X, device, PLANC_BLANK, &r[X]));
  ok(planc_schedule_prefetch(s, r[X], 0));
  ok(planc_schedule_acquire(s, Y, device, PLANC_BLANK, &r[Y]));
  ok(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false));
  ok(planc_schedule_release(s, r[X]));
  ok(planc_schedule_release(s, r[W]));
  ok(planc_schedule_offload(s, r[Y], host));
  ok(planc_schedule_release(s, r[Y]));
  ok(planc_schedule_acquire(s, Y, storage, PLANC_BLANK, &away));
  ok(planc_schedule_move(s, away, planc_schedule_away(s, Y, host, 1)));
  ok(planc_schedule_offload(s, away, host));
  ok(planc_schedule_acquire(s, Y, device, PLANC_BLANK, &r[Y]));
  ok(planc_schedule_prefetch(s, r[Y], 1));
  ok(planc_schedule_offload(s, planc_schedule_away(s, Y, host, 1), storage));
  ok(planc_schedule_offload(s, planc_schedule_away(s, Y, storage, 1), host));
  ok(planc_schedule_acquire(s, Z, device, PLANC_BLANK, &r[Z]));
  ok(planc_schedule_exec(s, 1, 0, PLANC_BLANK, false));
  ok(planc_schedule_deliver(s, r[Z]));
  ok(planc_schedule_release(s, r[Y]));
  ok(planc_schedule_release(s, r[Z]));
  ok(planc_schedule_finish(s));
}

/* The memories that the body copies from and to, in its order, as letters: of the device, host, storage and user. */
static void list_copies(const planc_plan *plan, char *out) {
  planc_memory_kind *kinds = calloc((size_t)plan->n_residencies, sizeof *kinds);
  ck_assert_ptr_nonnull(kinds);
  for (int32_t r = 0; r < plan->n_boundary; r++) kinds[r] = plan->memories[plan->boundary[r].memory].kind;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *it = &plan->body.instrs[i];
    if (it->op == PLANC_INSTR_acquire) kinds[it->id] = plan->memories[it->memory].kind;
    if (it->op != PLANC_INSTR_copy) continue;
    *out++ = "dhsu"[it->aux == PLANC_USER ? PLANC_MEMORY_USER : kinds[it->aux]];
    *out++ = "dhsu"[it->id == PLANC_USER ? PLANC_MEMORY_USER : kinds[it->id]];
    *out++ = ' ';
  }
  *out = 0;
  free(kinds);
}

static void run_verified(const planc_plan *plan) {
  char folder[] = "/var/tmp/planrt-stated-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  for (int k = 0; k < 2; k++) {
    planrt_options options = {.synthetic = true, .verify = true, .poison = true, .concurrent = k > 0};
    planrt_session *session;
    options.storage_path = folder;
    ok(planrt_session_new(plan, &options, &session));
    ok(planrt_init(session));
    ok(planrt_run(session, 3));
    planrt_session_free(session);
  }
  ck_assert_int_eq(rmdir(folder), 0);
}

/* Without a limit of the host nothing is stored but what the schedule states, through two hops each way. */
START_TEST(a_schedule_states_what_is_stored) {
  static const int64_t rounds[] = {4};
  planc_graph *graph;
  planc_trace *trace;
  planc_costs *costs;
  planc_plan *plan;
  char copies[256];
  ok(planc_graph_parse(chain_text, sizeof chain_text - 1, "chain", &graph));
  planc_job job = {.graph = graph, .batch = 4, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  ok(planc_expand(&job, 1, &trace));
  ok(planc_costs_make(profile, graph, 1, rounds, &costs));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40};
  const planc_costs *of_jobs[] = {costs};
  planc_candidate candidate = {.trace = trace, .costs = of_jobs, .sub_batch = 4};
  ok(planc_candidate_schedule(&problem, &candidate));
  state_by_hand(candidate.schedule);
  ok(lower_for(&problem, "hand", &candidate, &plan));
  ok(planc_check(plan, NULL, NULL));
  list_copies(plan, copies);
  ck_assert_str_eq(copies, "sh hd ud dh hs sh hd du ");
  ck_assert_int_eq(plan->memories[plan->boundary[0].memory].kind, PLANC_MEMORY_STORAGE);
  ck_assert_int_eq(arena_of(plan, PLANC_MEMORY_STORAGE), 2 * 4096); /* w and y, a block each */
  run_verified(plan);
  planc_plan_free(plan);
  problem.terms.budgets[PLANC_MEMORY_STORAGE] = 0;
  assert_fails(lower_for(&problem, "hand", &candidate, &plan), PLANC_INTERNAL, "memories that the terms lack");
  problem.terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40;
  profile->device.links[PLANC_ROUTE_STORE].bytes_per_second = 0;
  assert_fails(lower_for(&problem, "hand", &candidate, &plan), PLANC_USAGE, "nothing of storage");
  planc_schedule_free(candidate.schedule);
  planc_costs_free(costs);
  planc_trace_free(trace);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage");
  TCase *tests = tcase_create("storage");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_set_timeout(tests, 300);
  tcase_add_test(tests, what_the_host_has_no_room_for_is_stored);
  tcase_add_loop_test(tests, a_smaller_host_stores_more_and_is_not_faster, 0, (int)(sizeof rows / sizeof *rows));
  tcase_add_loop_test(tests, storage_makes_no_plan_slower, 0, 2);
  tcase_add_test(tests, a_device_must_know_a_storage);
  tcase_add_test(tests, a_schedule_states_what_is_stored);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
