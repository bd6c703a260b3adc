/* Bounds on random graphs and devices: no policy's plan is faster than what the search certifies for its rounds and its
 * peak, nor than what any prices at all do, and no plan made by hand is. The least of a range is what looking at all of
 * it finds. */
#include <check.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/bound.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_value.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/math.h"
#include "util/range_least.h"

enum { GRAPHS = 60, BUDGETS = 4, RANDOM_PRICES = 12 };

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* Links and launches that take about as long as ops do, or next to nothing. */
static void vary_device(uint64_t *rng) {
  static const int64_t rates[] = {20000000, 200000000, 2000000000}, duplex[] = {1000000, 900000, 600000, 300000},
                       slowdown[] = {0, 13000, 500000, 2000000};
  planc_device *device = &profile->device;
  device->links[PLANC_ROUTE_H2D] = (planc_link){rates[rand_below(rng, 3)], rand_below(rng, 2) * 1000};
  device->links[PLANC_ROUTE_D2H] = (planc_link){rates[rand_below(rng, 3)], rand_below(rng, 2) * 1000};
  device->duplex_ppm = duplex[rand_below(rng, 4)];
  device->slowdown_ppm = slowdown[rand_below(rng, 4)];
  device->launch_ns = rand_below(rng, 3) * 1000;
}

/* Sparse ones as well as some for everything, small ones and large ones. */
static void draw_prices(uint64_t *rng, const pl_bound_model *model, int64_t unit, pl_bound_prices *prices) {
  int32_t percent = (int32_t)rand_below(rng, 100) + 1;
  for (int32_t p = 0; p < model->n; p++)
    prices->byte[p] = rand_chance(rng, percent) ? pl_min(rand_below(rng, unit), pl_bound_most_price(model)) : 0;
  for (int32_t slot = 0; slot < 2 * model->n; slot++) {
    bool priced = rand_chance(rng, percent);
    int64_t both = rand_chance(rng, 50) ? PL_PRICE_ONE : rand_below(rng, PL_PRICE_ONE + 1);
    prices->in[slot] = priced ? rand_below(rng, both + 1) : 0;
    prices->out[slot] = priced ? both - prices->in[slot] : 0;
  }
}

/* What any prices come to is no more than the plan takes. */
static void any_prices_hold(const planc_problem *problem, const planc_plan *plan, uint64_t *rng) {
  planc_candidate candidate = {0};
  pl_arena arena = {0};
  pl_bound_model model;
  pl_bound_prices prices;
  pl_bound_value value;
  int64_t period = plan->predicted.period_ns;
  int64_t room = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - profile->device.reserved_bytes;
  ok(planc_candidate_rounds(problem, problem->job.sub_batch, &candidate));
  ok(pl_bound_model_make(&candidate, &problem->terms.settings, false, &arena, &model));
  ok(pl_bound_prices_new(&model, &arena, &prices));
  ok(pl_bound_value_new(&model, room, &arena, &value));
  for (int k = 0; k < RANDOM_PRICES; k++) {
    int64_t unit = pl_muldiv_floor(period, PL_PRICE_ONE, room) + 1;
    draw_prices(rng, &model, k % 2 == 0 ? unit : unit / model.n + 1, &prices);
    pl_bound_value_find(&value, &prices);
    ck_assert(value.value <= (pl_signed_wide)(period + 1) * PL_PRICE_ONE);
  }
  pl_arena_free(&arena);
  planc_candidate_free(&candidate);
}

static int64_t n_plans, n_beyond_ideal, n_near, n_priced, n_ruled_out;

/* What is certified in less than a plan takes, less the price of the rest, is no more than the plan's time. */
static void more_room_is_paid(planc_problem problem, const planc_plan *plan, int64_t least) {
  planc_bound bound;
  int64_t peak = problem.terms.budgets[PLANC_MEMORY_DEVICE], less = pl_max(least, peak - peak / 10);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = less;
  ok(planc_bound_make(&problem, 1, &bound));
  int64_t price = pl_muldiv_ceil(peak - less, bound.gib_ns, INT64_C(1) << 30);
  ck_assert_int_le(bound.time_ns - price, plan->predicted.period_ns);
  n_priced += bound.time_ns > bound.ideal_ns && bound.time_ns - price > bound.ideal_ns;
}

static void bound_holds(const planc_problem *problem, const planc_plan *plan, uint64_t *rng) {
  planc_problem of = *problem;
  planc_bound bound, again;
  int64_t period = plan->predicted.period_ns, peak = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
  of.job.sub_batch = plan->jobs[0].rounds[0];
  of.terms.budgets[PLANC_MEMORY_DEVICE] = peak;
  ok(planc_bound_make(&of, 1, &bound));
  ck_assert_msg(bound.time_ns <= period, "%s: %lld ns, bound %lld", plan->policy, (long long)period,
                (long long)bound.time_ns);
  ck_assert_int_ge(bound.time_ns, bound.ideal_ns);
  ck_assert_int_le(bound.least_bytes, peak);
  ok(planc_bound_make(&of, 1, &again));
  ck_assert_int_eq(bound.time_ns, again.time_ns);
  ok(planc_bound_make(&of, 0, &again));
  ck_assert_int_le(again.time_ns, bound.time_ns);
  of.terms.settings.no_swap = of.terms.settings.no_recompute = 0;
  ok(planc_bound_make(&of, 0, &again));
  ck_assert_int_le(again.least_bytes, bound.least_bytes);
  n_ruled_out += again.least_bytes < bound.least_bytes;
  of.terms.settings = problem->terms.settings;
  more_room_is_paid(of, plan, bound.least_bytes);
  any_prices_hold(&of, plan, rng);
  n_plans++;
  n_beyond_ideal += bound.time_ns > bound.ideal_ns;
  n_near += period - bound.time_ns <= period / 20;
}

static int64_t peak_of_none(const planc_problem *problem) {
  planc_plan *plan;
  ok(planc_make_plan(problem, planc_policy_find("none"), &plan));
  int64_t peak = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
  planc_plan_free(plan);
  return peak;
}

static void policies_hold(planc_problem *problem, int64_t budget, uint64_t *rng) {
  problem->terms.budgets[PLANC_MEMORY_DEVICE] = budget;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    planc_plan *plan;
    if (policy->supports & (PLANC_POLICY_SIMULATED | PLANC_POLICY_CHOOSES)) continue;
    planc_status status = planc_make_plan(problem, policy, &plan);
    /* What swaps or recomputes and nothing else has nothing to do where that is ruled out. */
    if (planc_status_code(status) == PLANC_INFEASIBLE || planc_status_code(status) == PLANC_USAGE) {
      planc_status_free(status);
      continue;
    }
    ok(status);
    bound_holds(problem, plan, rng);
    planc_plan_free(plan);
  }
}

START_TEST(no_plan_is_faster) {
  static const int64_t parts[BUDGETS] = {100, 80, 60, 45};
  randgraph_options options = {.max_ops = 24};
  int graphs = 3 * sampled(GRAPHS) < GRAPHS ? 3 * sampled(GRAPHS) : GRAPHS; /* fewer say less */
  for (int seed = 0; seed < graphs; seed++) {
    uint64_t rng = (uint64_t)seed;
    planc_graph *graph;
    vary_device(&rng);
    ok(randgraph_make((uint64_t)seed, &options, &graph));
    planc_problem problem = {.job = {.graph = graph, .profile = profile, .batch = rand_below(&rng, 6) + 1},
                             .terms.budgets = {INT64_C(1) << 40, -1}};
    if (rand_chance(&rng, 20)) problem.terms.settings.no_swap = 1;
    if (rand_chance(&rng, 20)) problem.terms.settings.no_recompute = 1;
    if (rand_chance(&rng, 30)) problem.job.sub_batch = rand_below(&rng, problem.job.batch) + 1;
    int64_t reserved = profile->device.reserved_bytes, most = peak_of_none(&problem) - reserved;
    for (int b = 0; b < BUDGETS; b++) policies_hold(&problem, reserved + most * parts[b] / 100, &rng);
    planc_graph_free(graph);
  }
  /* It says something only if many bounds are beyond the ops' own time, and many plans near their bounds. */
  ck_assert_int_gt(n_plans, graphs * 10);
  ck_assert_int_gt(n_beyond_ideal * 3, n_plans);
  ck_assert_int_gt(n_priced * 10, n_plans);
  ck_assert_int_gt(n_near * 5, n_plans);
  ck_assert_int_gt(n_ruled_out * 15, n_plans);
}
END_TEST

/* Plans that no policy makes. What persists and is only written by the next period is dropped behind the boundary,
 * without a copy; what is fed comes to a second place while the first one is read, and is moved. */
START_TEST(no_other_plan_is_faster) {
  static const char *const paths[] = {"tests/data/bound/dropped-behind-boundary.plan",
                                      "tests/data/bound/fed-twice.plan"};
  planc_profile *of_plans;
  ok(planc_profile_read("profiles/k40m.json", &of_plans));
  for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
    planc_plan *plan;
    planc_bound bound;
    planc_simulation run;
    ok(planc_plan_read(paths[k], &plan));
    ok(planc_check(plan, NULL, NULL));
    ok(planc_simulate(plan, NULL, &run));
    planc_problem problem = {.job = {.graph = plan->jobs[0].graph, .profile = of_plans, .batch = plan->jobs[0].batch},
                             .terms.budgets = {planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->budget_bytes, -1}};
    ok(planc_bound_of_plan(&problem, PLANC_BOUND_MOST_EFFORT, plan, &bound));
    ck_assert_int_le(bound.time_ns, run.period_ns);
    ck_assert_int_gt(bound.time_ns, run.period_ns * 99 / 100);
    planc_plan_free(plan);
  }
  planc_profile_free(of_plans);
}
END_TEST

START_TEST(launches_bind) {
  planc_graph *graph;
  planc_bound bound;
  planc_profile *slow;
  ok(randgraph_make(7, NULL, &graph));
  ok(planc_profile_read("profiles/k40m.json", &slow));
  ok(planc_profile_set_launch(slow, INT64_C(1000000000)));
  planc_problem problem = {.job = {.graph = graph, .profile = slow, .batch = 4},
                           .terms.budgets = {INT64_C(1) << 40, -1}};
  planc_plan *plan;
  ok(planc_bound_make(&problem, 0, &bound));
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  ck_assert_int_gt(bound.time_ns, 1000 * bound.ideal_ns);
  ck_assert_int_le(bound.time_ns, plan->predicted.period_ns);
  planc_plan_free(plan);
  planc_profile_free(slow);
  planc_graph_free(graph);
}
END_TEST

START_TEST(least_is_refused_below) {
  planc_graph *graph;
  planc_bound bound, below;
  ok(randgraph_make(7, NULL, &graph));
  planc_problem problem = {.job = {.graph = graph, .profile = profile, .batch = 4},
                           .terms.budgets = {INT64_C(1) << 40, -1}};
  ok(planc_bound_make(&problem, 0, &bound));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = bound.least_bytes;
  ok(planc_bound_make(&problem, 0, &below));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = bound.least_bytes - 1;
  planc_status status = planc_bound_make(&problem, 0, &below);
  ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
  ck_assert_int_eq(planc_status_shortage(status).bytes, bound.least_bytes);
  planc_status_free(status);
  planc_graph_free(graph);
}
END_TEST

START_TEST(least_of_range) {
  enum { MOST = 40, ASKED = 200 };
  uint64_t rng = 1;
  for (int32_t n = 1; n <= MOST; n++) {
    pl_arena arena = {0};
    pl_range_least tree;
    int64_t values[MOST];
    for (int32_t i = 0; i < n; i++) values[i] = rand_below(&rng, 20) - 10;
    ok(pl_range_least_new(&arena, n, &tree));
    pl_range_least_build(&tree, values);
    for (int k = 0; k < ASKED; k++) {
      int32_t first = (int32_t)rand_below(&rng, n), end = first + 1 + (int32_t)rand_below(&rng, n - first);
      int64_t least = INT64_MAX;
      for (int32_t i = first; i < end; i++) least = pl_min(least, values[i]);
      int32_t found = pl_range_least_of(&tree, first, end);
      ck_assert(first <= found && found < end);
      ck_assert_int_eq(values[found], least);
    }
    pl_arena_free(&arena);
  }
}
END_TEST

enum { MOST_DIMS = 7 };

static double random_between(uint64_t *rng, double low, double high) {
  enum { STEPS = 1000 };
  return low + (high - low) * (double)rand_below(rng, STEPS + 1) / STEPS;
}

/* The height of the lowest cut at a point; slopes are by cut. */
static double lowest_at(const pl_bound_cuts *cuts, double (*slopes)[MOST_DIMS], const double *point) {
  double lowest = 0;
  for (int32_t k = 0; k < cuts->n; k++) {
    double height = cuts->heights[k];
    for (int32_t d = 0; d < cuts->n_dims; d++) height += slopes[k][d] * point[d];
    if (k == 0 || height < lowest) lowest = height;
  }
  return lowest;
}

static bool is_allowed(const pl_bound_cuts *cuts, const double *center, double radius, const double *point) {
  const double nearly = 1e-7;
  for (int32_t d = 0; d < cuts->n_dims; d++)
    if (point[d] < -nearly || point[d] > center[d] + radius + nearly || point[d] < center[d] - radius - nearly)
      return false;
  for (int32_t k = cuts->first_pair; k < cuts->first_pair + cuts->n_pairs; k++)
    if (point[k] + point[k + cuts->n_pairs] > 1 + nearly) return false;
  return true;
}

/* The highest point is allowed, is as high as is said, and no other that is tried is higher: any, and such as are a
 * little to a side of it. Weights are those of a mean. */
START_TEST(highest_under_cuts) {
  enum { ROUNDS = 150, MOST_CUTS = 20, TRIES = 3000 };
  const double nearly = 1e-6;
  uint64_t rng = 5;
  for (int round = 0, rounds = sampled(ROUNDS); round < rounds; round++) {
    pl_arena arena = {0};
    pl_bound_cuts cuts;
    double center[MOST_DIMS] = {0}, slopes[MOST_CUTS][MOST_DIMS], point[MOST_DIMS], other[MOST_DIMS];
    int32_t n_pairs = (int32_t)rand_below(&rng, 3),
            n = 2 * n_pairs + 1 + (int32_t)rand_below(&rng, MOST_DIMS - 2 * n_pairs);
    ok(pl_bound_cuts_new(MOST_DIMS, MOST_CUTS, &arena, &cuts));
    pl_bound_cuts_begin(&cuts, n, n - 2 * n_pairs, n_pairs);
    while (cuts.n < MOST_CUTS) {
      for (int32_t d = 0; d < n; d++) slopes[cuts.n][d] = rand_chance(&rng, 30) ? 0 : random_between(&rng, -2, 2);
      ck_assert(pl_bound_cuts_add(&cuts, random_between(&rng, 0, 1), slopes[cuts.n]));
      double radius = random_between(&rng, 0.01, 2), weights = 0;
      double height = pl_bound_cuts_highest(&cuts, center, radius, point);
      ck_assert(is_allowed(&cuts, center, radius, point));
      ck_assert_double_eq_tol(height, lowest_at(&cuts, slopes, point), nearly);
      for (int32_t k = 0; k < cuts.n; k++) weights += cuts.weights[k];
      ck_assert_double_eq_tol(weights, 1, nearly);
      for (int k = 0; k < TRIES / MOST_CUTS; k++) {
        double away = k % 2 == 0 ? 0.05 : 2 * radius;
        for (int32_t d = 0; d < n; d++)
          other[d] = (k % 2 == 0 ? point[d] : center[d]) + random_between(&rng, -away, away);
        if (is_allowed(&cuts, center, radius, other))
          ck_assert_double_le(lowest_at(&cuts, slopes, other), height + nearly);
      }
      if (rand_chance(&rng, 50)) memcpy(center, point, sizeof center);
    }
    ck_assert(!pl_bound_cuts_add(&cuts, 0, slopes[0]));
    pl_arena_free(&arena);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("bound");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 300);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_test(tests, no_plan_is_faster);
  tcase_add_test(tests, no_other_plan_is_faster);
  tcase_add_test(tests, launches_bind);
  tcase_add_test(tests, least_is_refused_below);
  tcase_add_test(tests, least_of_range);
  tcase_add_test(tests, highest_under_cuts);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
