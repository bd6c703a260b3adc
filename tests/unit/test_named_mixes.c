/* Mixes of graphs of the library, chosen for what they are known to ask of a policy: where turns park, where three jobs
 * go side by side, where a job that keeps everything on the device has only slow algorithms left. */
#include <check.h>

#include "planc/colocate.h"
#include "tests/support/unit.h"

enum { MOST_JOBS = 3 };
#define UNLIMITED (INT64_C(1) << 40)

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct named_job {
  const char *graph;
  int64_t batch;
  int32_t iterations; /* 0: chosen */
} named_job;

typedef struct named_mix {
  planc_graph *graphs[MOST_JOBS];
  planc_workload jobs[MOST_JOBS];
  int32_t iterations[MOST_JOBS];
  planc_mix_share shares[MOST_JOBS];
  planc_mix mix;
} named_mix;

static void make_mix(const named_job *jobs, int32_t n_jobs, int64_t budget, named_mix *out) {
  const char *derived;
  *out = (named_mix){.mix = {.n_jobs = n_jobs, .terms.budgets = {budget, -1}}};
  for (int32_t j = 0; j < n_jobs; j++) {
    ok(planc_graph_prepare(jobs[j].graph, NULL, false, &out->graphs[j], &derived));
    out->jobs[j] = (planc_workload){.graph = out->graphs[j], .profile = profile, .batch = jobs[j].batch};
    out->iterations[j] = jobs[j].iterations;
  }
  out->mix.jobs = out->jobs;
  out->mix.iterations = out->iterations;
}

static void free_mix(named_mix *m) {
  for (int32_t j = 0; j < m->mix.n_jobs; j++) planc_graph_free(m->graphs[j]);
}

/* Resolves it and plans it by a policy. */
static void plan_by(named_mix *m, const char *policy, planc_plan **out) {
  ok(planc_mix_resolve(&m->mix, m->shares));
  ok(planc_colocate(&m->mix, planc_mix_policy_find(policy), m->shares, out));
}

/* Where what the others keep leaves a job little room, turns park, and take at most `MOST` times what the jobs take
 * alone with all memory: lenet-digits, in rounds of one sample beside all that the transformer keeps, takes over ten
 * times as long. */
START_TEST(turns_park_where_that_is_faster) {
  enum { MOST = 4 };
  static const named_job jobs[] = {{"graphs/lenet-digits.yaml", 64, 1}, {"graphs/tiny-transformer.yaml", 16, 1}};
  named_mix m;
  planc_plan *plan;
  make_mix(jobs, 2, (280 + 20 * _i) << 10, &m);
  plan_by(&m, "temporal", &plan);
  ck_assert_int_le(plan->predicted.period_ns, MOST * (m.shares[0].alone_ns + m.shares[1].alone_ns));
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* The third job is a pair of its own, and of all that the jobs hold at their fullest the largest one of the other pair
 * does not lack what that one leaves. */
START_TEST(three_jobs_are_side_by_side_in_what_all_hold) {
  static const named_job jobs[] = {
      {"graphs/resnet50.yaml", 4, 0}, {"graphs/lenet-digits.yaml", 4096, 0}, {"graphs/gnmt-small.yaml", 512, 0}};
  named_mix m;
  planc_mix_estimate pools;
  planc_plan *plan;
  make_mix(jobs, 3, UNLIMITED, &m);
  ok(planc_mix_resolve(&m.mix, m.shares));
  ok(planc_mix_estimate_by(&m.mix, planc_mix_policy_find("mps"), m.shares, &pools));
  m.mix.terms.budgets[PLANC_MEMORY_DEVICE] = pools.pools_bytes;
  plan_by(&m, "zico", &plan);
  ck_assert_ptr_nonnull(strstr(plan->explanation, "side by side"));
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* Where no places are found for a shift, or a job cannot give up as much as the other, the jobs go side by side in less
 * memory all the same. By turns they get a tenth more done than one alone. */
START_TEST(jobs_take_less_where_they_do_not_fit_side_by_side) {
  static const named_job jobs[] = {{"graphs/tiny-transformer.yaml", 16, 0}, {"graphs/gnmt-small.yaml", 64, 0}};
  static const int64_t budgets[] = {1300000, 1500000, 2100000};
  if (!is_sampled(_i, 2)) return;
  named_mix m;
  planc_plan *plan;
  make_mix(jobs, 2, budgets[_i], &m);
  plan_by(&m, "zico", &plan);
  ck_assert_ptr_nonnull(strstr(plan->explanation, "side by side"));
  ck_assert_int_gt(m.shares[0].speed_ppm + m.shares[1].speed_ppm, 1300000);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* --- Alone with slow algorithms only ------------------------------------------------------------------------------ */

/* Of batch 190, VGG-16 keeps nearly all of a K40m: what `none` leaves are algorithms without a workspace, which take
 * twice as long. In turns no job gets more done than alone. */
START_TEST(alone_is_with_the_algorithms_of_the_fastest) {
  static const named_job jobs[] = {{"graphs/vgg16.yaml", 190, 1}, {"graphs/resnet50.yaml", 8, 1}};
  int64_t memory = planc_profile_device(profile)->memory_bytes;
  named_mix m;
  planc_plan *none, *plan;
  make_mix(jobs, 2, memory, &m);
  const planc_problem problem = planc_mix_problem(&m.mix, 0);
  ok(planc_make_plan(&problem, planc_policy_find("none"), &none));
  plan_by(&m, "temporal", &plan);
  ck_assert_int_lt(m.shares[0].whole_ns, none->predicted.period_ns / 2);
  ck_assert_int_lt(m.shares[0].speed_ppm + m.shares[1].speed_ppm, 1000100); /* a period's boundary is once for both */
  planc_plan_free(none);
  planc_plan_free(plan);
  free_mix(&m);
}
END_TEST

/* The whole GPU is the same whatever the budget, and so is the job alone on it. */
START_TEST(alone_on_the_whole_device_takes_the_same_at_all_budgets) {
  static const named_job jobs[] = {{"graphs/vgg16.yaml", 190, 1}, {"graphs/resnet50.yaml", 8, 1}};
  int64_t memory = planc_profile_device(profile)->memory_bytes;
  named_mix whole, less;
  make_mix(jobs, 2, memory, &whole);
  make_mix(jobs, 2, memory * (4 + _i) / 8, &less);
  ok(planc_mix_resolve(&whole.mix, whole.shares));
  ok(planc_mix_resolve(&less.mix, less.shares));
  for (int32_t j = 0; j < 2; j++) ck_assert_int_eq(less.shares[j].whole_ns, whole.shares[j].whole_ns);
  free_mix(&whole);
  free_mix(&less);
}
END_TEST

/* More memory is no reason to be slower: lenet-digits of batch 64 fits in 900K with slow algorithms, and in 700K by
 * smaller rounds, which are faster. */
START_TEST(turns_do_not_slow_down_with_slow_algorithms) {
  static const named_job jobs[] = {{"graphs/lenet-digits.yaml", 64, 1}, {"graphs/lenet-digits.yaml", 32, 2}};
  static const int64_t budgets[] = {700 << 10, 900 << 10};
  int64_t ns[2];
  for (int k = 0; k < 2; k++) {
    named_mix m;
    planc_plan *plan;
    make_mix(jobs, 2, budgets[k], &m);
    plan_by(&m, "temporal", &plan);
    ns[k] = plan->predicted.period_ns;
    planc_plan_free(plan);
    free_mix(&m);
  }
  ck_assert_int_le(ns[1], ns[0]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("named mixes");
  TCase *mixes = tcase_create("mixes");
  tcase_add_unchecked_fixture(mixes, read_profile, free_profile);
  tcase_set_timeout(mixes, 0);
  tcase_add_loop_test(mixes, turns_park_where_that_is_faster, 0, 6);
  tcase_add_test(mixes, three_jobs_are_side_by_side_in_what_all_hold);
  tcase_add_loop_test(mixes, jobs_take_less_where_they_do_not_fit_side_by_side, 0, 3);
  tcase_add_test(mixes, alone_is_with_the_algorithms_of_the_fastest);
  tcase_add_loop_test(mixes, alone_on_the_whole_device_takes_the_same_at_all_budgets, 0, 4);
  tcase_add_test(mixes, turns_do_not_slow_down_with_slow_algorithms);
  suite_add_tcase(suite, mixes);
  return run_suite(suite);
}
