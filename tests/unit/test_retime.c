/* A plan at the times of another profile: as if it had been planned with them, where its decisions do not depend on
 * them; what that profile does not list stays. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static planc_graph *graph;
static planc_profile *described;

static void set_up(void) {
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
  ok(planc_profile_read("profiles/k40m.json", &described));
}
static void tear_down(void) {
  planc_profile_free(described);
  planc_graph_free(graph);
}

/* k40m with other links and times of some ops. */
static planc_profile *profile_with(const char *ops) {
  char *text = NULL, *out = NULL;
  size_t length = 0;
  FILE *file = fopen("profiles/k40m.json", "rb");
  ck_assert(file && (text = calloc(1, 1 << 16)) && (out = calloc(1, 1 << 17)));
  length = fread(text, 1, (1 << 16) - 1, file);
  fclose(file);
  ck_assert_uint_lt(length, (1 << 16) - 1);
  char *end = strrchr(text, '}'), *launch = strstr(text, "\"launch_ns\": ");
  ck_assert(end && launch);
  *end = '\0';
  *launch = '\0';
  const char *rest = strchr(launch + 1, ',');
  ck_assert_ptr_nonnull(rest);
  int n = snprintf(out, 1 << 17, "%s\"launch_ns\": 77%s,\"ops\":[%s]}", text, rest, ops);
  planc_profile *profile;
  ok(planc_profile_parse(out, (size_t)n, "made", &profile));
  free(text);
  free(out);
  return profile;
}

#define OP(name, time)                                                                           \
  "{\"op\":\"" name                                                                              \
  "\",\"variants\":[{\"algorithm\":\"default\",\"deterministic\":true,\"points\":[{\"batch\":4," \
  "\"time_ns\":" #time ",\"workspace_bytes\":0,\"busy_ppm\":900000}]}]}"
#define OTHERS       \
  OP("second", 2000) \
  "," OP("last", 3000) "," OP("last.grad", 4000) "," OP("second.grad", 5000) "," OP("first.grad", 6000)
#define ALL OP("first", 1000) "," OTHERS "," OP("step", 7000)

static planc_plan *plan_of(const planc_profile *profile, const char *policy, int64_t sub_batch, int64_t budget) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 4,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = budget,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .job.sub_batch = sub_batch};
  planc_plan *plan;
  ok(planc_make_plan(&problem, planc_policy_find(policy), &plan));
  return plan;
}

/* Policies that decide by sizes alone make the same plan with either profile. */
START_TEST(as_if_planned_with_those_times) {
  static const char *const policies[] = {"none", "naive", "prefetch-1", "vdnn-all"};
  planc_profile *measured = profile_with(ALL);
  for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
    planc_plan *plan = plan_of(described, policies[k], 0, 1 << 20), *other = plan_of(measured, policies[k], 0, 1 << 20);
    planc_retimed retimed;
    planc_simulation s, expected, before;
    ok_in(planc_retime(plan, measured, &retimed), policies[k]);
    ok(planc_simulate(&retimed.plan, NULL, &s));
    ok(planc_simulate(other, NULL, &expected));
    ok(planc_simulate(plan, NULL, &before));
    ck_assert_int_eq(retimed.n_ops, 7);
    ck_assert_int_eq(retimed.n_kept, 0);
    ck_assert_int_eq(s.compute_ns, 28000);
    ck_assert_int_ne(before.compute_ns, 28000);
    ck_assert_int_eq(s.period_ns, expected.period_ns);
    ck_assert_int_eq(s.first_period_ns, expected.first_period_ns);
    ck_assert_int_eq(s.prologue_ns, expected.prologue_ns);
    ck_assert_int_eq(s.slowdown_ns, expected.slowdown_ns);
    ck_assert_int_eq(s.stall_ns[PLANC_STALL_H2D], expected.stall_ns[PLANC_STALL_H2D]);
    ck_assert_int_eq(retimed.plan.predicted.jobs[0].ideal_ns, other->predicted.jobs[0].ideal_ns);
    ck_assert_str_eq(retimed.plan.device.name, "k40m");
    planc_retimed_free(&retimed);
    planc_plan_free(plan);
    planc_plan_free(other);
  }
  planc_profile_free(measured);
}
END_TEST

START_TEST(what_is_not_listed_stays) {
  planc_profile *measured = profile_with(OTHERS);
  planc_plan *plan = plan_of(described, "none", 0, 1 << 20);
  planc_retimed retimed;
  planc_simulation s;
  int64_t kept_ns = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec && (instr->id == 0 || instr->id == 6)) kept_ns += instr->time_ns;
  }
  ok(planc_retime(plan, measured, &retimed));
  ok(planc_simulate(&retimed.plan, NULL, &s));
  ck_assert_int_eq(retimed.n_kept, 2);
  ck_assert_int_eq(s.compute_ns, 20000 + kept_ns);
  ck_assert_int_eq(retimed.plan.predicted.jobs[0].ideal_ns,
                   s.compute_ns); /* nothing runs twice, or slower than it could */
  planc_retimed_free(&retimed);

  /* Another algorithm of an op says nothing of the one that the plan runs. */
  planc_profile *other = profile_with(OP(
      "first", 1000) ",{\"op\":\"step\",\"variants\":[{\"algorithm\":\"fast\",\"deterministic\":true,\"points\":[{"
                     "\"batch\":4,\"time_ns\":1,\"workspace_bytes\":0,\"busy_ppm\":1000000}]}]}");
  ok(planc_retime(plan, other, &retimed));
  ck_assert_int_eq(retimed.n_kept, 6);
  planc_retimed_free(&retimed);
  planc_profile_free(other);

  assert_fails(planc_retime(plan, described, &retimed), PLANC_STALE, "no times for the plan's ops");
  planc_plan_free(plan);
  planc_profile_free(measured);
}
END_TEST

/* A copy inside the device takes what it takes in the profile's memory; one over a link still states no time. */
START_TEST(moves_have_the_times_of_the_memory) {
  planc_profile *measured = profile_with(ALL);
  planc_plan *plan = plan_of(described, "naive", 0, 1 << 20);
  planc_retimed retimed;
  planc_instr *moved = NULL;
  int32_t n_copies = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_instr *instr = (planc_instr *)&plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_copy) continue;
    n_copies++;
    moved = instr;
  }
  ck_assert_int_gt(n_copies, 1);
  moved->time_ns = 7; /* as a move has it: looked at is nothing else */
  ok(planc_retime(plan, measured, &retimed));
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &retimed.plan.body.instrs[i];
    bool moves = &plan->body.instrs[i] == moved;
    if (instr->op == PLANC_INSTR_copy)
      ck_assert_int_eq(instr->time_ns, moves ? planc_costs_move_ns(measured, instr->bytes) : 0);
  }
  planc_retimed_free(&retimed);
  planc_profile_free(measured);
  planc_plan_free(plan);
}
END_TEST

/* Rounds have times of their own batch, here from a line through one point, and sums of gradients those of the
 * profile's memory. */
START_TEST(rounds_have_the_times_of_their_batch) {
  planc_profile *measured = profile_with(OP("second", 102000) "," OP("step", 7000));
  measured->compute.memory_bytes_per_second /= 100;
  planc_plan *plan = plan_of(described, "modnn", 2, 1 << 20), *other = plan_of(measured, "modnn", 2, 1 << 20);
  planc_retimed retimed;
  ok(planc_retime(plan, measured, &retimed));
  int32_t seen = 0, sums = 0;
  for (int32_t i = 0; i < other->body.n; i++) {
    const planc_instr *made = &other->body.instrs[i];
    if (made->op != PLANC_INSTR_exec) continue;
    bool is_sum = strcmp(other->algorithms[made->aux], "add") == 0;
    if (!is_sum && made->busy_ppm != 900000) continue;
    for (int32_t k = 0; k < plan->body.n; k++) {
      const planc_instr *now = &retimed.plan.body.instrs[k];
      if (now->op != PLANC_INSTR_exec || now->id != made->id) continue;
      ck_assert_int_eq(now->time_ns, made->time_ns);
      ck_assert_int_eq(now->busy_ppm, made->busy_ppm);
      ck_assert(!is_sum || now->time_ns > plan->body.instrs[k].time_ns);
      seen += !is_sum;
      sums += is_sum;
    }
  }
  ck_assert_int_eq(seen, 3);
  ck_assert_int_gt(sums, 0);
  ck_assert_int_eq(retimed.n_ops - retimed.n_kept, 3);
  planc_retimed_free(&retimed);
  planc_plan_free(plan);
  planc_plan_free(other);
  planc_profile_free(measured);
}
END_TEST

/* A variant of an op, by an algorithm, in up to a millisecond at the whole batch. */
static void add_variant(char *text, size_t size, const char *algorithm, uint64_t *state) {
  size_t length = strlen(text);
  (void)snprintf(text + length, size - length,
                 "%s{\"algorithm\":\"%s\",\"deterministic\":true,\"points\":[{\"batch\":4,\"time_ns\":%d,"
                 "\"workspace_bytes\":0,\"busy_ppm\":1000000}]}",
                 length > 0 ? "," : "", algorithm, (int)(2000 + rand_below(state, 1000000)));
}

/* Some ops are listed with the plan's algorithm, some with another, some with both, the others not; one is. */
static planc_profile *listing(uint64_t *state) {
  static const char *const names[] = {"second", "first", "last", "last.grad", "second.grad", "first.grad", "step"};
  char ops[8192] = "";
  for (size_t o = 0; o < sizeof names / sizeof *names; o++) {
    char variants[1024] = "";
    size_t length = strlen(ops);
    if (o == 0 || rand_chance(state, 40)) add_variant(variants, sizeof variants, "default", state);
    if (rand_chance(state, 50)) add_variant(variants, sizeof variants, "other", state);
    if (!*variants) continue;
    (void)snprintf(ops + length, sizeof ops - length, "%s{\"op\":\"%s\",\"variants\":[%s]}", length > 0 ? "," : "",
                   names[o], variants);
  }
  return profile_with(ops);
}

/* Times that only the ideal had could be longer than those that the plan runs at. */
START_TEST(an_iteration_is_never_below_its_ideal) {
  uint64_t state = (uint64_t)_i + 1;
  planc_plan *plan = plan_of(described, _i % 2 == 0 ? "none" : "modnn", _i % 2 == 0 ? 0 : 2, 1 << 20);
  planc_profile *measured = listing(&state);
  planc_retimed retimed;
  planc_simulation s;
  ok(planc_retime(plan, measured, &retimed));
  ok(planc_simulate(&retimed.plan, NULL, &s));
  ck_assert_int_le(retimed.plan.predicted.jobs[0].ideal_ns, s.compute_ns);
  ck_assert_int_le(s.compute_ns, s.period_ns);
  planc_retimed_free(&retimed);
  planc_profile_free(measured);
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("retime");
  TCase *tests = tcase_create("all");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, as_if_planned_with_those_times);
  tcase_add_test(tests, what_is_not_listed_stays);
  tcase_add_test(tests, moves_have_the_times_of_the_memory);
  tcase_add_test(tests, rounds_have_the_times_of_their_batch);
  tcase_add_loop_test(tests, an_iteration_is_never_below_its_ideal, 0, 40);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
