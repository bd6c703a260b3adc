/* The papers' measures, against the numbers that they print and against plans worked out by hand. */
#include <check.h>
#include <stdlib.h>

#include "planc/metrics.h"
#include "planc/policy.h"
#include "tests/support/unit.h"

/* --- Measures ----------------------------------------------------------------------------------------------------- */

static planc_metrics metrics_of(planc_outcome run, int64_t samples, const planc_outcome *vanilla) {
  planc_metrics metrics;
  planc_metrics_of(&run, samples, vanilla, &metrics);
  return metrics;
}

/* Rows of TENSILE's Tables I, III and IV, in ten-thousandths. */
START_TEST(printed_rows_obey_the_definitions) {
  static const struct {
    int64_t msr, eor, cbr;
  } rows[] = {{2670, 16287, 1639}, {2670, 60128, 444},  {3192, 12475, 2559}, {4361, 16468, 2648}, {4361, 31128, 1401},
              {4788, 14839, 3227}, {5154, 14281, 3609}, {5154, 26727, 1929}, {5558, 12898, 4309}, {4258, 15540, 2740},
              {4258, 35395, 1203}, {4647, 13813, 3364}, {5135, 11678, 4397}, {5135, 22532, 2279}, {5236, 10664, 4910},
              {1109, 17835, 622},  {2558, 18304, 1398}, {1633, 25184, 648},  {4331, 27745, 1561}, {1903, 25028, 760},
              {5129, 32362, 1585}, {1733, 22981, 754},  {3859, 22320, 1729}, {1381, 26148, 528},  {4860, 34400, 1413},
              {580, 16297, 356},   {1150, 76545, 150},  {1565, 11589, 1350}};
  const planc_outcome vanilla = {.period_ns = 10000, .peak_bytes[PLANC_MEMORY_DEVICE] = 10000};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    planc_outcome run = {.period_ns = rows[i].eor, .peak_bytes[PLANC_MEMORY_DEVICE] = 10000 - rows[i].msr};
    planc_metrics m = metrics_of(run, 1, &vanilla);
    ck_assert_int_eq(m.msr_ppm, 100 * rows[i].msr);
    ck_assert_int_eq(m.eor_ppm, 100 * rows[i].eor);
    ck_assert_int_eq(m.eor_excess_ppm, 100 * rows[i].eor - 1000000);
    /* What is printed is rounded from unrounded rates: half a unit for itself, half for each of the two. */
    ck_assert_msg(llabs(m.cbr_ppm - 100 * rows[i].cbr) <= 110, "row %zu: %lld", i, (long long)m.cbr_ppm);
  }
}
END_TEST

START_TEST(measures_of_a_run_by_hand) {
  const planc_outcome vanilla = {.period_ns = 4000, .peak_bytes[PLANC_MEMORY_DEVICE] = 800};
  planc_outcome run = {.period_ns = 5000,
                       .total.ideal_ns = 3200,
                       .peak_bytes[PLANC_MEMORY_DEVICE] = 200,
                       .total.copied_bytes[PLANC_ROUTE_D2H] = 70,
                       .total.copied_bytes[PLANC_ROUTE_H2D] = 30};
  planc_metrics m = metrics_of(run, 64, &vanilla);
  ck_assert_int_eq(m.overhead_ppm, 562500);
  ck_assert_int_eq(m.throughput_ppm, INT64_C(12800000) * 1000000);
  ck_assert_int_eq(m.moved_bytes, 100);
  ck_assert_int_eq(m.msr_ppm, 750000);
  ck_assert_int_eq(m.eor_ppm, 1250000);
  ck_assert_int_eq(m.eor_excess_ppm, 250000);
  ck_assert_int_eq(m.cbr_ppm, 600000);
}
END_TEST

START_TEST(more_memory_than_without_scheduling_is_a_negative_saving) {
  const planc_outcome vanilla = {.period_ns = 100, .peak_bytes[PLANC_MEMORY_DEVICE] = 100};
  planc_metrics m = metrics_of((planc_outcome){.period_ns = 80, .peak_bytes[PLANC_MEMORY_DEVICE] = 120}, 1, &vanilla);
  ck_assert_int_eq(m.msr_ppm, -200000);
  ck_assert_int_eq(m.eor_excess_ppm, -200000);
  ck_assert_int_eq(m.cbr_ppm, -250000);
}
END_TEST

START_TEST(what_cannot_be_told_is_undefined) {
  planc_metrics m = metrics_of(
      (planc_outcome){.period_ns = 100, .total.ideal_ns = 100, .peak_bytes[PLANC_MEMORY_DEVICE] = 100}, 8, NULL);
  ck_assert_int_eq(m.overhead_ppm, 0);
  ck_assert_int_eq(m.msr_ppm, PLANC_NO_METRIC);
  ck_assert_int_eq(m.eor_ppm, PLANC_NO_METRIC);
  ck_assert_int_eq(m.eor_excess_ppm, PLANC_NO_METRIC);
  ck_assert_int_eq(m.cbr_ppm, PLANC_NO_METRIC);

  const planc_outcome nothing = {0};
  m = metrics_of(nothing, 8, &nothing);
  ck_assert_int_eq(m.overhead_ppm, PLANC_NO_METRIC);
  ck_assert_int_eq(m.throughput_ppm, PLANC_NO_METRIC);
  ck_assert_int_eq(m.moved_bytes, 0);
  ck_assert_int_eq(m.msr_ppm, PLANC_NO_METRIC);
  ck_assert_int_eq(m.cbr_ppm, PLANC_NO_METRIC);
}
END_TEST

/* No quotient of what a plan file may hold leaves int64. */
START_TEST(extremes_saturate) {
  const planc_outcome vanilla = {.period_ns = 1, .peak_bytes[PLANC_MEMORY_DEVICE] = 1};
  planc_outcome run = {.period_ns = INT64_MAX,
                       .total.ideal_ns = 1,
                       .peak_bytes[PLANC_MEMORY_DEVICE] = INT64_MAX,
                       .total.copied_bytes[PLANC_ROUTE_D2H] = INT64_MAX,
                       .total.copied_bytes[PLANC_ROUTE_H2D] = INT64_MAX};
  planc_metrics m = metrics_of(run, INT64_MAX, &vanilla);
  ck_assert_int_eq(m.overhead_ppm, INT64_MAX - 1000000);
  ck_assert_int_eq(m.throughput_ppm, INT64_C(1000000000) * 1000000);
  ck_assert_int_eq(m.moved_bytes, INT64_MAX);
  ck_assert_int_eq(m.msr_ppm, 1000000 - INT64_MAX);
  ck_assert_int_eq(m.eor_ppm, INT64_MAX);
  ck_assert_int_ge(m.cbr_ppm, -1000000);
}
END_TEST

/* --- Without scheduling ------------------------------------------------------------------------------------------- */

static planc_profile *profile;
static planc_graph *graph;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
}
static void tear_down(void) {
  planc_graph_free(graph);
  planc_profile_free(profile);
}

/* At op last.grad x, a, b and b.grad are live, 6 KiB a sample together, and w with 1 KiB: however small the budget,
 * however the batch would be split or placed. */
START_TEST(without_scheduling_nothing_leaves) {
  static const planc_problem asked[] = {
      {.job.batch = 4, .terms.budgets[PLANC_MEMORY_DEVICE] = 1},
      {.job.batch = 4, .terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 30},
      {.job.batch = 4, .terms.budgets[PLANC_MEMORY_DEVICE] = 7 << 10, .job.sub_batch = 1},
      {.job.batch = 4, .terms.budgets[PLANC_MEMORY_DEVICE] = 1, .terms.placement = PLANC_PLACEMENT_VMM},
      {.job.batch = 4, .terms.budgets[PLANC_MEMORY_DEVICE] = 1, .terms.placement = PLANC_PLACEMENT_PAGED}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    planc_problem problem = asked[i];
    problem.job.graph = graph;
    problem.job.profile = profile;
    problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
    planc_outcome vanilla;
    ok(planc_vanilla_of(&problem, &vanilla));
    ck_assert_int_eq(vanilla.peak_bytes[PLANC_MEMORY_DEVICE], (1 + 4 * 6) << 10);
    ck_assert_int_eq(vanilla.total.copied_bytes[PLANC_ROUTE_H2D], 4 << 10); /* the input */
    ck_assert_int_eq(vanilla.total.copied_bytes[PLANC_ROUTE_D2H], 4);       /* the loss */
    ck_assert_int_eq(vanilla.total.recompute_ns, 0);
  }
}
END_TEST

START_TEST(policy_none_with_room_is_without_scheduling) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 30,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_outcome vanilla;
  ok(planc_vanilla_of(&problem, &vanilla));
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  planc_metrics m = metrics_of(planc_outcome_of(plan), 4, &vanilla);
  planc_plan_free(plan);
  ck_assert_int_eq(m.msr_ppm, 0);
  ck_assert_int_eq(m.eor_ppm, 1000000);
  ck_assert_int_eq(m.cbr_ppm, 0);
}
END_TEST

/* vdnn-all has b leave beside op last, so that b.grad finds room: 1 + 4 * 5 KiB remain. */
START_TEST(a_plan_s_saving_by_hand) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = 21 << 10,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_outcome vanilla;
  ok(planc_vanilla_of(&problem, &vanilla));
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find("vdnn-all"), &plan));
  planc_metrics m = metrics_of(planc_outcome_of(plan), 4, &vanilla);
  ck_assert_int_eq(m.msr_ppm, 1000000 - 1000000 * 21 / 25);
  ck_assert_int_eq(m.moved_bytes, (12 << 10) + (20 << 10) + 4);
  ck_assert_int_gt(m.eor_ppm, 1000000);
  ck_assert_int_eq(m.eor_ppm, plan->predicted.period_ns * 1000000 / vanilla.period_ns);
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("metrics");
  TCase *measures = tcase_create("measures");
  tcase_add_test(measures, printed_rows_obey_the_definitions);
  tcase_add_test(measures, measures_of_a_run_by_hand);
  tcase_add_test(measures, more_memory_than_without_scheduling_is_a_negative_saving);
  tcase_add_test(measures, what_cannot_be_told_is_undefined);
  tcase_add_test(measures, extremes_saturate);
  suite_add_tcase(suite, measures);
  TCase *vanilla = tcase_create("vanilla");
  tcase_add_unchecked_fixture(vanilla, set_up, tear_down);
  tcase_add_test(vanilla, without_scheduling_nothing_leaves);
  tcase_add_test(vanilla, policy_none_with_room_is_without_scheduling);
  tcase_add_test(vanilla, a_plan_s_saving_by_hand);
  suite_add_tcase(suite, vanilla);
  return run_suite(suite);
}
