/* Plannings that somebody waits for (planc_watch): ended at any moment, each gives a plan that is valid and within its
 * budget, or says that it was interrupted; and who only watches changes nothing. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planc/colocate.h"
#include "planc/policy.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 6, ENDS = 24, SEARCHES = 60000 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct waiting {
  int64_t n_asked, last; /* how often it was asked whether to go on, and how often it says yes */
  int32_t n_policies;
  int64_t fastest_ns; /* as it was told last */
  int64_t done_ppm;
} waiting;

static void note(void *user, const char *policy, int64_t done_ppm, int64_t fastest_ns) {
  waiting *w = user;
  ck_assert(planc_policy_find(policy) || planc_mix_policy_find(policy));
  ck_assert_int_ge(done_ppm, 0);
  ck_assert_int_le(done_ppm, 1000000);
  ck_assert(w->fastest_ns == 0 || (fastest_ns > 0 && fastest_ns <= w->fastest_ns));
  w->fastest_ns = fastest_ns;
  w->n_policies += done_ppm == 0;
}

static bool goes_on(void *user) {
  waiting *w = user;
  return w->n_asked++ < w->last;
}

/* A training graph whose data take twice the budget. */
static planc_graph *make_problem(int number, planc_problem *out) {
  const randgraph_options options = {.max_ops = 24};
  uint64_t rng = (uint64_t)number;
  planc_graph *graph;
  planc_plan *plan;
  ok(randgraph_make(rand_next(&rng), &options, &graph));
  *out = (planc_problem){.job = {.graph = graph, .profile = profile, .batch = 4}, .terms.budgets = {0, -1}};
  out->terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes;
  ok(planc_make_plan(out, planc_policy_find("none"), &plan));
  out->terms.budgets[PLANC_MEMORY_DEVICE] = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] * 6 / 10;
  planc_plan_free(plan);
  return graph;
}

static void assert_ended_well(planc_status status, planc_plan *plan, int64_t budget) {
  if (status) {
    planc_code code = planc_status_code(status);
    ck_assert(code == PLANC_INTERRUPTED || code == PLANC_INFEASIBLE);
    ck_assert_ptr_null(plan);
  } else {
    ok(planc_check(plan, NULL, NULL));
    ck_assert_int_le(plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], budget);
  }
  planc_status_free(status);
  planc_plan_free(plan);
}

static char *text_of(const planc_plan *plan) {
  char *text;
  size_t length;
  ok(planc_plan_print(plan, &text, &length));
  return text;
}

START_TEST(any_end_is_good) {
  static const char *const names[] = {"auto", "best", "priced", "tensile", "vdnn-dyn", "capuchin"};
  planc_problem problem;
  planc_graph *graph = make_problem(_i, &problem);
  uint64_t rng = (uint64_t)_i;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const planc_policy *policy = planc_policy_find(names[k]);
    waiting all = {.last = INT64_MAX};
    planc_watch watch = {&all, note, goes_on};
    planc_plan *unwatched = NULL, *plan = NULL;
    problem.terms.watch = NULL;
    planc_status failed = planc_make_plan(&problem, policy, &unwatched);
    bool has_plan = !failed;
    problem.terms.watch = &watch;
    planc_status status = planc_make_plan(&problem, policy, &plan);
    ck_assert_int_eq(planc_status_code(status), planc_status_code(failed));
    if (!status) {
      char *one = text_of(unwatched), *other = text_of(plan);
      ck_assert_str_eq(one, other);
      free(one);
      free(other);
    }
    planc_status_free(status);
    planc_status_free(failed);
    planc_plan_free(unwatched);
    planc_plan_free(plan);
    if (policy->supports & PLANC_POLICY_CHOOSES) ck_assert_int_gt(all.n_policies, 2);
    if (has_plan) ck_assert_int_gt(all.n_asked, 0);
    if (all.n_asked == 0) continue;
    int ends = sampled(ENDS);
    for (int end = 0; end < ends; end++) {
      waiting some = {
          .last = end < ends / 2 ? end : rand_below(&rng, (int32_t)(all.n_asked < SEARCHES ? all.n_asked : SEARCHES))};
      watch.user = &some;
      plan = NULL;
      status = planc_make_plan(&problem, policy, &plan);
      assert_ended_well(status, plan, problem.terms.budgets[PLANC_MEMORY_DEVICE]);
    }
  }
  planc_graph_free(graph);
}
END_TEST

/* Without searches the later it ends the faster the plan is, as a policy's plan only replaces what is slower. */
START_TEST(later_is_no_slower) {
  planc_problem problem;
  planc_graph *graph = make_problem(_i, &problem);
  int64_t before_ns = INT64_MAX;
  for (int64_t last = 1; last < SEARCHES; last += last / 3 + 1) {
    waiting some = {.last = last};
    const planc_watch watch = {&some, note, goes_on};
    planc_plan *plan;
    problem.terms.watch = &watch;
    planc_status status = planc_make_plan(&problem, planc_policy_find("best"), &plan);
    if (!status) {
      ck_assert_int_le(plan->predicted.period_ns, before_ns);
      before_ns = plan->predicted.period_ns;
      if (some.n_asked > some.last) ck_assert_ptr_nonnull(strstr(plan->explanation, "interrupted"));
      planc_plan_free(plan);
    } else {
      ck_assert_int_eq(planc_status_code(status), PLANC_INTERRUPTED);
      ck_assert_int_eq(before_ns, INT64_MAX);
    }
    planc_status_free(status);
  }
  ck_assert_int_lt(before_ns, INT64_MAX);
  planc_graph_free(graph);
}
END_TEST

START_TEST(mixes_end_well) {
  planc_problem problems[2];
  planc_graph *graphs[2] = {make_problem(_i, &problems[0]), make_problem(_i + GRAPHS, &problems[1])};
  planc_workload jobs[2] = {problems[0].job, problems[1].job};
  int32_t iterations[2] = {0};
  planc_mix_share shares[2];
  planc_mix mix = {.n_jobs = 2, .jobs = jobs, .iterations = iterations, .terms.budgets = {0, -1}};
  mix.terms.budgets[PLANC_MEMORY_DEVICE] =
      problems[0].terms.budgets[PLANC_MEMORY_DEVICE] + problems[1].terms.budgets[PLANC_MEMORY_DEVICE];
  ok(planc_mix_resolve(&mix, shares));
  for (int64_t last = 0; last < SEARCHES; last += last / 2 + 1) {
    waiting some = {.last = last};
    const planc_watch watch = {&some, note, goes_on};
    planc_mix_share found[2] = {shares[0], shares[1]};
    planc_plan *plan;
    mix.terms.watch = &watch;
    planc_status status = planc_colocate(&mix, planc_mix_policy_find("auto"), found, &plan);
    if (!status && some.n_asked > some.last) ck_assert_ptr_nonnull(strstr(plan->explanation, "interrupted"));
    assert_ended_well(status, plan, mix.terms.budgets[PLANC_MEMORY_DEVICE]);
  }
  for (int j = 0; j < 2; j++) planc_graph_free(graphs[j]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("watch");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 240);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, any_end_is_good, 0, sampled(GRAPHS));
  tcase_add_loop_test(tests, later_is_no_slower, 0, sampled(GRAPHS));
  tcase_add_loop_test(tests, mixes_end_well, 0, sampled(GRAPHS));
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
