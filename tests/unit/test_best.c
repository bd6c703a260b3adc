/* The least budget, counted in plans, and policy `best`, which is never slower than any other. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/ideal.h"
#include "plan/one_job.h"
#include "planc/analysis.h"
#include "planc/metrics.h"
#include "planc/policy.h"
#include "planner/choose/reasons.h"
#include "planner/choose/sub_batch.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 30, MILLION = 1000000 };

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

static planc_graph *random_graph(int seed) {
  planc_graph *graph;
  randgraph_options options = {.max_ops = 24, .max_elements = 2048, .allow_batch_coupled = seed % 4 == 0};
  ok(randgraph_make(9000 + (uint64_t)seed, &options, &graph));
  return graph;
}

static planc_problem problem_of(const planc_graph *graph, int seed) {
  return (planc_problem){
      .job.graph = graph, .job.profile = profile, .job.batch = 1 + seed % 7, .terms.budgets[PLANC_MEMORY_HOST] = -1};
}

static bool makes_plans(const planc_policy *policy) {
  return !(policy->supports & (PLANC_POLICY_SIMULATED | PLANC_POLICY_CHOOSES | PLANC_POLICY_SEARCHES));
}

static planc_plan *plan_at(planc_problem problem, const char *policy, int64_t budget, int64_t host) {
  planc_plan *plan;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = budget;
  problem.terms.budgets[PLANC_MEMORY_HOST] = host;
  planc_status status = planc_make_plan(&problem, planc_policy_find(policy), &plan);
  if (planc_status_code(status) != PLANC_INFEASIBLE) ok_in(status, policy);
  if (status) plan = NULL;
  planc_status_free(status);
  return plan;
}

/* --- The least budget --------------------------------------------------------------------------------------------- */

static const planc_policy *counted;
static int made;

static planc_status count(const planc_evaluator *evaluator, planc_candidate *out) {
  made++;
  return counted->make(evaluator, out);
}

/* Whatever the policy: whole plans are counted where they are made, not where the search says so. */
START_TEST(a_search_makes_few_plans) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  for (counted = planc_policies(); counted->name; counted++) {
    if (!makes_plans(counted)) continue;
    planc_policy counting = *counted;
    planc_least least, again;
    counting.make = count;
    made = 0;
    ok_in(planc_find_least(&problem, &counting, PLANC_MEMORY_DEVICE, NULL, &least), counted->name);
    ck_assert_int_eq(made, least.tried);
    ck_assert_int_le(made, PLANC_LEAST_PLANS);
    ck_assert_int_le(least.plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], least.bytes);
    ok_in(planc_find_least(&problem, counted, PLANC_MEMORY_DEVICE, NULL, &again), counted->name);
    ck_assert_int_eq(again.bytes, least.bytes);
    ck_assert_int_eq(again.tried, least.tried);
    planc_plan_free(least.plan);
    planc_plan_free(again.plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* A failure that is known saves the first plan, and leads to the same. */
START_TEST(a_search_goes_on_from_a_failure) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  const planc_policy *naive = planc_policy_find("naive");
  planc_least fresh, known;
  planc_plan *plan;
  ok(planc_find_least(&problem, naive, PLANC_MEMORY_DEVICE, NULL, &fresh));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = fresh.bytes - PLANC_ALIGNMENT;
  planc_status failed = planc_make_plan(&problem, naive, &plan);
  ck_assert_int_eq(planc_status_code(failed), PLANC_INFEASIBLE);
  ck_assert_int_eq(planc_status_shortage(failed).memory, PLANC_MEMORY_DEVICE);
  ok(planc_find_least(&problem, naive, PLANC_MEMORY_DEVICE, failed, &known));
  ck_assert_int_eq(known.bytes, fresh.bytes);
  ck_assert_int_lt(known.tried, fresh.tried);
  planc_status_free(failed);
  planc_plan_free(known.plan);
  planc_plan_free(fresh.plan);
  planc_graph_free(graph);
}
END_TEST

/* Where the host is what is too small the failure says so, and the least host budget is what the plan needs. */
START_TEST(the_host_has_a_least_budget) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  const planc_policy *naive = planc_policy_find("naive");
  planc_least least;
  ok(planc_find_least(&problem, naive, PLANC_MEMORY_DEVICE, NULL, &least));
  int64_t device = least.bytes, host = host_of(least.plan)->arena_bytes;
  planc_peak *peak;
  ok(planc_peak_of(least.plan, PLANC_MEMORY_HOST, &peak));
  int64_t sum = 0;
  for (int32_t i = 0; i < peak->n; i++) sum += peak->entries[i].bytes;
  ck_assert_int_eq(sum, peak->bytes);
  ck_assert_int_le(peak->bytes, host);
  ck_assert_int_eq(peak->bytes > 0, host > 0);
  planc_peak_free(peak);
  planc_plan_free(least.plan);
  if (host > 0) {
    planc_plan *plan;
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = device;
    problem.terms.budgets[PLANC_MEMORY_HOST] = host - 1;
    planc_status failed = planc_make_plan(&problem, naive, &plan);
    ck_assert_int_eq(planc_status_code(failed), PLANC_INFEASIBLE);
    ck_assert_int_eq(planc_status_shortage(failed).memory, PLANC_MEMORY_HOST);
    ck_assert_int_eq(planc_status_shortage(failed).bytes, host);
    ok(planc_find_least(&problem, naive, PLANC_MEMORY_HOST, failed, &least));
    ck_assert(least.is_least);
    ck_assert_int_ge(least.bytes, host);
    ck_assert_int_lt(least.bytes, host + PLANC_ALIGNMENT);
    ck_assert_int_le(least.tried, 2);
    planc_status_free(failed);
    planc_plan_free(least.plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* A policy that swaps as much as the host holds keeps the rest, so that its plan does not fit the device: that tells
 * nothing of the host, which is tried without limit first. */
START_TEST(a_host_is_found_where_the_device_fails) {
  planc_graph *forward, *graph;
  planc_plan *plan;
  planc_least least;
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 64, .terms.budgets[PLANC_MEMORY_DEVICE] = 690 << 10};
  const planc_policy *tensile = planc_policy_find("tensile");
  planc_status failed = planc_make_plan(&problem, tensile, &plan);
  ck_assert_int_eq(planc_status_code(failed), PLANC_INFEASIBLE);
  ck_assert_int_eq(planc_status_shortage(failed).memory, PLANC_MEMORY_DEVICE);
  ok(planc_find_least(&problem, tensile, PLANC_MEMORY_HOST, failed, &least));
  ck_assert_int_gt(least.bytes, 0);
  ck_assert_int_lt(least.bytes, 690 << 10);
  ck_assert_int_le(least.tried, PLANC_LEAST_PLANS);
  ck_assert_int_le(host_of(least.plan)->arena_bytes, least.bytes);
  ck_assert_int_le(least.plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], problem.terms.budgets[PLANC_MEMORY_DEVICE]);
  planc_least lacking;
  planc_memory_kind memory;
  ok(planc_find_lacking(&problem, tensile, failed, &memory, &lacking));
  ck_assert_int_eq(memory, PLANC_MEMORY_HOST);
  ck_assert_int_eq(lacking.bytes, least.bytes);
  planc_plan_free(lacking.plan);
  planc_status_free(failed);
  planc_plan_free(least.plan);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

/* Like `none`, but that it wants a budget in a set: from some bytes on, or just some fewer. */
static int64_t fits_from, fits_alone;

static planc_status make_with_gap(const planc_evaluator *evaluator, planc_candidate *out) {
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE];
  planc_shortage shortage = {PLANC_MEMORY_DEVICE, fits_from};
  if (budget < fits_from && budget != fits_alone) return planc_infeasible(shortage, "a budget in the gap");
  return planc_policy_find("none")->make(evaluator, out);
}

/* The last plan tries what the smallest one takes, though more than that fails. Where it fits nothing is known of a
 * unit less; where it fails the least is what it was before. */
START_TEST(what_fails_is_kept_beside_the_last_plan) {
  planc_graph *graph = random_graph(0);
  planc_problem problem = problem_of(graph, 0);
  planc_policy policy = *planc_policy_find("none");
  planc_least all;
  ok(planc_find_least(&problem, &policy, PLANC_MEMORY_DEVICE, NULL, &all));
  planc_plan_free(all.plan);
  policy.make = make_with_gap;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = all.bytes + INT64_C(8) * PLANC_ALIGNMENT;
  fits_from = problem.terms.budgets[PLANC_MEMORY_DEVICE] + INT64_C(2) * PLANC_ALIGNMENT;
  for (int fits = 0; fits < 2; fits++) {
    planc_least least;
    planc_plan *plan;
    fits_alone = fits ? all.bytes : -1;
    planc_status failed = planc_make_plan(&problem, &policy, &plan);
    ck_assert_int_eq(planc_status_code(failed), PLANC_INFEASIBLE);
    ok(planc_find_least(&problem, &policy, PLANC_MEMORY_DEVICE, failed, &least));
    ck_assert_int_eq(least.tried, 3);
    ck_assert_int_eq(least.bytes, fits ? all.bytes : fits_from);
    ck_assert_int_eq(least.is_least, !fits);
    planc_status_free(failed);
    planc_plan_free(least.plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* The device's least budget is told of a host without limit, whatever the problem's own has room for. */
START_TEST(the_device_is_found_beside_any_host) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  const planc_policy *naive = planc_policy_find("naive");
  planc_least any, least;
  planc_memory_kind memory;
  planc_plan *plan;
  ok(planc_find_least(&problem, naive, PLANC_MEMORY_DEVICE, NULL, &any));
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = any.bytes - PLANC_ALIGNMENT;
  problem.terms.budgets[PLANC_MEMORY_HOST] = 0;
  planc_status failed = planc_make_plan(&problem, naive, &plan);
  ok(planc_find_least_device(&problem, naive, failed, &least));
  ck_assert_int_eq(least.bytes, any.bytes);
  planc_plan_free(least.plan);
  ok(planc_find_lacking(&problem, naive, failed, &memory, &least));
  ck_assert_int_eq(memory, PLANC_MEMORY_DEVICE);
  ck_assert_int_eq(least.bytes, any.bytes);
  planc_plan_free(least.plan);
  planc_plan_free(any.plan);
  planc_status_free(failed);
  planc_graph_free(graph);
}
END_TEST

static planc_shortage kept_of(planc_shortage a, planc_shortage b) {
  planc_status kept = NULL;
  pl_keep_lesser(&kept, planc_infeasible(a, "a"));
  pl_keep_lesser(&kept, planc_infeasible(b, "b"));
  planc_shortage shortage = planc_status_shortage(kept);
  planc_status_free(kept);
  return shortage;
}

/* Who lacks storage has met the budgets of the host and the device, who lacks the host's that of the device. */
START_TEST(reasons_nearer_to_a_plan_are_kept) {
  for (int a = PLANC_MEMORY_DEVICE; a <= PLANC_MEMORY_STORAGE; a++) {
    for (int b = PLANC_MEMORY_DEVICE; b <= PLANC_MEMORY_STORAGE; b++) {
      planc_shortage kept =
          kept_of((planc_shortage){(planc_memory_kind)a, 9 + a}, (planc_shortage){(planc_memory_kind)b, 5 + b});
      ck_assert_int_eq(kept.memory, a > b ? a : b);
      ck_assert_int_eq(kept.bytes, a > b ? 9 + a : 5 + b);
    }
  }
}
END_TEST

/* --- best --------------------------------------------------------------------------------------------------------- */

/* No other policy has a faster plan; `none` has its ties; and the plan is the one that its policy makes. */
static void is_best(planc_problem problem, int64_t budget, int64_t host, int seed) {
  planc_plan *best = plan_at(problem, "best", budget, host), *none = plan_at(problem, "none", budget, host);
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (!makes_plans(policy)) continue;
    planc_plan *plan = plan_at(problem, policy->name, budget, host);
    ck_assert_msg(!plan || best, "graph %d: %s fits, best does not", seed, policy->name);
    if (!plan) continue;
    int64_t ns = plan->predicted.period_ns, best_ns = best->predicted.period_ns;
    bool none_wins = strcmp(best->policy, "none") == 0;
    ck_assert_msg(best_ns - (none_wins ? best_ns / 1000 : 0) <= ns, "graph %d: %s takes %lld, best, %s, %lld", seed,
                  policy->name, (long long)ns, best->policy, (long long)best_ns);
    if (strcmp(policy->name, best->policy) == 0 && pl_plan_job(plan)->rounds[0] == pl_plan_job(best)->rounds[0]) {
      ck_assert_int_eq(ns, best_ns);
      char *a, *b;
      size_t length;
      ok(planc_plan_print(plan, &a, &length));
      ok(planc_plan_print(best, &b, &length));
      ck_assert_str_eq(a, b);
      free(a);
      free(b);
    }
    planc_plan_free(plan);
  }
  if (best) {
    ck_assert(makes_plans(planc_policy_find(best->policy)));
    ck_assert(!none || strcmp(best->policy, "none") == 0 || best->predicted.period_ns < none->predicted.period_ns);
  }
  planc_plan_free(best);
  planc_plan_free(none);
}

START_TEST(no_policy_beats_best) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  int64_t least, all;
  ok(find_least_bytes(&problem, planc_policy_find("best"), &least));
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  const int64_t budgets[] = {least - PLANC_ALIGNMENT, least, (least + all) / 2, all, 2 * all};
  for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) is_best(problem, budgets[k], -1, _i);
  is_best(problem, (least + all) / 2, 0, _i);
  planc_graph_free(graph);
}
END_TEST

/* What cannot be faster is not made: where everything fits at full speed the others, asked for less, are not begun. */
START_TEST(what_cannot_win_is_not_made) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = INT64_C(1) << 40;
  planc_plan *plan = plan_at(problem, "none", problem.terms.budgets[PLANC_MEMORY_DEVICE], -1);
  problem.terms.beat_ns = plan->predicted.jobs[0].ideal_ns;
  planc_plan_free(plan);
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (!makes_plans(policy) || (policy->supports & PLANC_POLICY_ROUNDS)) continue;
    assert_fails(planc_make_plan(&problem, policy, &plan), PLANC_INFEASIBLE, "is asked for");
  }
  planc_graph_free(graph);
}
END_TEST

/* Where the host may hold nothing, only what does without it is taken. */
START_TEST(a_host_budget_steers_best) {
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  int64_t chen;
  ok(find_least_bytes(&problem, planc_policy_find("chen"), &chen));
  planc_plan *plan = plan_at(problem, "best", chen, 0);
  ck_assert_ptr_nonnull(plan);
  ck_assert_int_eq(host_of(plan)->arena_bytes, 0);
  const char *means;
  ok(planc_plan_means(plan, &means));
  ck_assert_ptr_null(strstr(means, "swaps"));
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

static planc_graph *trained(const char *path) {
  planc_graph *forward, *graph;
  ok(planc_graph_read(path, &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  return graph;
}

static void plenty_is_not_limited(planc_problem problem, int64_t budget) {
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (!makes_plans(policy)) continue;
    planc_plan *unlimited = plan_at(problem, policy->name, budget, -1);
    planc_plan *limited = plan_at(problem, policy->name, budget, INT64_C(1) << 50);
    ck_assert_msg(!unlimited == !limited, "%s at %lld", policy->name, (long long)budget);
    if (unlimited) ck_assert_int_eq(unlimited->predicted.period_ns, limited->predicted.period_ns);
    planc_plan_free(unlimited);
    planc_plan_free(limited);
  }
}

/* A limit that nothing reaches is as none. */
START_TEST(a_host_with_plenty_is_not_limited) {
  int64_t all;
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  for (int64_t percent = 40; percent <= 110; percent += 10) plenty_is_not_limited(problem, all * percent / 100);
  planc_graph_free(graph);
}
END_TEST

/* Rounds are a choice as well: where those of one sample fit with all data resident, who splits the batch needs no
 * host. */
START_TEST(a_host_budget_steers_to_rounds) {
  static const char *const splitting[] = {"modnn", "vdnn+"};
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i), single = problem;
  single.job.sub_batch = 1;
  bool may_split;
  int64_t resident;
  ok(pl_may_split(&problem, &may_split));
  if (may_split) ok(find_least_bytes(&single, planc_policy_find("none"), &resident));
  for (int i = 0; may_split && i < 2; i++) {
    planc_plan *plan = plan_at(problem, splitting[i], resident, 0);
    ck_assert_msg(plan != NULL, "%s", splitting[i]);
    ck_assert_int_eq(host_of(plan)->arena_bytes, 0);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* Of two GPUs as well: what a plan takes of the host when that is not limited is enough. */
START_TEST(a_host_that_suffices_is_enough) {
  static const char *const choosing[] = {"vdnn-dyn", "vdnn+", "modnn"};
  planc_graph *graph = random_graph(_i);
  planc_problem problem = problem_of(graph, _i);
  problem.job.batch *= 2;
  problem.terms.gpus = 2;
  bool may_split;
  int64_t none;
  ok(pl_may_split(&problem, &may_split));
  if (may_split) ok(find_least_bytes(&problem, planc_policy_find("none"), &none));
  for (int i = 0; may_split && i < 3; i++) {
    planc_plan *plan = plan_at(problem, choosing[i], none * 3 / 4, -1);
    if (!plan) continue;
    planc_plan *again = plan_at(problem, choosing[i], none * 3 / 4, 2 * host_of(plan)->arena_bytes);
    ck_assert_msg(again != NULL, "%s", choosing[i]);
    planc_plan_free(again);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

static void swaps_nothing(planc_problem problem, const char *policy) {
  planc_plan *plan;
  ok_in(planc_make_plan(&problem, planc_policy_find(policy), &plan), policy);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    ck_assert_msg(!swaps_out(plan, instr) && !swaps_in(plan, instr), "%s at %lld swaps", policy,
                  (long long)problem.terms.budgets[PLANC_MEMORY_DEVICE]);
  }
  planc_plan_free(plan);
}

/* Where they may not swap, or not to the host, policies that split the batch have smaller rounds: each fits what rounds
 * of one sample with everything resident fit, and so does best. */
START_TEST(rounds_are_a_choice) {
  static const char *const splitting[] = {"modnn", "vdnn+", "best"};
  planc_graph *graph = trained("graphs/lenet-digits.yaml");
  planc_problem problem = problem_of(graph, 7);
  problem.job.batch = 16;
  int64_t single, all;
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  problem.job.sub_batch = 1;
  ok(find_least_bytes(&problem, planc_policy_find("none"), &single));
  problem.job.sub_batch = 0;
  ck_assert_int_lt(single, all);
  for (int p = 0; p < 3; p++) {
    for (int quarter = 0; quarter < 4; quarter++) {
      problem.terms.budgets[PLANC_MEMORY_DEVICE] = single + (all - single) / 4 * quarter;
      problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
      problem.terms.settings.no_swap = true;
      swaps_nothing(problem, splitting[p]);
      problem.terms.settings.no_swap = false;
      problem.terms.budgets[PLANC_MEMORY_HOST] = 0;
      swaps_nothing(problem, splitting[p]);
    }
  }
  planc_graph_free(graph);
}
END_TEST

/* What policies take the batch at once for, best asks for in rounds of halves as well: it finds what the user would by
 * asking for them, be it that nothing fits otherwise (up to 80 KiB) or that they are faster. Jobs of mixes, which could
 * not have those, are told that nothing fits. */
START_TEST(smaller_rounds_are_asked_for) {
  static const int64_t budgets[] = {60 << 10, 70 << 10, 80 << 10, 86 << 10, 120 << 10, 300 << 10, 400 << 10};
  const int64_t budget = budgets[_i];
  planc_graph *graph = trained("graphs/lenet-digits.yaml");
  planc_problem problem = problem_of(graph, 7);
  problem.job.batch = 64;
  int64_t fastest_ns = INT64_MAX;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    planc_plan *plan = makes_plans(policy) ? plan_at(problem, policy->name, budget, -1) : NULL;
    if (plan && plan->predicted.period_ns < fastest_ns) fastest_ns = plan->predicted.period_ns;
    planc_plan_free(plan);
  }
  ck_assert_int_eq(fastest_ns<INT64_MAX, budget> 80 << 10);
  planc_plan *best = plan_at(problem, "best", budget, -1);
  ck_assert_ptr_nonnull(best);
  ck_assert_int_lt(best->predicted.period_ns, fastest_ns);
  planc_problem at = problem;
  for (at.job.sub_batch = 32; at.job.sub_batch > 0; at.job.sub_batch /= 2) {
    planc_plan *asked = plan_at(at, "best", budget, -1);
    if (asked) ck_assert_int_le(best->predicted.period_ns, asked->predicted.period_ns);
    planc_plan_free(asked);
  }
  planc_plan_free(best);
  problem.terms.own_rounds = true;
  planc_plan *own = plan_at(problem, "best", budget, -1);
  ck_assert_int_eq(own ? own->predicted.period_ns : INT64_MAX, fastest_ns);
  planc_plan_free(own);
  planc_graph_free(graph);
}
END_TEST

/* k40m with one op measured: the rest of its variant's JSON. */
static planc_profile *with_measured(const char *op, const char *variant) {
  char *text = NULL;
  size_t length;
  planc_profile *out;
  FILE *file = fopen("profiles/k40m.json", "r"), *to = open_memstream(&text, &length);
  ck_assert(file && to);
  fprintf(to, "{\"ops\": [{\"op\": \"%s\", \"variants\": [{\"algorithm\": \"a\", \"deterministic\": true, %s}]}],", op,
          variant);
  for (int c = fgetc(file); (c = fgetc(file)) != EOF;) fputc(c, to);
  fclose(file);
  fclose(to);
  ok(planc_profile_parse(text, length, "measured", &out));
  free(text);
  return out;
}

#define POINT(batch, ns) "{\"batch\": " #batch ", \"time_ns\": " #ns ", \"workspace_bytes\": 0, \"busy_ppm\": 1000000}"

/* No plan in rounds takes less than what prunes them: ops of the optimizer run once, and for the whole batch. */
START_TEST(ideals_of_rounds_are_bounds) {
  enum { BATCH = 60 };
  planc_graph *graph = trained("graphs/lenet-digits.yaml");
  planc_profile *measured = with_measured("conv1.w.sgd", "\"points\": [" POINT(10, 900000000) ", " POINT(60, 2000) "]");
  planc_problem problem = problem_of(graph, 7);
  problem.job.profile = _i % 2 ? measured : profile;
  problem.job.batch = BATCH;
  problem.job.sub_batch = (int64_t[]){60, 30, 25, 7, 1}[_i / 2];
  int64_t bound, all;
  ok(pl_ideal_of_rounds(problem.job.profile, graph, BATCH, problem.job.sub_batch, &bound));
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  planc_plan *plan = plan_at(problem, "none", 2 * all, -1);
  ck_assert_int_ge(plan->predicted.period_ns, bound);
  ck_assert_int_lt(plan->predicted.period_ns, 2 * bound);
  if (problem.job.sub_batch == BATCH) ck_assert_int_eq(bound, plan->predicted.jobs[0].ideal_ns);
  planc_plan_free(plan);
  planc_profile_free(measured);
  planc_graph_free(graph);
}
END_TEST

/* Sizes of rounds at which nothing is known of an op are no reason to refuse what fits at once. */
START_TEST(rounds_without_times_are_left_out) {
  enum { BATCH = 64 };
  planc_graph *graph = trained("graphs/lenet-digits.yaml");
  planc_profile *measured = with_measured("conv1", "\"points\": [" POINT(64, 30000) "], \"workspaces\": ["
                                                   "{\"batch\": 8, \"bytes\": -1}, {\"batch\": 16, \"bytes\": -1}, "
                                                   "{\"batch\": 32, \"bytes\": -1}]");
  planc_problem problem = problem_of(graph, 7);
  problem.job.batch = BATCH;
  problem.job.profile = measured;
  int64_t all;
  ok(find_least_bytes(&problem, planc_policy_find("none"), &all));
  planc_plan *plan = plan_at(problem, "best", all * 95 / 100, -1);
  ck_assert_ptr_nonnull(plan);
  ck_assert_int_eq(pl_plan_job(plan)->rounds[0], BATCH);
  planc_plan_free(plan);
  planc_profile_free(measured);
  planc_graph_free(graph);
}
END_TEST

START_TEST(ties_go_to_what_keeps_everything) {
  ck_assert(!planc_is_preferred(MILLION, "none", MILLION));
  ck_assert(!planc_is_preferred(MILLION - 1000, "none", MILLION));
  ck_assert(planc_is_preferred(MILLION - 1001, "none", MILLION));
  ck_assert(!planc_is_preferred(MILLION, "modnn", MILLION));
  ck_assert(planc_is_preferred(MILLION - 1, "modnn", MILLION));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("best");
  TCase *least = tcase_create("least budget"), *best = tcase_create("best");
  tcase_set_timeout(least, 300);
  tcase_set_timeout(best, 300);
  tcase_add_unchecked_fixture(least, read_profile, free_profile);
  tcase_add_loop_test(least, a_search_makes_few_plans, 0, sampled(GRAPHS));
  tcase_add_loop_test(least, a_search_goes_on_from_a_failure, 0, sampled(GRAPHS));
  tcase_add_loop_test(least, the_host_has_a_least_budget, 0, sampled(GRAPHS));
  tcase_add_test(least, a_host_is_found_where_the_device_fails);
  tcase_add_test(least, what_fails_is_kept_beside_the_last_plan);
  tcase_add_loop_test(least, the_device_is_found_beside_any_host, 0, sampled(GRAPHS));
  tcase_add_test(least, reasons_nearer_to_a_plan_are_kept);
  tcase_add_unchecked_fixture(best, read_profile, free_profile);
  tcase_add_loop_test(best, no_policy_beats_best, 0, sampled(GRAPHS));
  tcase_add_loop_test(best, what_cannot_win_is_not_made, 0, sampled(GRAPHS));
  tcase_add_loop_test(best, a_host_budget_steers_best, 0, sampled(GRAPHS));
  tcase_add_loop_test(best, a_host_with_plenty_is_not_limited, 0, sampled(GRAPHS));
  tcase_add_loop_test(best, a_host_budget_steers_to_rounds, 0, sampled(GRAPHS));
  tcase_add_loop_test(best, a_host_that_suffices_is_enough, 0, sampled(GRAPHS));
  tcase_add_test(best, rounds_are_a_choice);
  tcase_add_loop_test(best, smaller_rounds_are_asked_for, 0, 7);
  tcase_add_test(best, rounds_without_times_are_left_out);
  tcase_add_loop_test(best, ideals_of_rounds_are_bounds, 0, 10);
  tcase_add_test(best, ties_go_to_what_keeps_everything);
  suite_add_tcase(suite, least);
  suite_add_tcase(suite, best);
  return run_suite(suite);
}
