/* Policies for mixes know candidates by their evaluator alone: of all jobs together, of each alone, and of requests. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/colocate/mix_evaluate.h"
#include "planner/colocate/responses.h"
#include "tests/support/broken.h"
#include "tests/support/graphtext.h"
#include "tests/support/nets.h"
#include "tests/support/unit.h"

enum { JOBS = 2 };

static planc_profile *profile;
static planc_graph *graphs[JOBS];
static planc_workload jobs[JOBS];
static planc_mix mix;
static planc_target all; /* of both jobs together */
static planc_mix_share shares[JOBS];
static const int32_t iterations[JOBS] = {1, 2};
static const int64_t deadlines[JOBS] = {0, INT64_C(1) << 40};

static void make_job(int32_t job, const char *text, int64_t batch) {
  planc_graph *forward = graph_of(text);
  ok(planc_graph_train(forward, PLANC_ADAM, &graphs[job]));
  planc_graph_free(forward);
  jobs[job] = (planc_workload){.graph = graphs[job], .profile = profile, .batch = batch};
}

/* In so little memory that jobs swap. */
static void set_up(void) {
  planc_least least;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  make_job(0, WIDE_NET, 64);
  make_job(1, NARROW_NET("narrow"), 64);
  mix = (planc_mix){.terms.budgets = {planc_profile_device(profile)->memory_bytes, -1},
                    .n_jobs = JOBS,
                    .jobs = jobs,
                    .iterations = iterations,
                    .deadlines_ns = deadlines};
  ok(planc_mix_resolve(&mix, shares));
  ok(planc_mix_find_least(&mix, planc_mix_policy_find("temporal"), shares, PLANC_MEMORY_DEVICE, NULL, &least));
  planc_plan_free(least.plan);
  mix.terms.budgets[PLANC_MEMORY_DEVICE] = least.bytes + least.bytes / 4;
  mix.terms.budgets[PLANC_MEMORY_HOST] = INT64_C(1) << 40;
  all = (planc_target){.terms = &mix.terms, .profile = profile};
}

static void tear_down(void) {
  for (int32_t j = 0; j < JOBS; j++) planc_graph_free(graphs[j]);
  planc_profile_free(profile);
}

/* --- The planner's own -------------------------------------------------------------------------------------------- */

/* Requests take as long as the shares of the whole way to a plan tell. */
START_TEST(it_says_how_long_requests_take) {
  const planc_mix_policy *policy = planc_mix_policy_find("preemptive");
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&mix, &all);
  planc_candidate candidate = {0};
  planc_plan *plan;
  int64_t ns[JOBS], of_plan[JOBS];
  ok(policy->make(&evaluator, shares, &candidate));
  ok(evaluator.respond(&evaluator, &candidate, ns));
  ok(planc_colocate(&mix, policy, shares, &plan));
  ok(pl_responses_find(plan, of_plan));
  for (int32_t j = 0; j < JOBS; j++) {
    ck_assert_int_eq(ns[j], shares[j].response_ns);
    ck_assert_int_eq(ns[j], of_plan[j]);
    ck_assert_int_gt(ns[j], shares[j].alone_ns);
  }
  planc_plan_free(plan);
  planc_candidate_free(&candidate);
}
END_TEST

/* A job alone is judged on the terms that are given, and the fastest policy is the one that `best` takes. */
START_TEST(jobs_alone_are_on_terms_of_their_own) {
  const planc_mix_evaluator evaluator = pl_mix_evaluator_of(&mix, &all);
  for (int32_t j = 0; j < JOBS; j++) {
    planc_problem problem = planc_mix_problem(&mix, j);
    const planc_evaluator alone = evaluator.alone(&evaluator, &problem);
    const planc_policy *fastest;
    planc_candidate candidate = {0};
    planc_plan *plan;
    int64_t peak;
    ok(planc_make_plan(&problem, planc_policy_find("best"), &plan));
    ok(evaluator.fastest(&evaluator, &problem, &fastest));
    ck_assert_str_eq(fastest->name, plan->policy);
    ok(fastest->make(&alone, &candidate));
    ok(alone.hold(&alone, &candidate));
    ok(alone.peak(&alone, &candidate, &peak));
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = peak - 1;
    assert_fails(alone.hold(&alone, &candidate), PLANC_INFEASIBLE, "device memory");
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = 1;
    assert_fails(evaluator.fastest(&evaluator, &problem, &fastest), PLANC_INFEASIBLE, "");
    planc_candidate_free(&candidate);
    planc_plan_free(plan);
  }
}
END_TEST

/* --- What goes wrong ---------------------------------------------------------------------------------------------- */

static int broken_alone;
static planc_evaluator alone_with_one_broken(const planc_mix_evaluator *evaluator, const planc_problem *problem) {
  (void)evaluator;
  const planc_mix_evaluator whole = pl_mix_evaluator_of(&mix, &all);
  planc_evaluator alone = whole.alone(&whole, problem);
  broken_make(broken_alone, &alone);
  return alone;
}
static planc_status no_fastest(const planc_mix_evaluator *evaluator, const planc_problem *problem,
                               const planc_policy **out) {
  (void)evaluator;
  (void)problem;
  (void)out;
  return broken_down();
}
static planc_status no_response(const planc_mix_evaluator *evaluator, const planc_candidate *candidate,
                                int64_t *out_ns) {
  (void)evaluator;
  (void)candidate;
  (void)out_ns;
  return broken_down();
}

/* Whatever of an evaluator fails: a policy that asks it fails with that, and asks it once. How many of them ask. */
static int count_failing(const planc_mix_evaluator *evaluator, const char *what) {
  int used = 0;
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
    planc_candidate candidate = {0};
    planc_mix_estimate estimate = {0};
    broken_failures = 0;
    planc_status status =
        policy->make ? policy->make(evaluator, shares, &candidate) : policy->estimate(evaluator, shares, &estimate);
    ck_assert_msg((planc_status_code(status) == PLANC_INTERNAL) == (broken_failures > 0), "%s, %s", policy->name, what);
    ck_assert_msg(broken_failures <= 1, "%s asks for %s again", policy->name, what);
    used += broken_failures;
    planc_status_free(status);
    planc_candidate_free(&candidate);
  }
  return used;
}

/* In little memory and in much. */
static int count_in_both(const planc_mix_evaluator *evaluator, const char *what) {
  const int64_t tight = mix.terms.budgets[PLANC_MEMORY_DEVICE];
  int used = count_failing(evaluator, what);
  mix.terms.budgets[PLANC_MEMORY_DEVICE] = 2 * tight;
  used += count_failing(evaluator, what);
  mix.terms.budgets[PLANC_MEMORY_DEVICE] = tight;
  return used;
}

START_TEST(failures_are_passed_on) {
  static const char *const names[BROKEN_N_FUNCTIONS] = {"peak", "hold",     "hold_to_host", "place",
                                                        "time", "simulate", "live"};
  for (int function = 0; function < BROKEN_N_FUNCTIONS; function++) {
    planc_mix_evaluator together = pl_mix_evaluator_of(&mix, &all), apart = together;
    broken_make(function, &together.all);
    broken_alone = function;
    apart.alone = alone_with_one_broken;
    int used = count_in_both(&together, names[function]) + count_in_both(&apart, names[function]);
    ck_assert_msg(used > 0, "nobody asks for %s", names[function]);
  }
  planc_mix_evaluator evaluator = pl_mix_evaluator_of(&mix, &all);
  evaluator.fastest = no_fastest;
  ck_assert_int_gt(count_in_both(&evaluator, "fastest"), 0);
  evaluator = pl_mix_evaluator_of(&mix, &all);
  evaluator.respond = no_response;
  ck_assert_int_eq(count_in_both(&evaluator, "respond"), 2);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("mix evaluator");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, it_says_how_long_requests_take);
  tcase_add_test(tests, jobs_alone_are_on_terms_of_their_own);
  tcase_add_test(tests, failures_are_passed_on);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
