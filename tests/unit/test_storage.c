/* A storage below the host: what the host's budget has no room for is kept there, in plans that the checker accepts. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

static planc_profile *profile;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.store = (planc_link){.bytes_per_second = 1000000000, .latency_ns = 20000};
  profile->device.load = (planc_link){.bytes_per_second = 2000000000, .latency_ns = 10000};
}

static void tear_down(void) {
  planc_profile_free(profile);
}

static int64_t arena_of(const planc_plan *plan, planc_memory_kind kind) {
  return planc_plan_memory(plan, kind)->arena_bytes;
}

static void assert_same_plans(const planc_plan *a, const planc_plan *b) {
  char *text_a, *text_b;
  size_t length_a, length_b;
  ok(planc_plan_print(a, &text_a, &length_a));
  ok(planc_plan_print(b, &text_b, &length_b));
  ck_assert_uint_eq(length_a, length_b);
  ck_assert(memcmp(text_a, text_b, length_a) == 0);
  free(text_a);
  free(text_b);
}

/* How many copies of the body pass the devices by. */
static int32_t tier_copies(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    n += instr->op == PLANC_INSTR_copy && planc_way_of_stream(plan, instr->stream) == PLANC_COPY_PAST;
  }
  return n;
}

/* Lowers a case within a share of what it needs on the host; true when that could be had. */
static bool fits_in_share(randcase *c, int64_t needs, int64_t percent, int32_t *n_copies) {
  planc_plan *plan;
  planc_simulation simulation;
  c->problem.host_budget_bytes = needs * percent / 100;
  ok_in(planc_lower(&c->problem, "random", &c->candidate, &plan), "lowering");
  bool fits = arena_of(plan, PLANC_MEMORY_HOST) <= c->problem.host_budget_bytes;
  *n_copies += tier_copies(plan);
  if (fits) ck_assert_int_gt(arena_of(plan, PLANC_MEMORY_STORAGE), 0);
  for (int32_t m = 0; m < plan->n_memories; m++) plan->memories[m].budget_bytes = -1;
  ok_in(planc_check(plan, NULL, NULL), "check");
  ok_in(planc_simulate(plan, NULL, NULL, &simulation), "simulation");
  planc_plan_free(plan);
  return fits;
}

START_TEST(what_the_host_has_no_room_for_is_stored) {
  int32_t n_copies = 0, n_fit = 0, n_tried = 0;
  for (uint64_t seed = 0; seed < 120; seed++) {
    planc_graph *graph;
    planc_plan *whole, *same;
    randcase c;
    randgraph_options options = {.max_ops = 12, .max_elements = 256};
    ok_in(randgraph_make(seed, &options, &graph), "graph");
    ok_in(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 2), &c), "case");
    ok_in(randschedule_make(seed, NULL, &c), "schedule");
    c.problem.host_budget_bytes = -1;
    ok_in(planc_lower(&c.problem, "random", &c.candidate, &whole), "lowering");
    int64_t needs = arena_of(whole, PLANC_MEMORY_HOST);
    c.problem.storage_budget_bytes = INT64_C(1) << 40;
    ok_in(planc_lower(&c.problem, "random", &c.candidate, &same), "lowering");
    assert_same_plans(whole, same);
    for (int64_t percent = 25; needs > 0 && percent < 100; percent += 25, n_tried++)
      n_fit += fits_in_share(&c, needs, percent, &n_copies);
    planc_plan_free(whole);
    planc_plan_free(same);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_tried, 200);
  ck_assert_int_gt(n_fit, n_tried / 4);
  ck_assert_int_gt(n_copies, 500);
}
END_TEST

/* ResNet-34 on vdnn-all: the host's budget holds, nothing is stored that has room, and less of the host takes longer.
 */
START_TEST(a_smaller_host_stores_more) {
  planc_graph *forward, *graph;
  int64_t stored = 0;
  ok(planc_graph_read("graphs/resnet34.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_problem problem = {.graph = graph,
                           .profile = profile,
                           .batch = 16,
                           .budget_bytes = INT64_C(1) << 31,
                           .host_budget_bytes = -1,
                           .storage_budget_bytes = INT64_C(1) << 40};
  const planc_policy *policy = planc_policy_find("vdnn-all");
  planc_plan *plan;
  ok(planc_make_plan(&problem, policy, &plan));
  int64_t needs = arena_of(plan, PLANC_MEMORY_HOST);
  ck_assert_int_eq(arena_of(plan, PLANC_MEMORY_STORAGE), 0);
  planc_plan_free(plan);
  for (int64_t percent = 80; percent >= 20; percent -= 20) {
    problem.host_budget_bytes = needs / 100 * percent;
    ok_in(planc_make_plan(&problem, policy, &plan), "plan");
    ok_in(planc_check(plan, NULL, NULL), "check");
    ck_assert_int_le(arena_of(plan, PLANC_MEMORY_HOST), problem.host_budget_bytes);
    ck_assert_int_ge(arena_of(plan, PLANC_MEMORY_STORAGE), needs - problem.host_budget_bytes);
    ck_assert_int_gt(arena_of(plan, PLANC_MEMORY_STORAGE), stored);
    stored = arena_of(plan, PLANC_MEMORY_STORAGE);
    planc_plan_free(plan);
  }
  problem.storage_budget_bytes = stored - 1;
  assert_fails(planc_make_plan(&problem, policy, &plan), PLANC_INFEASIBLE, "bytes of storage");
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

START_TEST(a_device_must_know_a_storage) {
  planc_graph *forward, *graph;
  planc_plan *plan;
  ok(planc_graph_read("graphs/resnet34.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_problem problem = {.graph = graph,
                           .profile = profile,
                           .batch = 16,
                           .budget_bytes = INT64_C(1) << 31,
                           .host_budget_bytes = 1 << 20,
                           .storage_budget_bytes = INT64_C(1) << 40};
  profile->device.load.bytes_per_second = 0;
  assert_fails(planc_make_plan(&problem, planc_policy_find("vdnn-all"), &plan), PLANC_USAGE, "nothing of storage");
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage");
  TCase *tests = tcase_create("storage");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_set_timeout(tests, 300);
  tcase_add_test(tests, what_the_host_has_no_room_for_is_stored);
  tcase_add_test(tests, a_smaller_host_stores_more);
  tcase_add_test(tests, a_device_must_know_a_storage);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
