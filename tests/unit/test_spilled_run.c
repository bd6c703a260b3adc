/* Plans with data in storage, because the planner spills it there or because the schedule says so, run as the reference
 * does, in any order and with their memory poisoned, on one GPU and on several. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost/profile.h"
#include "plan/memories.h"
#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/lower_for.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

static char folder[] = "/var/tmp/planrt-spilled-XXXXXX";
static planc_profile *profile;

static void set_up(void) {
  memset(strchr(folder, 0) - 6, 'X', 6);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.links[PLANC_ROUTE_STORE] = (planc_link){.bytes_per_second = 1000000000, .latency_ns = 20000};
  profile->device.links[PLANC_ROUTE_LOAD] = (planc_link){.bytes_per_second = 2000000000, .latency_ns = 10000};
}

static void tear_down(void) {
  planc_profile_free(profile);
  ck_assert_int_eq(rmdir(folder), 0);
}

static int64_t arena_of(const planc_plan *plan, planc_memory_kind kind) {
  return planc_plan_memory(plan, kind)->arena_bytes;
}

static void run_in(const planc_plan *plan, planrt_options options, int64_t seed) {
  planrt_session *session;
  options.synthetic = options.verify = options.poison = true;
  options.storage_path = folder;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(seed < 0 ? planrt_run(session, 3) : planrt_run_interleaved(session, 3, (uint64_t)seed));
  planrt_session_free(session);
}

/* In file order, in orders drawn, and on threads with and without delays. */
static void run_all_ways(const planc_plan *plan, uint64_t seed) {
  ok(planc_check(plan, NULL, NULL));
  run_in(plan, (planrt_options){0}, -1);
  for (int64_t k = 0; k < 3; k++) run_in(plan, (planrt_options){0}, (int64_t)(3 * seed) + k);
  run_in(plan, (planrt_options){.concurrent = true}, -1);
  run_in(plan, (planrt_options){.concurrent = true, .jitter = seed + 1}, -1);
}

/* --- Policies ----------------------------------------------------------------------------------------------------- */

static const struct {
  const char *policy;
  int64_t budget, sub_batch;
  int32_t gpus;
} cases[] = {{"vdnn-all", 1 << 20, 0, 0}, {"naive", 1 << 20, 0, 0},    {"naive", 1 << 20, 2, 0},
             {"lms", 350 << 10, 0, 0},    {"vdnn-all", 1 << 20, 0, 2}, {"naive", 1 << 20, 2, 2}};

/* Each within shares of what it needs on the host. */
START_TEST(spilled_plans_run_as_the_reference_does) {
  planc_graph *forward, *graph;
  planc_plan *plan;
  const planc_policy *policy = planc_policy_find(cases[_i].policy);
  ok(planc_graph_read("graphs/tiny-transformer.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 6,
                           .terms.gpus = cases[_i].gpus,
                           .job.sub_batch = cases[_i].sub_batch,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = cases[_i].budget,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, policy, &plan));
  int64_t needs = pl_plan_peak(plan, PLANC_MEMORY_HOST);
  planc_plan_free(plan);
  problem.terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 30;
  for (int64_t percent = 90; percent >= 50; percent -= 20) {
    if (!is_sampled(_i + (int)percent / 20, 3)) continue;
    problem.terms.budgets[PLANC_MEMORY_HOST] = needs * percent / 100;
    ok_in(planc_make_plan(&problem, policy, &plan), policy->name);
    ck_assert_int_gt(arena_of(plan, PLANC_MEMORY_STORAGE), 0);
    run_all_ways(plan, (uint64_t)percent);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* --- Schedules drawn ---------------------------------------------------------------------------------------------- */

START_TEST(spilled_schedules_run_as_the_reference_does) {
  int32_t n_stored = 0;
  for (uint64_t seed = (uint64_t)_i * 8; seed < (uint64_t)_i * 8 + 8; seed++) {
    planc_graph *graph;
    planc_plan *plan;
    randcase c;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 12}, &graph));
    ok(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 2), &c));
    ok(randschedule_make(seed, NULL, &c));
    c.problem.terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40;
    c.problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
    ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    c.problem.terms.budgets[PLANC_MEMORY_HOST] = arena_of(plan, PLANC_MEMORY_HOST) * 2 / 3;
    planc_plan_free(plan);
    ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    n_stored += arena_of(plan, PLANC_MEMORY_STORAGE) > 0;
    for (int32_t m = 0; m < plan->n_memories; m++) plan->memories[m].budget_bytes = -1;
    run_all_ways(plan, seed);
    planc_plan_free(plan);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_stored, 2);
}
END_TEST

/* Storage is stated, without a limit of the host and with one: then lowering keeps there what is stated on the host,
 * too.
 */
START_TEST(schedules_that_state_storage_run_as_the_reference_does) {
  int64_t stated = 0, more = 0;
  for (uint64_t seed = (uint64_t)_i * 8; seed < (uint64_t)_i * 8 + 8; seed++) {
    planc_graph *graph;
    planc_plan *plan;
    randcase c;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 12}, &graph));
    ok(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 2), &c));
    c.problem.terms.budgets[PLANC_MEMORY_STORAGE] = INT64_C(1) << 40;
    c.problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
    ok(randschedule_make(seed, &(randschedule_options){.stores = true}, &c));
    ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    int64_t first = arena_of(plan, PLANC_MEMORY_STORAGE);
    c.problem.terms.budgets[PLANC_MEMORY_HOST] = arena_of(plan, PLANC_MEMORY_HOST) * 2 / 3;
    run_all_ways(plan, seed);
    planc_plan_free(plan);
    ok(lower_for(&c.problem, "random", &c.candidate, &plan));
    stated += first > 0;
    more += first > 0 && arena_of(plan, PLANC_MEMORY_STORAGE) > first;
    for (int32_t m = 0; m < plan->n_memories; m++) plan->memories[m].budget_bytes = -1;
    run_all_ways(plan, seed);
    planc_plan_free(plan);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(stated, 1);
  ck_assert_int_gt(more, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("spilled_run");
  TCase *tests = tcase_create("spilled_run");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_set_timeout(tests, 300);
  tcase_add_loop_test(tests, spilled_plans_run_as_the_reference_does, 0, (int)(sizeof cases / sizeof *cases));
  tcase_add_loop_test(tests, spilled_schedules_run_as_the_reference_does, 0, 4);
  tcase_add_loop_test(tests, schedules_that_state_storage_run_as_the_reference_does, 0, 6);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
