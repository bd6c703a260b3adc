/* Every policy against brute force on tiny graphs (tests/support/brute.h states the space): none needs less memory than
 * the least, none is faster than what its budget allows at best, and every schedule of the space that is run out in
 * full becomes a valid plan that holds at least its live bytes, is no faster than its bound, and computes the right
 * bits. Policies that recompute are outside the space and are held to the memory alone. What planc certifies
 * (planc/bound.h) is no more than any of them takes. */
#include <check.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/bound.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planrt/planrt.h"
#include "tests/support/brute.h"
#include "tests/support/forward.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/math.h"

enum { RANDOM_GRAPHS = 40, MOST_BOUNDS = 5000, MOST_PLANS = 1200, RUN_EVERY = 97, BOUND_EVERY = 7, BUDGETS = 5 };

static planc_profile *profile;

/* Small tensors on a slow link without latency: transfers take about as long as ops do. */
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.launch_ns = 0;
  profile->device.slowdown_ppm = 0;
  profile->device.duplex_ppm = 1000000;
  profile->device.links[PLANC_ROUTE_H2D] = profile->device.links[PLANC_ROUTE_D2H] = (planc_link){500000000, 0};
}
static void free_profile(void) {
  planc_profile_free(profile);
}

/* --- Graphs ------------------------------------------------------------------------------------------------------- */

static planc_graph *trained(void) {
  planc_graph *forward = forward_finish(), *graph;
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  return graph;
}

static planc_graph *one_layer(void) {
  forward_begin();
  forward_tensor("x", "input f32[N,512]");
  forward_classifier("x", 512);
  return trained();
}

static planc_graph *convolution(void) {
  forward_begin();
  forward_tensor("x", "input f32[N,8,8,8]");
  forward_tensor("w", "param f32[8,8,3,3]");
  forward_tensor("y", "f32[N,8,8,8]");
  forward_op("conv", "conv2d", "x w", "y", "stride=1,1 pad=1,1");
  forward_classifier("y", 512);
  return trained();
}

static planc_graph *two_layers(void) {
  forward_begin();
  forward_tensor("x", "input f32[N,256]");
  forward_tensor("w", "param f32[512,256]");
  forward_tensor("h", "f32[N,512]");
  forward_tensor("r", "f32[N,512]");
  forward_op("fc1", "linear", "x w", "h", "");
  forward_op("relu", "relu", "h", "r", "");
  forward_classifier("r", 512);
  return trained();
}

typedef struct tiny {
  planc_graph *(*make)(void);
  int64_t batch;
} tiny;

static const tiny hand_made[] = {{one_layer, 1},   {one_layer, 2},  {one_layer, 3},  {convolution, 1},
                                 {convolution, 2}, {two_layers, 1}, {two_layers, 2}, {two_layers, 3}};
enum { HAND_MADE = sizeof hand_made / sizeof *hand_made };

static planc_graph *make_graph(int index, int64_t *out_batch) {
  if (index < HAND_MADE) {
    *out_batch = hand_made[index].batch;
    return hand_made[index].make();
  }
  planc_graph *graph;
  randgraph_options options = {.max_ops = 6 + index % 5, .max_elements = 1024};
  ok(randgraph_make((uint64_t)index, &options, &graph));
  *out_batch = 1 + index % 3;
  return graph;
}

/* --- The oracle --------------------------------------------------------------------------------------------------- */

typedef struct point {
  int64_t peak, ns;
} point;

/* All of a case: one space for every size of sub-batch. */
typedef struct oracle {
  int index;
  planc_problem problem;
  int32_t n_sizes; /* sub-batches of 1 .. n_sizes samples; the last one is the whole batch */
  planc_candidate candidates[3];
  brute_space spaces[3];
  int64_t least[3];            /* peak, reserved included */
  bool bounded[3], planned[3]; /* small enough for all bounds, for all plans */
  int32_t n_plans[3];
  point plans[3][2 * MOST_PLANS];
} oracle;

/* What the test has seen. */
static int64_t n_plans, n_blank, n_tight, n_attained, n_runs, n_compared, n_optimal, n_bounds, n_certified;

static int64_t reserved(void) {
  return planc_profile_device(profile)->reserved_bytes;
}

static void runs_right(const planc_plan *plan, int seed) {
  planrt_options options = {.seed = (uint64_t)seed, .synthetic = true, .verify = true, .poison = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 2));
  planrt_session_free(session);
  n_runs++;
}

/* What planc certifies is no more than what a plan takes; *out_reached says that it is as much. */
static void bound_holds(const planc_problem *problem, const planc_plan *plan, point takes, bool *out_reached) {
  planc_problem of = *problem;
  planc_bound bound;
  of.job.sub_batch = plan->jobs[0].rounds[0];
  of.terms.budgets[PLANC_MEMORY_DEVICE] = takes.peak;
  ok(planc_bound_make(&of, 1, &bound));
  ck_assert_int_ge(takes.ns, bound.time_ns);
  ck_assert_int_ge(bound.time_ns, bound.ideal_ns);
  ck_assert_int_ge(takes.peak, bound.least_bytes);
  *out_reached = takes.ns - bound.time_ns <= takes.ns / 100;
}

static point plan_is_right(const oracle *o, int32_t size, const brute_choice *choice, bool apart) {
  const brute_space *space = &o->spaces[size];
  planc_candidate candidate = o->candidates[size];
  planc_plan *plan;
  planc_simulation simulation;
  planc_check_report report;
  ok(brute_schedule(space, choice, apart, &candidate.schedule));
  ok(lower_for(&o->problem, "none", &candidate, &plan));
  ok(planc_check(plan, NULL, &report));
  ok(planc_simulate(plan, NULL, &simulation));
  if (n_plans % BOUND_EVERY == 0) {
    bool reached;
    bound_holds(&o->problem, plan, (point){simulation.peak_bytes, simulation.period_ns}, &reached);
  }
  int64_t live = brute_peak(space, choice), arena = pl_align_up(device_of(plan)->arena_bytes, PLANC_ALIGNMENT);
  int64_t bound = brute_bound_ns(space, choice, arena);
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_DEVICE], simulation.peak_bytes);
  ck_assert_msg(arena >= live, "graph %d: %lld live bytes in an arena of %lld", o->index, (long long)live,
                (long long)arena);
  ck_assert_msg(simulation.period_ns >= bound, "graph %d: %lld ns, not possible below %lld", o->index,
                (long long)simulation.period_ns, (long long)bound);
  if (!apart) {
    n_blank++;
    n_tight += arena == live;
  }
  n_attained += simulation.period_ns == bound;
  if (n_plans++ % RUN_EVERY == 0) runs_right(plan, o->index);
  planc_plan_free(plan);
  planc_schedule_free(candidate.schedule);
  return (point){report.peak_bytes[PLANC_MEMORY_DEVICE], simulation.period_ns};
}

/* False when a space is too large to be one. */
static bool oracle_make(int index, oracle *o) {
  *o = (oracle){.index = index};
  o->problem = (planc_problem){.job.profile = profile,
                               .terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40,
                               .terms.budgets[PLANC_MEMORY_HOST] = -1};
  o->problem.job.graph = make_graph(index, &o->problem.job.batch);
  o->n_sizes = (int32_t)o->problem.job.batch;
  for (int32_t k = 0; k < o->n_sizes; k++) {
    ok(planc_candidate_rounds(&o->problem, k + 1, &o->candidates[k]));
    if (!brute_space_of(o->candidates[k].trace, o->candidates[k].costs[0], &o->spaces[k])) return false;
    o->least[k] = reserved() + brute_least_peak(&o->spaces[k]);
    o->bounded[k] = brute_count(&o->spaces[k], false) <= MOST_BOUNDS;
    o->planned[k] = brute_count(&o->spaces[k], true) <= MOST_PLANS;
  }
  return true;
}

static void oracle_free(oracle *o) {
  for (int32_t k = 0; k < o->n_sizes; k++) planc_candidate_free(&o->candidates[k]);
  planc_graph_free((planc_graph *)o->problem.job.graph);
}

static void run_plans(oracle *o) {
  for (int32_t k = 0; k < o->n_sizes; k++) {
    if (!o->planned[k]) continue;
    brute_choice choice;
    brute_first(&o->spaces[k], true, &choice);
    do {
      ck_assert_int_ge(reserved() + brute_peak(&o->spaces[k], &choice), o->least[k]);
      for (int apart = 0; apart < 2; apart++) o->plans[k][o->n_plans[k]++] = plan_is_right(o, k, &choice, apart);
    } while (brute_next(&o->spaces[k], true, &choice));
  }
}

/* The sub-batches that a policy may choose from, as indices from .. o->n_sizes - 1. */
static int32_t first_size(const oracle *o, const planc_policy *policy) {
  return policy->supports & PLANC_POLICY_ROUNDS ? 0 : o->n_sizes - 1;
}

/* Lets gradients leave within an iteration, or params and state as well: outside the space. */
static bool is_outside(const planc_policy *policy) {
  static const char *const names[] = {"naive", "capuchin", "tensile", "window", "auto", "priced"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(policy->name, names[i]) == 0) return true;
  return false;
}

static int64_t least_peak(const oracle *o, const planc_policy *policy) {
  int64_t least = INT64_MAX;
  for (int32_t k = first_size(o, policy); k < o->n_sizes; k++) {
    int64_t at = is_outside(policy) ? reserved() + brute_least_instance(&o->spaces[k]) : o->least[k];
    if (at < least) least = at;
  }
  return least;
}

/* The least bound of all schedules; 0 when some were too many to look at. */
static int64_t least_ns(const oracle *o, int32_t from, int64_t budget) {
  int64_t least = INT64_MAX;
  for (int32_t k = from; k < o->n_sizes; k++) {
    if (!o->bounded[k]) return 0;
    brute_choice choice;
    brute_first(&o->spaces[k], false, &choice);
    do {
      int64_t ns = brute_bound_ns(&o->spaces[k], &choice, budget - reserved());
      if (ns < least) least = ns;
    } while (brute_next(&o->spaces[k], false, &choice));
  }
  return least;
}

/* The fastest plan that was run out, INT64_MAX when none fits, 0 when not all were. */
static int64_t best_ns(const oracle *o, int32_t from, int64_t budget) {
  int64_t best = INT64_MAX;
  for (int32_t k = from; k < o->n_sizes; k++) {
    if (!o->planned[k]) return 0;
    for (int32_t p = 0; p < o->n_plans[k]; p++)
      if (o->plans[k][p].peak <= budget && o->plans[k][p].ns < best) best = o->plans[k][p].ns;
  }
  return best;
}

/* --- Policies ----------------------------------------------------------------------------------------------------- */

/* `none` in a plan is a point of the space, so it is held to the points that were run out as well. */
static void is_no_faster(const oracle *o, const planc_policy *policy, const planc_plan *plan, int64_t budget) {
  int32_t from = first_size(o, policy);
  int64_t ns = plan->predicted.period_ns, bound = least_ns(o, from, budget), best = best_ns(o, from, budget);
  ck_assert_msg(ns >= bound, "%s, graph %d, %lld bytes: %lld ns, not possible below %lld", policy->name, o->index,
                (long long)budget, (long long)ns, (long long)bound);
  if (strcmp(policy->name, "none") == 0)
    ck_assert_msg(ns >= best, "none, graph %d, %lld bytes: %lld ns, the best takes %lld", o->index, (long long)budget,
                  (long long)ns, (long long)best);
  n_compared += bound > 0;
  n_optimal += bound > 0 && ns == bound;
}

static void is_possible_at(const oracle *o, const planc_policy *policy, int64_t budget) {
  int64_t least = least_peak(o, policy);
  planc_problem problem = o->problem;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = budget;
  planc_plan *plan;
  planc_status status = planc_make_plan(&problem, policy, &plan);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return;
  }
  ok(status);
  bool reached;
  bound_holds(&problem, plan, (point){plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], plan->predicted.period_ns},
              &reached);
  n_certified += reached;
  n_bounds++;
  int64_t peak = reserved() + pl_align_up(device_of(plan)->arena_bytes, PLANC_ALIGNMENT);
  ck_assert_msg(peak >= least, "%s, graph %d: peak %lld below %lld", policy->name, o->index, (long long)peak,
                (long long)least);
  if (!(policy->supports & PLANC_POLICY_RECOMPUTES) && !is_outside(policy)) is_no_faster(o, policy, plan, budget);
  planc_plan_free(plan);
}

static void policies_are_possible(const oracle *o) {
  int64_t modnn;
  ok(find_least_bytes(&o->problem, planc_policy_find("modnn"), &modnn));
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & (PLANC_POLICY_SIMULATED | PLANC_POLICY_CHOOSES)) continue;
    int64_t least, floor = least_peak(o, policy);
    ok(find_least_bytes(&o->problem, policy, &least));
    ck_assert_msg(least >= floor, "%s, graph %d: least budget %lld below %lld", policy->name, o->index,
                  (long long)least, (long long)floor);
    int64_t budgets[BUDGETS] = {modnn, modnn + modnn / 8, 2 * modnn, least, INT64_C(1) << 40};
    for (int b = 0; b < BUDGETS; b++) is_possible_at(o, policy, budgets[b]);
  }
}

START_TEST(no_policy_beats_brute_force) {
  static oracle o;
  int seen = 0;
  for (int index = 0; index < HAND_MADE + RANDOM_GRAPHS; index++) {
    bool small = oracle_make(index, &o);
    if (small) {
      run_plans(&o);
      policies_are_possible(&o);
      seen++;
    }
    ck_assert(small || index >= HAND_MADE);
    oracle_free(&o);
  }
  /* All of this says something only if bounds are reached and placement rarely needs more than what lives. */
  ck_assert_int_ge(seen, RANDOM_GRAPHS);
  ck_assert_int_gt(n_runs, 0);
  ck_assert_int_ge(n_tight * 100, n_blank * 95);
  ck_assert_int_ge(n_attained * 10, n_plans);
  ck_assert_int_ge(n_optimal * 10, n_compared);
  ck_assert_int_ge(n_certified * 10, n_bounds);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("brute");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 300);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_test(tests, no_policy_beats_brute_force);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
