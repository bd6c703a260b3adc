/* Weights and least shares of random mixes: how often jobs run by their weights, and that a plan leaves each job its
 * least share, or that no iterations would. */
#include <check.h>

#include "planc/check.h"
#include "planc/colocate.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { MIXES = 40, JOBS = 2, MOST = 4, PPM = 1000000 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct two_jobs {
  planc_graph *graphs[JOBS];
  planc_workload jobs[JOBS];
  int32_t iterations[JOBS], weights[JOBS];
  int64_t least_ppm[JOBS];
  planc_mix mix;
} two_jobs;

static void make_jobs(uint64_t *rng, two_jobs *out) {
  const randgraph_options options = {.max_ops = 20};
  *out = (two_jobs){.weights = {1, 1}};
  out->mix = (planc_mix){.n_jobs = JOBS,
                         .jobs = out->jobs,
                         .iterations = out->iterations,
                         .weights = out->weights,
                         .least_shares_ppm = out->least_ppm,
                         .max_ratio = MOST,
                         .terms.budgets = {planc_profile_device(profile)->memory_bytes, -1}};
  for (int32_t j = 0; j < JOBS; j++) {
    ok(randgraph_make(rand_next(rng), &options, &out->graphs[j]));
    out->jobs[j] = (planc_workload){.graph = out->graphs[j], .profile = profile, .batch = 1 + rand_below(rng, 16)};
  }
}

static void free_jobs(two_jobs *of) {
  for (int32_t j = 0; j < JOBS; j++) planc_graph_free(of->graphs[j]);
}

/* What the job lacks that has less of the time alone than its weight says, as a part of that. */
static double lacks(const two_jobs *of, const planc_mix_share *shares, int32_t first, int32_t second) {
  double a = (double)shares[0].alone_ns * first / of->weights[0],
         b = (double)shares[1].alone_ns * second / of->weights[1];
  return a < b ? 1 - a / b : 1 - b / a;
}

/* Within a tenth wherever any iterations are. */
START_TEST(time_is_by_weight) {
  uint64_t rng = (uint64_t)_i;
  two_jobs of;
  planc_mix_share shares[JOBS];
  make_jobs(&rng, &of);
  for (int k = 0; k < 8; k++) {
    for (int32_t j = 0; j < JOBS; j++) of.weights[j] = (int32_t)(1 + rand_below(&rng, 6));
    ok(planc_mix_resolve(&of.mix, shares));
    double found = lacks(&of, shares, shares[0].iterations, shares[1].iterations), best = 1;
    for (int32_t a = 1; a <= MOST; a++)
      for (int32_t b = 1; b <= MOST; b++)
        if (lacks(&of, shares, a, b) < best) best = lacks(&of, shares, a, b);
    if (best < 0.1) ck_assert_double_le(found, 0.1 + 1e-5);
  }
  free_jobs(&of);
}
END_TEST

/* Whether the plan of some iterations leaves each job its share. */
static bool any_will_do(const two_jobs *of, const planc_mix_policy *policy) {
  two_jobs at = *of;
  at.mix.jobs = at.jobs;
  at.mix.iterations = at.iterations;
  at.mix.weights = at.weights;
  at.mix.least_shares_ppm = at.least_ppm;
  for (at.iterations[0] = 1; at.iterations[0] <= MOST; at.iterations[0]++) {
    for (at.iterations[1] = 1; at.iterations[1] <= MOST; at.iterations[1]++) {
      planc_mix_share shares[JOBS];
      planc_plan *plan;
      ok(planc_mix_resolve(&at.mix, shares));
      planc_status status = planc_colocate(&at.mix, policy, shares, &plan);
      bool will_do = !status;
      planc_status_free(status);
      planc_plan_free(plan);
      if (will_do) return true;
    }
  }
  return false;
}

START_TEST(each_has_its_share) {
  static const char *const names[] = {"temporal", "zico", "auto"};
  uint64_t rng = (uint64_t)_i;
  two_jobs of;
  make_jobs(&rng, &of);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const planc_mix_policy *policy = planc_mix_policy_find(names[k]);
    planc_mix_share shares[JOBS];
    planc_plan *plan;
    of.least_ppm[0] = (1 + rand_below(&rng, 19)) * (PPM / 20);
    of.least_ppm[1] = rand_below(&rng, 2) ? PPM - of.least_ppm[0] : 0;
    ok(planc_mix_resolve(&of.mix, shares));
    planc_status status = planc_colocate(&of.mix, policy, shares, &plan);
    if (!status) {
      ok(planc_check(plan, NULL, NULL));
      for (int32_t j = 0; j < JOBS; j++) {
        ck_assert_int_ge(shares[j].speed_ppm, of.least_ppm[j]);
        int64_t done_ns = shares[j].whole_ns * plan->jobs[j].iterations;
        ck_assert_int_ge(done_ns * PPM, of.least_ppm[j] * plan->predicted.period_ns);
      }
    } else {
      ck_assert_int_eq(planc_status_code(status), PLANC_LATE);
      ck_assert_ptr_null(plan);
      ck_assert(shares[0].speed_ppm < of.least_ppm[0] || shares[1].speed_ppm < of.least_ppm[1]);
      ck_assert(!any_will_do(&of, policy));
    }
    planc_status_free(status);
    planc_plan_free(plan);
  }
  free_jobs(&of);
}
END_TEST

static int n_with_plan, n_not_most;

/* Of all policies' plans `auto` takes that with the most throughput by weight, which may not be that with most of all.
 */
START_TEST(auto_goes_by_weight) {
  for (uint64_t seed = 0; seed < MIXES; seed++) {
    uint64_t rng = seed;
    two_jobs of;
    planc_mix_share shares[JOBS], chosen[JOBS];
    planc_plan *plan;
    int64_t most = 0;
    make_jobs(&rng, &of);
    of.weights[0] = (int32_t)(1 + rand_below(&rng, 20));
    of.weights[1] = (int32_t)(1 + rand_below(&rng, 3));
    of.least_ppm[1] = (1 + rand_below(&rng, 9)) * (PPM / 20);
    ok(planc_mix_resolve(&of.mix, chosen));
    planc_status status = planc_colocate(&of.mix, planc_mix_policy_find("auto"), chosen, &plan);
    int64_t worth = status ? -1 : planc_mix_weighted_throughput(&of.mix, chosen);
    planc_status_free(status);
    planc_plan_free(plan);
    for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++) {
      if (!policy->make || (policy->supports & (PLANC_MIX_CHOOSES | PLANC_MIX_DEADLINES))) continue;
      ok(planc_mix_resolve(&of.mix, shares));
      status = planc_colocate(&of.mix, policy, shares, &plan);
      if (!status) {
        ck_assert_int_ge(worth, planc_mix_weighted_throughput(&of.mix, shares));
        most = planc_mix_throughput(shares, JOBS) > most ? planc_mix_throughput(shares, JOBS) : most;
      }
      planc_status_free(status);
      planc_plan_free(plan);
    }
    n_with_plan += worth >= 0;
    n_not_most += worth >= 0 && planc_mix_throughput(chosen, JOBS) < most;
    free_jobs(&of);
  }
  ck_assert_int_gt(n_with_plan, MIXES / 2);
  ck_assert_int_gt(n_not_most, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("least_shares");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_loop_test(tests, time_is_by_weight, 0, sampled(MIXES));
  tcase_add_loop_test(tests, each_has_its_share, 0, sampled(MIXES));
  tcase_add_test(tests, auto_goes_by_weight);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
