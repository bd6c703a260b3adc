/* The search of the largest batch: policies made for it, whose border is known; a graph whose memory is worked out by
 * hand; and every policy on random graphs against trying each batch. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "tests/support/least.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static planc_profile *profile;
static planc_graph *tiny;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &tiny));
}
static void tear_down(void) {
  planc_graph_free(tiny);
  planc_profile_free(profile);
}

static planc_problem problem_of(const planc_graph *graph, int64_t budget) {
  return (planc_problem){.job.graph = graph,
                         .job.profile = profile,
                         .job.batch = 1,
                         .terms.budgets[PLANC_MEMORY_DEVICE] = budget,
                         .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

static planc_largest_batch search(const planc_problem *problem, const planc_policy *policy) {
  planc_largest_batch found;
  ok_in(planc_find_largest_batch(problem, policy, NULL, NULL, &found), policy->name);
  return found;
}

/* --- Borders that are known --------------------------------------------------------------------------------------- */

/* Plans one sample whatever the batch is, which is all that the search asks about. */
static planc_status plan_one(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_problem one = *evaluator->problem;
  planc_evaluator of_one = *evaluator;
  one.job.batch = 1;
  of_one.problem = &one;
  return planc_policy_find("none")->make(&of_one, out);
}

static planc_status too_large(void) {
  return planc_error(PLANC_INFEASIBLE, "too large");
}

static planc_status make_up_to_1000(const planc_evaluator *evaluator, planc_candidate *out) {
  return evaluator->problem->job.batch <= 1000 ? plan_one(evaluator, out) : too_large();
}
static planc_status make_none(const planc_evaluator *evaluator, planc_candidate *out) {
  (void)evaluator;
  (void)out;
  return too_large();
}
static planc_status make_any(const planc_evaluator *evaluator, planc_candidate *out) {
  return plan_one(evaluator, out);
}
/* 25 .. 30 beyond a border of 20. */
static planc_status make_with_island(const planc_evaluator *evaluator, planc_candidate *out) {
  bool fits = evaluator->problem->job.batch <= 20 ||
              (evaluator->problem->job.batch >= 25 && evaluator->problem->job.batch <= 30);
  return fits ? plan_one(evaluator, out) : too_large();
}
/* None of 10 .. 14. */
static planc_status make_with_hole(const planc_evaluator *evaluator, planc_candidate *out) {
  bool fits = evaluator->problem->job.batch <= 100 &&
              (evaluator->problem->job.batch < 10 || evaluator->problem->job.batch > 14);
  return fits ? plan_one(evaluator, out) : too_large();
}
/* Not one or two samples at a time but four. */
static planc_status make_even(const planc_evaluator *evaluator, planc_candidate *out) {
  bool fits = evaluator->problem->job.batch <= 50 && evaluator->problem->job.batch != 2;
  return fits ? plan_one(evaluator, out) : too_large();
}
/* Beyond 5 sizes overflow. */
static planc_status make_overflowing(const planc_evaluator *evaluator, planc_candidate *out) {
  return evaluator->problem->job.batch <= 5 ? plan_one(evaluator, out)
                                            : planc_error(PLANC_BAD_INPUT, "more bytes than there are");
}
static planc_status make_broken(const planc_evaluator *evaluator, planc_candidate *out) {
  return evaluator->problem->job.batch < 8 ? plan_one(evaluator, out) : planc_error(PLANC_INTERNAL, "a defect");
}

START_TEST(borders_that_are_known) {
  static const struct {
    planc_policy policy;
    int64_t batch, fails_at;
    bool unbounded;
  } cases[] = {{{.name = "up to 1000", .make = make_up_to_1000}, 1000, 0, false},
               {{.name = "none", .make = make_none}, 0, 0, false},
               {{.name = "any", .make = make_any}, 1 << 30, 0, true},
               {{.name = "island", .make = make_with_island}, 30, 21, false},
               {{.name = "hole", .make = make_with_hole}, 100, 12, false},
               {{.name = "even", .make = make_even}, 50, 2, false},
               {{.name = "overflow", .make = make_overflowing}, 5, 0, false}};
  planc_problem problem = problem_of(tiny, 1 << 20);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    planc_largest_batch found = search(&problem, &cases[i].policy);
    ck_assert_msg(found.batch == cases[i].batch, "%s: %lld", cases[i].policy.name, (long long)found.batch);
    ck_assert_msg(found.fails_at == cases[i].fails_at, "%s: fails at %lld", cases[i].policy.name,
                  (long long)found.fails_at);
    ck_assert_msg(found.unbounded == cases[i].unbounded, "%s", cases[i].policy.name);
  }
}
END_TEST

START_TEST(defects_are_not_taken_for_a_border) {
  static const planc_policy broken = {.name = "broken", .make = make_broken};
  planc_problem problem = problem_of(tiny, 1 << 20);
  planc_largest_batch found;
  assert_fails(planc_find_largest_batch(&problem, &broken, NULL, NULL, &found), PLANC_INTERNAL, "a defect");
}
END_TEST

/* In rounds of one sample. */
static planc_status plan_in_rounds(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_problem ones = *evaluator->problem;
  planc_evaluator of_ones = *evaluator;
  ones.job.sub_batch = 1;
  of_ones.problem = &ones;
  return planc_policy_find("none")->make(&of_ones, out);
}

static planc_status make_rounds_up_to_100(const planc_evaluator *evaluator, planc_candidate *out) {
  return evaluator->problem->job.batch <= 100 ? plan_in_rounds(evaluator, out) : too_large();
}
static planc_status make_rounds_but_of_3(const planc_evaluator *evaluator, planc_candidate *out) {
  return evaluator->problem->job.batch != 3 ? plan_in_rounds(evaluator, out) : too_large();
}
static planc_status make_far_island(const planc_evaluator *evaluator, planc_candidate *out) {
  int64_t batch = evaluator->problem->job.batch;
  return batch <= 4 || (batch >= 100 && batch <= 110) ? plan_one(evaluator, out) : too_large();
}

/* What is found does not contradict what is known of the problem's own batch. */
START_TEST(the_batch_asked_for_is_tried) {
  static const struct {
    planc_policy policy;
    int64_t own, batch, fails_at;
    bool unbounded;
  } cases[] = {{{.name = "rounds", .make = make_rounds_up_to_100}, 1, 4, 0, true},
               {{.name = "rounds", .make = make_rounds_up_to_100}, 100, 100, 0, true},
               {{.name = "rounds", .make = make_rounds_up_to_100}, 101, 100, 0, false},
               {{.name = "rounds", .make = make_rounds_up_to_100}, 128, 100, 0, false},
               {{.name = "all but 3", .make = make_rounds_but_of_3}, 3, 4, 3, true},
               {{.name = "far island", .make = make_far_island}, 1, 4, 0, false},
               {{.name = "far island", .make = make_far_island}, 104, 110, 8, false},
               {{.name = "far island", .make = make_far_island}, 7, 4, 0, false}};
  planc_problem problem = problem_of(tiny, 1 << 20);
  problem.job.batch = cases[_i].own;
  planc_largest_batch found = search(&problem, &cases[_i].policy);
  ck_assert_int_eq(found.batch, cases[_i].batch);
  ck_assert_int_eq(found.fails_at, cases[_i].fails_at);
  ck_assert(found.unbounded == cases[_i].unbounded);
}
END_TEST

typedef struct visits {
  int32_t n;
  int64_t last;
} visits;

static void count(void *user, int64_t batch) {
  visits *v = user;
  v->n++;
  v->last = batch;
}

START_TEST(the_visitor_sees_every_try) {
  static const planc_policy policy = {.name = "up to 1000", .make = make_up_to_1000};
  planc_problem problem = problem_of(tiny, 1 << 20);
  visits seen = {0};
  planc_largest_batch found;
  ok(planc_find_largest_batch(&problem, &policy, count, &seen, &found));
  ck_assert_int_eq(seen.n, found.tried);
  ck_assert_int_eq(seen.last, 1000 * 7 / 8);
}
END_TEST

/* Everything resident takes 1 KiB, and 6 KiB a sample; naive holds an op's operands only, 4 KiB a sample at most. */
START_TEST(a_graph_worked_out_by_hand) {
  planc_problem problem = problem_of(tiny, 1 << 20);
  ck_assert_int_eq(search(&problem, planc_policy_find("none")).batch, 1023 / 6);
  ck_assert_int_eq(search(&problem, planc_policy_find("naive")).batch, 1024 / 4);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = 24 << 10;
  ck_assert_int_eq(search(&problem, planc_policy_find("none")).batch, 23 / 6);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = 6 << 10;
  ck_assert_int_eq(search(&problem, planc_policy_find("none")).batch, 0);
}
END_TEST

/* In rounds of its own or of the user's choice a policy takes any batch; ideal, any anyhow. */
START_TEST(rounds_have_no_border) {
  planc_problem problem = problem_of(tiny, 24 << 10);
  ck_assert(search(&problem, planc_policy_find("modnn")).unbounded);
  ck_assert(search(&problem, planc_policy_find("ideal")).unbounded);
  problem.job.sub_batch = 3;
  planc_largest_batch found = search(&problem, planc_policy_find("none"));
  ck_assert(found.unbounded);
  ck_assert_int_eq(found.tried, 3); /* 6 and 12 samples run in rounds, which is enough to know */
}
END_TEST

/* A round of 4 samples does not fit, and fewer than a round has are not asked for. */
START_TEST(batches_are_a_round_at_least) {
  planc_problem problem = problem_of(tiny, 24 << 10);
  problem.job.sub_batch = 4;
  planc_largest_batch found = search(&problem, planc_policy_find("none"));
  ck_assert_int_eq(found.batch, 0);
  ck_assert(!found.unbounded);
  ck_assert_int_eq(found.tried, 2);
}
END_TEST

/* --- Against every batch ------------------------------------------------------------------------------------------ */

enum { GRAPHS = 24, EVERY = 40 };

static bool has_plan(planc_problem problem, const planc_policy *policy, int64_t batch) {
  problem.job.batch = batch;
  planc_plan *plan;
  planc_status status = planc_make_plan(&problem, policy, &plan);
  if (!status) {
    planc_plan_free(plan);
    return true;
  }
  ck_assert_int_ne(planc_status_code(status), PLANC_INTERNAL);
  planc_status_free(status);
  return false;
}

/* With little host memory more rounds leave more on the device: that 16 and 32 samples fit in rounds tells nothing of
 * 64, whether or not that is asked for. */
START_TEST(rounds_that_need_more_have_a_border) {
  static const int64_t own[] = {8, 32, 47, 64, 72};
  planc_graph *graph;
  const char *derived;
  const planc_policy *policy = planc_policy_find("tensile");
  ok(planc_graph_prepare("graphs/tiny-transformer.yaml", NULL, false, &graph, &derived));
  planc_problem problem = problem_of(graph, 497 << 10);
  problem.terms.budgets[PLANC_MEMORY_HOST] = 212 << 10;
  problem.job.sub_batch = 8;
  ck_assert(has_plan(problem, policy, 16) && has_plan(problem, policy, 32) && !has_plan(problem, policy, 64));
  problem.job.batch = own[_i];
  planc_largest_batch found = search(&problem, policy);
  ck_assert(!found.unbounded);
  ck_assert_int_gt(found.batch, 32);
  ck_assert_int_lt(found.batch, 64);
  planc_graph_free(graph);
}
END_TEST

/* The border is one; where all is monotone it is the only one, and where it is not and the search saw it, it is told
 * truly. */
static void holds_up(const planc_problem *problem, const planc_policy *policy) {
  planc_largest_batch found = search(problem, policy);
  if (found.unbounded) {
    for (int64_t batch = found.batch; batch < found.batch + 3; batch++) {
      ck_assert_msg(has_plan(*problem, policy, batch), "%s: not any batch: %lld", policy->name, (long long)batch);
    }
    return;
  }
  ck_assert(found.batch == 0 || has_plan(*problem, policy, found.batch));
  ck_assert(!has_plan(*problem, policy, found.batch + 1));
  int64_t least_failing = 0, most_fitting = 0;
  for (int64_t batch = 1; batch <= EVERY; batch++) {
    if (has_plan(*problem, policy, batch)) {
      most_fitting = batch;
    } else if (least_failing == 0) {
      least_failing = batch;
    }
  }
  bool monotone = least_failing == 0 || least_failing > most_fitting;
  if (monotone && least_failing > 0) ck_assert_int_eq(found.batch, most_fitting);
  if (monotone && found.batch <= EVERY) ck_assert_int_eq(found.fails_at, 0);
  if (found.fails_at == 0) return;
  ck_assert_int_lt(found.fails_at, found.batch);
  ck_assert(!has_plan(*problem, policy, found.fails_at));
}

START_TEST(borders_of_random_graphs) {
  planc_graph *graph;
  randgraph_options options = {.max_ops = 12, .allow_batch_coupled = _i % 4 == 0, .unsplittable = _i % 2 == 0};
  ok(randgraph_make((uint64_t)_i, &options, &graph));
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    if (policy->supports & PLANC_POLICY_CHOOSES && _i % 3 > 0) continue; /* it makes the plans of all others */
    planc_problem problem = problem_of(graph, 0);
    problem.job.batch = 1 + _i % 9;
    problem.terms.settings.effort = 1; /* short searches: there are very many plans */
    ok(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
    holds_up(&problem, policy);
  }
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("largest batch");
  TCase *known = tcase_create("known");
  tcase_add_unchecked_fixture(known, set_up, tear_down);
  tcase_add_test(known, borders_that_are_known);
  tcase_add_loop_test(known, the_batch_asked_for_is_tried, 0, 8);
  tcase_add_test(known, defects_are_not_taken_for_a_border);
  tcase_add_test(known, the_visitor_sees_every_try);
  tcase_add_test(known, a_graph_worked_out_by_hand);
  tcase_add_test(known, rounds_have_no_border);
  tcase_add_test(known, batches_are_a_round_at_least);
  tcase_add_loop_test(known, rounds_that_need_more_have_a_border, 0, 5);
  suite_add_tcase(suite, known);
  TCase *random = tcase_create("random");
  tcase_add_unchecked_fixture(random, set_up, tear_down);
  tcase_add_loop_test(random, borders_of_random_graphs, 0, sampled(GRAPHS));
  tcase_set_timeout(random, 120);
  suite_add_tcase(suite, random);
  return run_suite(suite);
}
