/* What a plan waits for: of random plans of every kind of policy, with storage and without, and of random schedules the
 * time in which the only job computes, and what the GPU waits for by cause, are the iteration, and that is not shorter
 * than what it takes to launch it. */
#include <check.h>

#include "cost/profile.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

enum { GRAPHS = 60 };

/* What the host needs to launch a body: no iteration that repeats itself is shorter. */
static int64_t launching_ns(const planc_plan *plan) {
  int64_t n = 0;
  for (int32_t i = 0; i < plan->body.n; i++)
    n += plan->body.instrs[i].op == PLANC_INSTR_exec || plan->body.instrs[i].op == PLANC_INSTR_copy;
  return n * plan->device.launch_ns;
}

static void assert_adds_up(const planc_plan *plan, bool captured, const char *what, uint64_t seed) {
  planc_job_predictions job = {0};
  planc_simulation s;
  int64_t stalls = 0;
  ok(planc_simulate(plan, &(planc_simulate_options){.captured = captured, .jobs = &job}, &s));
  for (int k = 0; k < PLANC_N_STALLS; k++) {
    ck_assert_int_ge(s.stall_ns[k], 0);
    stalls += s.stall_ns[k];
  }
  ck_assert_msg(job.busy_ns + job.stall_ns == s.period_ns, "%s, graph %d: %lld + %lld ns of %lld", what, (int)seed,
                (long long)job.busy_ns, (long long)job.stall_ns, (long long)s.period_ns);
  ck_assert_msg(job.stall_ns == stalls, "%s, graph %d: stalls of %lld ns, by cause of %lld ns", what, (int)seed,
                (long long)job.stall_ns, (long long)stalls);
  ck_assert_msg(captured || s.period_ns >= launching_ns(plan), "%s, graph %d: %lld ns, launched in %lld ns", what,
                (int)seed, (long long)s.period_ns, (long long)launching_ns(plan));
}

static void assert_adds_up_both_ways(planc_plan *plan, const char *what, uint64_t seed) {
  for (int captured = 0; captured < 2; captured++) assert_adds_up(plan, captured, what, seed);
  planc_plan_free(plan);
}

/* Under the least budget everything waits; in one of four cases for storage, too. Not every policy has a plan for every
 * graph. */
static int plans_of_policies(uint64_t seed, const planc_graph *graph, const planc_profile *profile) {
  static const char *const policies[] = {"none",       "modnn",    "vdnn-all",     "vdnn-conv", "vdnn+",
                                         "chen",       "cheap",    "naive",        "window",    "lms",
                                         "prefetch-1", "capuchin", "superneurons", "tensile"};
  bool stored = seed % 4 == 3;
  int made = 0;
  for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
    const planc_policy *policy = planc_policy_find(policies[p]);
    planc_problem problem = {.job.graph = graph,
                             .job.profile = profile,
                             .job.batch = 1 + (int64_t)seed % 5,
                             .terms.budgets[PLANC_MEMORY_HOST] = stored ? 4096 : -1,
                             .terms.budgets[PLANC_MEMORY_STORAGE] = stored ? INT64_C(1) << 30 : 0};
    planc_plan *plan = NULL;
    planc_status status = find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]);
    if (!status) status = planc_make_plan(&problem, policy, &plan);
    ck_assert_msg(!status || planc_status_code(status) == PLANC_INFEASIBLE, "%s: %s", policies[p],
                  planc_status_message(status));
    planc_status_free(status);
    if (!plan) continue;
    assert_adds_up_both_ways(plan, policies[p], seed);
    made++;
  }
  return made;
}

static void plan_of_random_schedule(uint64_t seed, const planc_graph *graph, const planc_profile *profile) {
  randcase c;
  planc_plan *plan;
  ok(randcase_make(seed, graph, profile, 1 + (int32_t)(seed % 3), &c));
  ok(randschedule_make(seed, NULL, &c));
  ok(lower_for(&c.problem, "random", &c.candidate, &plan));
  randcase_free(&c);
  assert_adds_up_both_ways(plan, "random", seed);
}

/* Bodies that repeat themselves two by two, or never, are among them. */
START_TEST(stalls_by_cause_are_all_that_a_job_waits) {
  static const char *const profiles[] = {"profiles/k40m.json", "profiles/h100.json"};
  const planc_link disk = {.bytes_per_second = 1000000000, .latency_ns = 2000};
  int made = 0;
  for (uint64_t seed = 0; seed < GRAPHS; seed++) {
    randgraph_options options = {.max_ops = 4 + (int32_t)(seed % 20),
                                 .max_elements = seed % 3 == 0 ? 16 : 64 << (seed % 12)};
    planc_profile *profile;
    planc_graph *graph;
    ok(planc_profile_read(profiles[seed % 2], &profile));
    profile->device.links[PLANC_ROUTE_STORE] = profile->device.links[PLANC_ROUTE_LOAD] = disk;
    ok(randgraph_make(UINT64_C(7000) + seed, &options, &graph));
    made += plans_of_policies(seed, graph, profile);
    plan_of_random_schedule(seed, graph, profile);
    planc_graph_free(graph);
    planc_profile_free(profile);
  }
  ck_assert_int_gt(made, INT64_C(10) * GRAPHS);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stalls");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, stalls_by_cause_are_all_that_a_job_waits);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
