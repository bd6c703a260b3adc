/* Several threads plan, print, check and simulate with one graph and one profile: each gets what one alone gets. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "tests/support/least.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { THREADS = 3, MOST_POLICIES = 32 };

typedef struct work {
  const planc_problem *problem;
  planc_status status;
  char *plans[MOST_POLICIES]; /* as text, by policy; NULL where there is none */
  int64_t period_ns[MOST_POLICIES];
} work;

static planc_status plan(work *w, int32_t k, const planc_policy *policy) {
  planc_plan *plan;
  planc_simulation simulation;
  size_t length;
  planc_status status = planc_make_plan(w->problem, policy, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return NULL;
  }
  PLANC_TRY(status);
  status = planc_plan_print(plan, &w->plans[k], &length);
  if (!status && !(policy->supports & PLANC_POLICY_SIMULATED)) status = planc_check(plan, NULL, NULL);
  if (!status) status = planc_simulate(plan, NULL, &simulation);
  if (!status) w->period_ns[k] = simulation.period_ns;
  planc_plan_free(plan);
  return status;
}

static void *plan_all(void *user) {
  work *w = user;
  for (int32_t k = 0; !w->status && planc_policies()[k].name; k++) w->status = plan(w, k, &planc_policies()[k]);
  return NULL;
}

static bool is_same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

START_TEST(threads_share_what_they_read) {
  planc_graph *graph;
  planc_profile *profile;
  randgraph_options options = {.max_ops = 30};
  ok(randgraph_make((uint64_t)_i, &options, &graph));
  ok(planc_profile_read("profiles/k40m.json", &profile));
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 4, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(find_least_bytes(&problem, planc_policy_find("none"), &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = problem.terms.budgets[PLANC_MEMORY_DEVICE] / 10 * 8;
  work works[THREADS + 1];
  pthread_t threads[THREADS];
  for (int32_t t = 0; t <= THREADS; t++) works[t] = (work){.problem = &problem};
  for (int32_t t = 0; t < THREADS; t++) ck_assert_int_eq(pthread_create(&threads[t], NULL, plan_all, &works[t]), 0);
  for (int32_t t = 0; t < THREADS; t++) ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
  plan_all(&works[THREADS]);
  int32_t n_plans = 0;
  for (int32_t t = 0; t <= THREADS; t++) {
    ok(works[t].status);
    for (int32_t k = 0; k < MOST_POLICIES; k++) {
      ck_assert(is_same_text(works[t].plans[k], works[THREADS].plans[k]));
      ck_assert_int_eq(works[t].period_ns[k], works[THREADS].period_ns[k]);
      n_plans += works[t].plans[k] != NULL;
    }
  }
  for (int32_t t = 0; t <= THREADS; t++)
    for (int32_t k = 0; k < MOST_POLICIES; k++) free(works[t].plans[k]);
  ck_assert_int_gt(n_plans, THREADS);
  planc_profile_free(profile);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("threads");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, threads_share_what_they_read, 0, 12);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
