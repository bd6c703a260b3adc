/* Valid plans are mutated in every way that can break them. A mutant is rejected by the checker, or it computes the
 * bits of the reference in every order that its events allow. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "planc/check.h"
#include "planc/policy.h"
#include "planrt/planrt.h"
#include "tests/support/mutate.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

enum {
  PLANS_OF_ONE = 60,
  POLICY_PLANS = PLANS_OF_ONE + 15,
  PLANS = POLICY_PLANS + 24,
  MUTANTS = 120,
  INTERLEAVINGS = 1000
};

/* A plan of a random schedule, of which a third of what persists is at home on the host. */
static void make_random_plan(uint64_t seed, const planc_profile *profile, planc_graph **graph, planc_plan **out) {
  static const planc_policy policy = {.name = "random"};
  randgraph_options options = {.max_ops = 10, .max_elements = 16};
  randcase c;
  ok_in(randgraph_make(seed, &options, graph), "graph");
  ok_in(randcase_make(seed, *graph, profile, 1 + (int32_t)(seed % 2), &c), "case");
  ok_in(randschedule_make(seed, NULL, &c), "schedule");
  ok_in(planc_lower(&c.problem, &policy, &c.candidate, out), "plan");
  randcase_free(&c);
}

/* A plan of a small random graph under a budget that makes its policy work; the last ones for two GPUs. */
static void make_policy_plan(int number, const planc_profile *profile, planc_graph **graph, planc_plan **out) {
  static const char *const names[] = {"modnn",      "vdnn-all", "cheap",        "modnn",   "chen",
                                      "vdnn+",      "window",   "window",       "naive",   "lms",
                                      "prefetch-1", "capuchin", "superneurons", "tensile", "window"};
  int which = number % (int)(sizeof names / sizeof *names);
  const planc_policy *policy = planc_policy_find(names[which]);
  bool vmm = which == 7, paged = which == 14; /* some data must be larger than a chunk */
  randgraph_options options = {.max_ops = 10, .max_elements = vmm || paged ? 2048 : 16};
  ok_in(randgraph_make(UINT64_C(5000) + (uint64_t)number, &options, graph), "graph");
  planc_problem problem = {.graph = *graph, .profile = profile, .batch = 1 + number % 3, .host_budget_bytes = -1};
  if (vmm) problem.placement = PLANC_PLACEMENT_VMM;
  if (paged) problem.placement = PLANC_PLACEMENT_PAGED;
  problem.chunk_bytes = 4096;
  problem.gpus = number >= PLANS_OF_ONE ? 2 : 1;
  int64_t least;
  ok_in(planc_least_budget(&problem, policy, &least), "least budget");
  problem.budget_bytes = least;
  ok_in(planc_make_plan(&problem, policy, out), "plan");
}

static void make_plan(int number, const planc_profile *profile, planc_graph **graph, planc_plan **out) {
  if (number < POLICY_PLANS) {
    make_policy_plan(number, profile, graph, out);
  } else {
    make_random_plan((uint64_t)number, profile, graph, out);
  }
}

/* `unchecked`: the checker has judged already, and its judgement is what is tested. */
static void computes_the_same(const planc_plan *mutant, const char *description) {
  planrt_options options = {.seed = 7, .synthetic = true, .verify = true, .unchecked = true};
  planrt_session *session;
  ok_in(planrt_session_new(mutant, &options, &session), description);
  ok_in(planrt_init(session), description);
  ok_in(planrt_run(session, 2), description);
  for (uint64_t seed = 0; seed < INTERLEAVINGS; seed++) {
    ok_in(planrt_run_interleaved(session, 1 + (int64_t)(seed % 2), seed), description);
  }
  planrt_session_free(session);
}

START_TEST(mutants_are_rejected_or_harmless) {
  planc_profile *profile;
  ok_in(planc_profile_read("profiles/k40m.json", &profile), "profile");
  planc_graph *graph;
  planc_plan *plan;
  make_plan(_i, profile, &graph, &plan);
  computes_the_same(plan, "the plan itself");
  int accepted = 0;
  for (uint64_t seed = 0; seed < MUTANTS; seed++) {
    planc_plan *mutant;
    char description[256];
    ok_in(mutate_plan(plan, seed, &mutant, description, sizeof description), "mutate");
    planc_check_options own = {.budget_bytes = -1, .host_budget_bytes = -1};
    planc_status status = planc_check(mutant, &own, NULL);
    if (!status) {
      accepted++;
      computes_the_same(mutant, description);
    }
    planc_status_free(status);
    planc_plan_free(mutant);
  }
  ck_assert_msg(accepted < MUTANTS / 2, "%d of %d mutants accepted: the mutations do not bite", accepted, MUTANTS);
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* Truncated or altered text is refused by the reader or the checker, or is harmless as well. */
START_TEST(mutated_texts_are_rejected_or_harmless) {
  planc_profile *profile;
  ok_in(planc_profile_read("profiles/k40m.json", &profile), "profile");
  planc_graph *graph;
  planc_plan *plan;
  make_plan(_i, profile, &graph, &plan);
  char *text;
  size_t length;
  ok_in(planc_plan_print(plan, &text, &length), "print");
  for (uint64_t seed = 0; seed < MUTANTS; seed++) {
    char *changed, description[256];
    size_t changed_length;
    ok_in(mutate_text(text, length, seed, &changed, &changed_length, description, sizeof description), "mutate");
    planc_plan *mutant = NULL;
    planc_status status = planc_plan_parse(changed, changed_length, "mutant", &mutant);
    planc_check_options own = {.budget_bytes = -1, .host_budget_bytes = -1};
    if (!status) status = planc_check(mutant, &own, NULL);
    if (!status) computes_the_same(mutant, description);
    planc_status_free(status);
    planc_plan_free(mutant);
    free(changed);
  }
  free(text);
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("mutants");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 300);
  tcase_add_loop_test(tests, mutants_are_rejected_or_harmless, 0, PLANS);
  tcase_add_loop_test(tests, mutated_texts_are_rejected_or_harmless, 0, PLANS);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
