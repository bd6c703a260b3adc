/* Profiles that list what the code of algorithms takes on the device: a plan is charged with that of its own
 * algorithms, what the others leave is used, and the least budget is the least. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/check.h"
#include "planc/colocate.h"
#include "planc/passive.h"
#include "planc/policy.h"
#include "tests/support/forward.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/file.h"
#include "util/math.h"

enum { BATCH = 4, GRAPHS = 30, MIXES = 12, WORKSPACE = 1 << 20, SLOW_CODE = 20000, RESERVED = 5000, TEXT = 4096 };

/* --- One convolution, two algorithms ------------------------------------------------------------------------------ */

static planc_graph *graph;

static void make_graph(void) {
  forward_begin();
  forward_tensor("x", "input f32[N,8,8,8]");
  forward_tensor("w", "param f32[8,8,3,3]");
  forward_tensor("y", "f32[N,8,8,8]");
  forward_op("conv", "conv2d", "x w", "y", "stride=1,1 pad=1,1");
  forward_classifier("y", 512);
  planc_graph *forward = forward_finish();
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
}
static void free_graph(void) {
  planc_graph_free(graph);
}

/* The k40m with `added`, a section and its comma. */
static planc_profile *profile_with(const char *added) {
  static const char first[] = "\"planc-profile\": 1,";
  char *text = NULL;
  size_t length;
  ok(pl_file_read("profiles/k40m.json", 1 << 20, &text, &length));
  const char *at = strstr(text, first) + sizeof first - 1;
  char *whole = malloc(length + TEXT);
  ck_assert_ptr_nonnull(whole);
  int size = snprintf(whole, length + TEXT, "%.*s %s %s", (int)(at - text), text, added, at);
  planc_profile *profile;
  ok(planc_profile_parse(whole, (size_t)size, "k40m", &profile));
  free(whole);
  free(text);
  profile->device.reserved_bytes = RESERVED;
  return profile;
}

/* "fast" has a workspace, "slow" has none. */
static planc_profile *two_algorithms(int64_t fast_code, int64_t slow_code) {
  char text[TEXT];
  snprintf(text, sizeof text,
           "\"code\": {\"slow\": %lld, \"fast\": %lld},"
           "\"ops\": [{\"op\": \"conv\", \"variants\": ["
           "{\"algorithm\": \"fast\", \"deterministic\": true, \"points\": [{\"batch\": %d, \"time_ns\": 5000, "
           "\"workspace_bytes\": %d, \"busy_ppm\": 1000000}]},"
           "{\"algorithm\": \"slow\", \"deterministic\": true, \"points\": [{\"batch\": %d, \"time_ns\": 90000000, "
           "\"workspace_bytes\": 0, \"busy_ppm\": 1000000}]}]}],",
           (long long)slow_code, (long long)fast_code, BATCH, WORKSPACE, BATCH);
  return profile_with(text);
}

static planc_problem problem_of(const planc_profile *profile, int64_t budget) {
  return (planc_problem){.job.graph = graph,
                         .job.profile = profile,
                         .job.batch = BATCH,
                         .terms.budgets[PLANC_MEMORY_DEVICE] = budget,
                         .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

static bool runs(const planc_plan *plan, const char *algorithm) {
  bool found = false;
  for (int32_t a = 0; a < plan->n_algorithms; a++) found |= strcmp(plan->algorithms[a], algorithm) == 0;
  return found;
}

static void checks(const planc_plan *plan) {
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_DEVICE], plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE]);
  ck_assert_int_le(report.peak_bytes[PLANC_MEMORY_DEVICE], device_of(plan)->budget_bytes);
  ck_assert_int_eq(plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE],
                   device_of(plan)->arena_bytes + device_of(plan)->reserved_bytes);
}

/* A plan at the budget runs one of the two, is charged with that one's code, and gives its peak. */
static int64_t peak_at(const planc_profile *profile, int64_t budget, const char *with, const char *without) {
  planc_problem problem = problem_of(profile, budget);
  planc_plan *plan;
  ok_in(planc_make_plan(&problem, planc_policy_find("none"), &plan), with);
  ck_assert(runs(plan, with) && !runs(plan, without));
  ck_assert_int_eq(device_of(plan)->reserved_bytes, RESERVED + planc_profile_code(profile, with));
  checks(plan);
  int64_t peak = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
  planc_plan_free(plan);
  return peak;
}

static int64_t least_of(const planc_problem *problem, const planc_policy *policy) {
  int64_t least;
  ok_in(find_least_bytes(problem, policy, &least), policy->name);
  return least;
}

static const int64_t fast_codes[] = {1000, 500000, 50000000};

/* In its own peak a plan fits, whatever the algorithms take that it does not run; in less it has the other. */
START_TEST(a_plan_is_charged_with_the_code_it_runs) {
  planc_profile *profile = two_algorithms(fast_codes[_i], SLOW_CODE);
  int64_t fast = peak_at(profile, INT64_C(1) << 32, "fast", "slow");
  ck_assert_int_eq(peak_at(profile, fast, "fast", "slow"), fast);
  ck_assert_int_lt(peak_at(profile, fast - 1, "slow", "fast"), fast);
  planc_problem problem = problem_of(profile, 0);
  int64_t slow = peak_at(profile, least_of(&problem, planc_policy_find("none")), "slow", "fast");
  ck_assert_int_eq(peak_at(profile, slow, "slow", "fast"), slow);
  planc_plan *plan;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = slow - 1;
  assert_fails(planc_make_plan(&problem, planc_policy_find("none"), &plan), PLANC_INFEASIBLE, "");
  planc_profile_free(profile);
}
END_TEST

/* The faster algorithm alone needs no memory, but its code does: then the one with a workspace may be all that fits. */
START_TEST(on_demand_too) {
  planc_profile *profile = two_algorithms(fast_codes[_i], SLOW_CODE);
  planc_problem problem = problem_of(profile, INT64_C(1) << 32);
  planc_passive fast, again, slow;
  ok(planc_simulate_passive(&problem, &fast));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = fast.peak_bytes;
  ok(planc_simulate_passive(&problem, &again));
  ck_assert_int_eq(again.peak_bytes, fast.peak_bytes);
  ck_assert_int_eq(again.steady.time_ns, fast.steady.time_ns);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = fast.peak_bytes - fast_codes[_i] - WORKSPACE + SLOW_CODE;
  ok(planc_simulate_passive(&problem, &slow));
  ck_assert_int_le(slow.peak_bytes, problem.terms.budgets[PLANC_MEMORY_DEVICE]);
  ck_assert_int_gt(slow.steady.time_ns, fast.steady.time_ns);
  planc_profile_free(profile);
}
END_TEST

/* The ideal device is charged as well. */
START_TEST(what_is_only_simulated_has_code) {
  planc_profile *profile = two_algorithms(fast_codes[_i], SLOW_CODE);
  planc_problem problem = problem_of(profile, 1);
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find("ideal"), &plan));
  ck_assert_int_eq(device_of(plan)->reserved_bytes, RESERVED + fast_codes[_i]);
  ck_assert_int_eq(plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE],
                   device_of(plan)->arena_bytes + device_of(plan)->reserved_bytes);
  planc_plan_free(plan);
  planc_profile_free(profile);
}
END_TEST

/* --- Every policy on random graphs -------------------------------------------------------------------------------- */

static planc_profile *with_code(uint64_t seed, const planc_profile *read, pl_labelled code[4]) {
  static const char *const names[] = {"fft", "gemm", "implicit-gemm", "winograd"}; /* ascending */
  planc_profile *profile = malloc(sizeof *profile);
  ck_assert_ptr_nonnull(profile);
  *profile = *read;
  for (int k = 0; k < 4; k++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    code[k] = (pl_labelled){names[k], (int64_t)(seed >> 40) % (k == 2 ? 3000 : 40000)};
  }
  profile->code = (pl_labels){4, code};
  return profile;
}

static char *print(const planc_plan *plan) {
  char *text;
  size_t length;
  ok(planc_plan_print(plan, &text, &length));
  return text;
}

static planc_status make_within(planc_problem problem, int64_t budget, const planc_policy *policy, planc_plan **out) {
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = budget;
  problem.terms.settings.effort = 1; /* short searches: there are very many plans */
  return planc_make_plan(&problem, policy, out);
}

/* False: there is no plan. */
static bool plan_is_right(planc_problem problem, int64_t budget, const planc_policy *policy) {
  planc_plan *plan;
  planc_status status = make_within(problem, budget, policy, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return false;
  }
  ok_in(status, policy->name);
  int64_t code = 0;
  for (int32_t a = 0; a < plan->n_algorithms; a++) code += planc_profile_code(problem.job.profile, plan->algorithms[a]);
  ck_assert_int_eq(device_of(plan)->reserved_bytes, planc_profile_device(problem.job.profile)->reserved_bytes + code);
  checks(plan);
  planc_plan_free(plan);
  return true;
}

static void plan_comes_again(planc_problem problem, int64_t budget, const planc_policy *policy) {
  planc_plan *plan, *again;
  ok_in(make_within(problem, budget, policy, &plan), policy->name);
  ok_in(make_within(problem, budget, policy, &again), policy->name);
  char *a = print(plan), *b = print(again);
  ck_assert_str_eq(a, b);
  free(a);
  free(b);
  planc_plan_free(again);
  planc_plan_free(plan);
}

/* Whoever fits with nothing but baselines fits; and so does whoever has room for all code and fits without any. */
static void policy_is_right(planc_problem problem, const planc_profile *plain, const planc_policy *policy, int seed) {
  planc_least found;
  ok_in(planc_find_least(&problem, policy, PLANC_MEMORY_DEVICE, NULL, &found), policy->name);
  int64_t least = found.bytes;
  planc_plan_free(found.plan);
  ck_assert_msg(plan_is_right(problem, least, policy), "%s, graph %d: least budget fails", policy->name, seed);
  if (seed % 4 == 0) plan_comes_again(problem, least, policy);
  ck_assert_msg(!found.is_least || !plan_is_right(problem, least - PLANC_ALIGNMENT, policy),
                "%s, graph %d: less than least fits", policy->name, seed);
  for (int64_t eighths = 9; eighths <= 16; eighths += 3) plan_is_right(problem, least / 8 * eighths, policy);
  planc_profile baselines = *problem.job.profile;
  baselines.baselines_only = true;
  planc_problem other = problem;
  other.job.profile = &baselines;
  ck_assert_msg(plan_is_right(problem, least_of(&other, policy), policy), "%s, graph %d: only baselines fit",
                policy->name, seed);
  other.job.profile = plain;
  int64_t enough = least_of(&other, policy) + planc_profile_code_of_all(problem.job.profile);
  ck_assert_msg(plan_is_right(problem, enough, policy), "%s, graph %d: %lld with all code do not fit", policy->name,
                seed, (long long)enough);
}

START_TEST(plans_of_random_graphs_are_right) {
  planc_profile *plain;
  pl_labelled code[4];
  planc_graph *random;
  randgraph_options options = {.max_ops = 16, .max_elements = _i % 4 == 1 ? 2048 : 0};
  ok(planc_profile_read("profiles/k40m.json", &plain));
  ok(randgraph_make(7000 + (uint64_t)_i, &options, &random));
  planc_profile *profile = with_code((uint64_t)_i + 1, plain, code);
  planc_problem problem = {
      .job.graph = random, .job.profile = profile, .job.batch = 1 + _i % 5, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    if (policy->supports & PLANC_POLICY_CHOOSES && _i % 3 > 0) continue; /* it makes the plans of all others */
    problem.terms.gpus = _i % 6 == 5 ? 2 : 0;
    policy_is_right(problem, plain, policy, _i);
  }
  free(profile);
  planc_profile_free(plain);
  planc_graph_free(random);
}
END_TEST

/* --- Two jobs ----------------------------------------------------------------------------------------------------- */

/* What fits with nothing but baselines fits, of several jobs as well. */
START_TEST(mixes_fall_back_to_baselines) {
  planc_profile *plain;
  pl_labelled code[4];
  planc_graph *graphs[2];
  randgraph_options options = {.max_ops = 16, .max_elements = 2048};
  ok(planc_profile_read("profiles/k40m.json", &plain));
  for (int j = 0; j < 2; j++) ok(randgraph_make(7100 + 2 * (uint64_t)_i + (uint64_t)j, &options, &graphs[j]));
  planc_profile *profile = with_code((uint64_t)_i + 1, plain, code), baselines = *profile;
  baselines.baselines_only = true;
  planc_workload jobs[2], plain_jobs[2];
  const int32_t iterations[2] = {1, 1};
  for (int j = 0; j < 2; j++) {
    jobs[j] = (planc_workload){.graph = graphs[j], .profile = profile, .batch = 1 + (_i + j) % 4};
    plain_jobs[j] = jobs[j];
    plain_jobs[j].profile = &baselines;
  }
  planc_mix mix = {.n_jobs = 2, .jobs = plain_jobs, .iterations = iterations};
  mix.terms.budgets[PLANC_MEMORY_HOST] = -1;
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
    if (!policy->make || (policy->supports & (PLANC_MIX_DEADLINES | PLANC_MIX_CHOOSES))) continue;
    planc_mix_share shares[2];
    planc_least least;
    planc_plan *plan;
    mix.jobs = plain_jobs;
    ok_in(planc_mix_find_least(&mix, policy, NULL, PLANC_MEMORY_DEVICE, NULL, &least), policy->name);
    mix.jobs = jobs;
    mix.terms.budgets[PLANC_MEMORY_DEVICE] = least.bytes;
    ok_in(planc_mix_resolve(&mix, shares), policy->name);
    ok_in(planc_colocate(&mix, policy, shares, &plan), policy->name);
    checks(plan);
    planc_plan_free(plan);
    planc_plan_free(least.plan);
  }
  for (int j = 0; j < 2; j++) planc_graph_free(graphs[j]);
  free(profile);
  planc_profile_free(plain);
}
END_TEST

/* Finds room for nothing, and notes of the last time it was asked how many algorithms an op has at most. */
static int32_t most_variants;

static planc_status find_no_room(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                                 planc_candidate *out) {
  (void)shares, (void)out;
  most_variants = 0;
  for (int32_t j = 0; j < evaluator->mix->n_jobs; j++) {
    planc_problem problem = planc_mix_problem(evaluator->mix, j);
    planc_candidate candidate = {0};
    PLANC_TRY(planc_candidate_rounds(&problem, problem.job.batch, &candidate));
    for (int32_t o = 0; o < problem.job.graph->n_ops; o++) {
      int32_t n;
      (void)planc_costs_variants(candidate.costs[0], o, 0, &n);
      if (n > most_variants) most_variants = n;
    }
    planc_candidate_free(&candidate);
  }
  return planc_infeasible((planc_shortage){PLANC_MEMORY_DEVICE, 0}, "no room");
}

START_TEST(mixes_are_asked_with_baselines_at_last) {
  static const planc_mix_policy policy = {.name = "none", .make = find_no_room};
  const int32_t iterations[2] = {1, 1};
  planc_profile *profile = two_algorithms(1000, SLOW_CODE);
  planc_workload jobs[2];
  planc_mix_share shares[2];
  planc_plan *plan;
  for (int j = 0; j < 2; j++) jobs[j] = (planc_workload){.graph = graph, .profile = profile, .batch = BATCH};
  planc_mix mix = {.terms.budgets = {INT64_C(1) << 32, -1}, .n_jobs = 2, .jobs = jobs, .iterations = iterations};
  ok(planc_mix_resolve(&mix, shares));
  assert_fails(planc_colocate(&mix, &policy, shares, &plan), PLANC_INFEASIBLE, "no room");
  ck_assert_int_eq(most_variants, 1);
  planc_profile_free(profile);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("code");
  TCase *two = tcase_create("two algorithms"), *random = tcase_create("random");
  tcase_add_checked_fixture(two, make_graph, free_graph);
  enum { N_CODES = sizeof fast_codes / sizeof *fast_codes };
  tcase_add_loop_test(two, a_plan_is_charged_with_the_code_it_runs, 0, N_CODES);
  tcase_add_loop_test(two, on_demand_too, 0, N_CODES);
  tcase_add_loop_test(two, what_is_only_simulated_has_code, 0, N_CODES);
  tcase_add_test(two, mixes_are_asked_with_baselines_at_last);
  tcase_add_loop_test(random, plans_of_random_graphs_are_right, 0, sampled(GRAPHS));
  tcase_add_loop_test(random, mixes_fall_back_to_baselines, 0, sampled(MIXES));
  tcase_set_timeout(random, 0);
  suite_add_tcase(suite, two);
  suite_add_tcase(suite, random);
  return run_suite(suite);
}
