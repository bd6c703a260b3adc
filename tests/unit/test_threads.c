/* Several threads plan, print, check and simulate with one graph and one profile, jobs alone and mixes, and ask one
 * evaluator: each gets what one alone gets. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/colocate.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planner/evaluate.h"
#include "planner/memory/placement_cache.h"
#include "tests/support/least.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { THREADS = 3, MOST_POLICIES = 32, JOBS = 2 };

typedef struct work {
  const planc_problem *problem;
  const planc_evaluator *evaluator;
  const planc_mix *mix;
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

/* What each policy chooses, judged by the one evaluator that all threads have. */
static planc_status judge(work *w, int32_t k, const planc_policy *policy) {
  planc_candidate candidate = {0};
  planc_taken taken = {0};
  if (policy->supports & PLANC_POLICY_CHOOSES) return NULL;
  planc_status status = policy->make(w->evaluator, &candidate);
  if (!status) status = w->evaluator->simulate(w->evaluator, &candidate, NULL, NULL, &taken);
  planc_candidate_free(&candidate);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return NULL;
  }
  w->period_ns[k] = taken.period_ns;
  return status;
}

static void *judge_all(void *user) {
  work *w = user;
  for (int32_t k = 0; !w->status && planc_policies()[k].name; k++) w->status = judge(w, k, &planc_policies()[k]);
  return NULL;
}

static planc_status colocate(work *w, int32_t k, const planc_mix_policy *policy) {
  planc_mix_share shares[JOBS];
  planc_plan *plan;
  size_t length;
  if (!policy->make || (policy->supports & PLANC_MIX_DEADLINES)) return NULL;
  PLANC_TRY(planc_mix_resolve(w->mix, shares));
  planc_status status = planc_colocate(w->mix, policy, shares, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return NULL;
  }
  PLANC_TRY(status);
  status = planc_plan_print(plan, &w->plans[k], &length);
  if (!status) status = planc_check(plan, NULL, NULL);
  w->period_ns[k] = planc_mix_throughput(shares, JOBS);
  planc_plan_free(plan);
  return status;
}

static void *colocate_all(void *user) {
  work *w = user;
  for (int32_t k = 0; !w->status && planc_mix_policies()[k].name; k++)
    w->status = colocate(w, k, &planc_mix_policies()[k]);
  return NULL;
}

static bool is_same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Several threads do what one does afterwards. Returns how many plans or times they came to. */
static int32_t do_at_once(void *(*all)(void *), const work *what) {
  work works[THREADS + 1];
  pthread_t threads[THREADS];
  for (int32_t t = 0; t <= THREADS; t++) works[t] = *what;
  for (int32_t t = 0; t < THREADS; t++) ck_assert_int_eq(pthread_create(&threads[t], NULL, all, &works[t]), 0);
  for (int32_t t = 0; t < THREADS; t++) ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
  (void)all(&works[THREADS]);
  int32_t n = 0;
  for (int32_t t = 0; t <= THREADS; t++) {
    ok(works[t].status);
    for (int32_t k = 0; k < MOST_POLICIES; k++) {
      ck_assert(is_same_text(works[t].plans[k], works[THREADS].plans[k]));
      ck_assert_int_eq(works[t].period_ns[k], works[THREADS].period_ns[k]);
      n += works[t].period_ns[k] > 0;
    }
  }
  for (int32_t t = 0; t <= THREADS; t++)
    for (int32_t k = 0; k < MOST_POLICIES; k++) free(works[t].plans[k]);
  return n;
}

static planc_graph *make_graph(uint64_t seed) {
  planc_graph *graph;
  randgraph_options options = {.max_ops = 30};
  ok(randgraph_make(seed, &options, &graph));
  return graph;
}

/* In less memory than would hold all. */
static planc_problem make_problem(const planc_graph *graph, const planc_profile *profile) {
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 4, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(find_least_bytes(&problem, planc_policy_find("none"), &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = problem.terms.budgets[PLANC_MEMORY_DEVICE] / 10 * 8;
  return problem;
}

START_TEST(threads_share_what_they_read) {
  planc_graph *graph = make_graph((uint64_t)_i);
  planc_profile *profile;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  planc_problem problem = make_problem(graph, profile);
  ck_assert_int_gt(do_at_once(plan_all, &(work){.problem = &problem}), THREADS);
  planc_profile_free(profile);
  planc_graph_free(graph);
}
END_TEST

/* They share what placements it knows, too. */
START_TEST(threads_ask_one_evaluator) {
  planc_graph *graph = make_graph((uint64_t)_i);
  planc_profile *profile;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  planc_problem problem = make_problem(graph, profile);
  ok(pl_placement_cache_make(&problem.terms.placement_cache));
  planc_evaluator evaluator = pl_evaluator_of(&problem);
  ck_assert_int_gt(do_at_once(judge_all, &(work){.evaluator = &evaluator}), THREADS);
  pl_placement_cache_free(problem.terms.placement_cache);
  planc_profile_free(profile);
  planc_graph_free(graph);
}
END_TEST

START_TEST(threads_share_the_jobs_of_a_mix) {
  static const int32_t iterations[JOBS];
  planc_graph *graphs[JOBS] = {make_graph((uint64_t)_i), make_graph((uint64_t)_i + 1)};
  planc_profile *profile;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  planc_workload jobs[JOBS];
  for (int32_t j = 0; j < JOBS; j++) jobs[j] = (planc_workload){.graph = graphs[j], .profile = profile, .batch = 4};
  planc_mix mix = {.terms.budgets = {INT64_C(1) << 30, -1}, .n_jobs = JOBS, .jobs = jobs, .iterations = iterations};
  ck_assert_int_gt(do_at_once(colocate_all, &(work){.mix = &mix}), THREADS);
  planc_profile_free(profile);
  for (int32_t j = 0; j < JOBS; j++) planc_graph_free(graphs[j]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("threads");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, threads_share_what_they_read, 0, sampled(12));
  tcase_add_loop_test(tests, threads_ask_one_evaluator, 0, sampled(6));
  tcase_add_loop_test(tests, threads_share_the_jobs_of_a_mix, 0, sampled(6));
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
