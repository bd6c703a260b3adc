/* Policy auto for several jobs: of random mixes within many budgets, its plan is as fast as the fastest of all other
 * policies', and there is one where any of them has one. */
#include <check.h>

#include "planc/check.h"
#include "planc/colocate.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { MIXES = 24, MOST_JOBS = 3, PARTS = 4 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* What the jobs take when they run side by side and everything stays. */
static int64_t most_bytes(planc_mix *mix, planc_mix_share *shares) {
  planc_plan *plan;
  mix->terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes;
  ok(planc_mix_resolve(mix, shares));
  ok(planc_colocate(mix, planc_mix_policy_find("zico"), shares, &plan));
  int64_t bytes = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
  planc_plan_free(plan);
  return bytes;
}

/* The period of the fastest plan of the others; INT64_MAX: none fits. */
static int64_t fastest_of_others(const planc_mix *mix, planc_mix_share *shares) {
  int64_t fastest_ns = INT64_MAX;
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
    planc_plan *plan;
    if (!policy->make || (policy->supports & (PLANC_MIX_DEADLINES | PLANC_MIX_CHOOSES))) continue;
    planc_status status = planc_colocate(mix, policy, shares, &plan);
    if (!status && plan->predicted.period_ns < fastest_ns) fastest_ns = plan->predicted.period_ns;
    planc_status_free(status);
    planc_plan_free(plan);
  }
  return fastest_ns;
}

START_TEST(none_is_faster) {
  static const int64_t parts[PARTS] = {100, 70, 50, 35};
  uint64_t rng = (uint64_t)_i;
  planc_workload jobs[MOST_JOBS] = {0};
  planc_graph *graphs[MOST_JOBS];
  int32_t iterations[MOST_JOBS] = {0};
  planc_mix_share shares[MOST_JOBS];
  planc_mix mix = {.n_jobs = 2 + _i % 2, .jobs = jobs, .iterations = iterations, .terms.budgets = {0, -1}};
  randgraph_options options = {.max_ops = 20};
  for (int32_t j = 0; j < mix.n_jobs; j++) {
    ok(randgraph_make(rand_next(&rng), &options, &graphs[j]));
    jobs[j] = (planc_workload){.graph = graphs[j], .profile = profile, .batch = 1 + rand_below(&rng, 8)};
  }
  int64_t most = most_bytes(&mix, shares);
  for (int part = 0; part < PARTS; part++) {
    planc_plan *plan;
    mix.terms.budgets[PLANC_MEMORY_DEVICE] = most / 100 * parts[part];
    planc_status status = planc_mix_resolve(&mix, shares);
    if (status) { /* some job does not even fit alone */
      planc_status_free(status);
      break;
    }
    int64_t fastest_ns = fastest_of_others(&mix, shares);
    status = planc_colocate(&mix, planc_mix_policy_find("auto"), shares, &plan);
    ck_assert_int_eq(status ? INT64_MAX : plan->predicted.period_ns, fastest_ns);
    if (status) ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
    if (!status) ok(planc_check(plan, NULL, NULL));
    planc_status_free(status);
    planc_plan_free(plan);
  }
  for (int32_t j = 0; j < mix.n_jobs; j++) planc_graph_free(graphs[j]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("auto_mix");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, none_is_faster, 0, sampled(MIXES));
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
