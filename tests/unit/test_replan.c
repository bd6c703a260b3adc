/* The plan to go on with after an update: a new one, or the old decisions where these are faster or a new one has no
 * room. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

static planc_profile *k40m;

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &k40m));
}
static void tear_down(void) {
  planc_profile_free(k40m);
}

static void assert_valid(const planc_plan *plan) {
  ok(planc_check(plan, NULL, NULL));
}

/* Where each instruction's data is, is what it was: only times may differ. */
static void assert_same_decisions(const planc_plan *a, const planc_plan *b) {
  ck_assert_int_eq(a->body.n, b->body.n);
  for (int32_t i = 0; i < a->body.n; i++) {
    planc_instr left = a->body.instrs[i], right = b->body.instrs[i];
    left.time_ns = right.time_ns = left.busy_ppm = right.busy_ppm = 0;
    ck_assert_mem_eq(&left, &right, sizeof left);
  }
}

/* How updates ended: planned anew, or kept for lack of room or of speed. */
typedef struct endings {
  int32_t anew, for_room, for_speed;
} endings;

/* The old decisions at the new times are written out here: as the update's profile has them. */
static void assert_at_worst_the_old(const planc_plan *plan, const planc_problem *problem, const planc_policy *policy,
                                    endings *seen) {
  planc_replanned next;
  planc_retimed retimed;
  planc_simulation old_simulated, next_simulated;
  ok_in(planc_replan(problem, policy, plan, &next), policy->name);
  const planc_plan *chosen = planc_replanned_plan(&next);
  assert_valid(chosen);
  ck_assert_int_eq(device_of(chosen)->budget_bytes, device_of(plan)->budget_bytes);
  ck_assert_int_le(chosen->predicted.peak_bytes[PLANC_MEMORY_DEVICE], device_of(plan)->budget_bytes);
  ok(planc_retime(plan, problem->job.profile, &retimed));
  ok(planc_simulate(&retimed.plan, NULL, &old_simulated));
  ok(planc_simulate(chosen, NULL, &next_simulated));
  ck_assert_int_eq(chosen->predicted.period_ns, next_simulated.period_ns);
  ck_assert_int_le(chosen->predicted.period_ns, old_simulated.period_ns);
  if (next.keeps) {
    assert_same_decisions(chosen, plan);
    ck_assert_int_eq(chosen->predicted.period_ns, old_simulated.period_ns);
    if (next.made) ck_assert_int_gt(next.made->predicted.period_ns, chosen->predicted.period_ns);
  }
  seen->anew += !next.keeps;
  seen->for_room += next.keeps && !next.made;
  seen->for_speed += next.keeps && next.made;
  planc_retimed_free(&retimed);
  planc_replanned_free(&next);
}

/* A plan in the least budget that there is one for, run where every op and copy takes up to 20 times as long or short.
 */
START_TEST(an_update_is_at_worst_the_old_decisions) {
  static const char *const tight[] = {"tensile", "modnn", "capuchin", "vdnn-all"};
  enum { N_GRAPHS = 24, N_TIGHT = sizeof tight / sizeof *tight };
  uint64_t state = 1;
  endings seen = {0};
  for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
    const planc_policy *policy = planc_policy_find(tight[seed % N_TIGHT]);
    planc_problem problem = roomy_problem(graph, k40m, 64);
    ok(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
    planc_plan *plan = plan_of(&problem, policy->name);
    for (int with_base = 0; with_base < 2; with_base++) {
      int64_t *percent = draw_percents(&state, plan, 5, 2000);
      planc_plan *other = on_another_machine(plan, percent);
      sheet *run = run_of(other);
      planc_update *update = update_of(plan, run, with_base ? k40m : NULL, PPM);
      problem.job.profile = update->profiles[0];
      problem.job.sub_batch = with_base ? 0 : plan->jobs[0].rounds[0];
      assert_at_worst_the_old(plan, &problem, policy, &seen);
      planc_update_free(update);
      free(run);
      free(percent);
      planc_plan_free(other);
    }
    planc_plan_free(plan);
    planc_graph_free(graph);
  }
  ck_assert_msg(seen.anew > 0 && seen.for_room > 0 && seen.for_speed > 0, "%d anew, %d for room, %d for speed",
                seen.anew, seen.for_room, seen.for_speed);
}
END_TEST

/* In less memory than it takes, or where they are not what is asked for, old decisions are no answer. */
START_TEST(old_decisions_answer_their_own_budgets) {
  planc_replanned next;
  planc_graph *graph;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
  const planc_policy *policy = planc_policy_find("vdnn-all");
  planc_problem problem = roomy_problem(graph, k40m, 4);
  planc_plan *plan = plan_of(&problem, "vdnn-all");
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, NULL, PPM);
  problem.job.profile = update->profiles[0];
  /* Another policy that is slower; the host budget is the new one. */
  problem.terms.budgets[PLANC_MEMORY_HOST] = host_of(plan)->arena_bytes;
  ok(planc_replan(&problem, planc_policy_find("naive"), plan, &next));
  ck_assert(next.keeps);
  ck_assert_int_eq(host_of(planc_replanned_plan(&next))->budget_bytes, host_of(plan)->arena_bytes);
  assert_valid(planc_replanned_plan(&next));
  planc_replanned_free(&next);
  ok(planc_replan(&problem, policy, NULL, &next));
  ck_assert(!next.keeps && next.made);
  planc_replanned_free(&next);
  ck_assert_int_gt(host_of(plan)->arena_bytes, 0);
  problem.terms.budgets[PLANC_MEMORY_HOST] = 0;
  assert_fails(planc_replan(&problem, policy, plan, &next), PLANC_INFEASIBLE, "host memory");
  ck_assert_ptr_null(planc_replanned_plan(&next));
  problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - 1;
  assert_fails(planc_replan(&problem, policy, plan, &next), PLANC_INFEASIBLE, "vdnn-all");
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("replan");
  TCase *all = tcase_create("all");
  tcase_add_unchecked_fixture(all, set_up, tear_down);
  tcase_set_timeout(all, 60);
  tcase_add_test(all, an_update_is_at_worst_the_old_decisions);
  tcase_add_test(all, old_decisions_answer_their_own_budgets);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
