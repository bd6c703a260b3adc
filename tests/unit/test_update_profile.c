/* The profile that an update writes: which workspaces it knows, which algorithms it offers, the memory and the code of
 * the plan's device; plans made with it, and with its file, are those that they should be. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
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

/* --- Workspaces --------------------------------------------------------------------------------------------------- */

/* An op's at `batch` by an algorithm; -1: it is not offered there. */
static int64_t workspace_of(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch,
                            const char *algorithm) {
  planc_costs *costs;
  int32_t count;
  int64_t bytes = -1;
  ok(planc_costs_make(profile, graph, 1, &batch, &costs));
  const planc_variant *variants = planc_costs_variants(costs, op, 0, &count);
  for (int32_t v = 0; v < count; v++)
    if (strcmp(variants[v].algorithm, algorithm) == 0) bytes = variants[v].workspace_bytes;
  planc_costs_free(costs);
  return bytes;
}

/* A plan of tiny.yaml in rounds of 3 and 1, whose second op runs with another algorithm in the last round. */
typedef struct mixed {
  planc_graph *graph;
  planc_plan *made;
  planc_plan plan;
  const char *algorithms[8];
} mixed;

enum { SECOND = 1, NARROW_BYTES = 9344, WIDE_BYTES = 512 };

static void mixed_make(mixed *m) {
  planc_trace *trace;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &m->graph));
  planc_problem problem = roomy_problem(m->graph, k40m, 4);
  problem.job.sub_batch = 3;
  m->made = plan_of(&problem, "modnn");
  ck_assert_int_eq(m->made->jobs[0].n_rounds, 2);
  m->plan = *m->made;
  ck_assert_int_lt(m->plan.n_algorithms, 8);
  memcpy(m->algorithms, m->plan.algorithms, (size_t)m->plan.n_algorithms * sizeof *m->algorithms);
  m->algorithms[m->plan.n_algorithms] = "wide";
  m->plan.algorithms = m->algorithms;
  ok(planc_expand(m->plan.jobs, 1, &trace));
  for (int32_t i = 0; i < m->plan.body.n; i++) {
    planc_instr *instr = (planc_instr *)&m->plan.body.instrs[i];
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &trace->instances[instr->id];
    if (instance->role != PLANC_ROLE_OP || instance->op != SECOND) continue;
    instr->bytes = instance->batch == 3 ? NARROW_BYTES : WIDE_BYTES;
    if (instance->batch == 1) instr->aux = m->plan.n_algorithms;
  }
  m->plan.n_algorithms++;
  planc_trace_free(trace);
}

static void mixed_free(mixed *m) {
  planc_plan_free(m->made);
  planc_graph_free(m->graph);
}

/* How much an algorithm needs in rounds in which the plan ran another is not known, and smaller ones than it ran need
 * not take less. */
START_TEST(algorithms_are_offered_where_they_ran) {
  mixed m;
  planc_profile *read;
  char *text;
  size_t length;
  mixed_make(&m);
  sheet *run = run_of(&m.plan);
  planc_update *update = update_of(&m.plan, run, NULL, PPM);
  ok(planc_update_print(update, 0, &text, &length));
  ok(planc_profile_parse(text, length, "update", &read));
  const planc_profile *both[] = {update->profiles[0], read};
  for (int p = 0; p < 2; p++) {
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 3, "default"), NARROW_BYTES);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 3, "wide"), -1);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 1, "default"), -1);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 1, "wide"), WIDE_BYTES);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 2, "default"), NARROW_BYTES);
    ck_assert_int_eq(workspace_of(both[p], m.graph, SECOND, 4, "default"), NARROW_BYTES * 4 / 3);
    for (int64_t batch = 1; batch <= 4; batch++)
      ck_assert_int_eq(planc_profile_lists_workspace(both[p], "second", "default", batch), batch % 2 == 1);
  }
  free(text);
  planc_profile_free(read);
  planc_update_free(update);
  free(run);
  mixed_free(&m);
}
END_TEST

/* An update of tiny.plan, which runs everything at a batch of 4 without workspaces, with a table of its second op. */
static planc_update *update_with_table(const pl_measured_variant *variant) {
  pl_measured_op op = {.name = "second", .n_variants = 1, .variants = variant};
  planc_profile with = *k40m;
  planc_plan *plan;
  with.measured = (pl_measured){.n_ops = 1, .ops = &op};
  ok(pl_map_put(&with.measured.by_name, op.name, strlen(op.name), 0));
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, &with, PPM);
  pl_map_free(&with.measured.by_name);
  free(run);
  planc_plan_free(plan);
  return update;
}

/* A run tells of the workspace at its own batch, not of those between it and the points of a table. */
START_TEST(workspaces_of_other_batches_stay) {
  static const pl_point points[] = {{.batch = 2, .time_ns = 100, .workspace_bytes = 200, .busy_ppm = 1},
                                    {.batch = 8, .time_ns = 100, .workspace_bytes = 800, .busy_ppm = 1}};
  static const pl_measured_workspace listed[] = {{4, 50}, {6, 900}};
  static const int64_t want[] = {100, 200, 300, 0, 500, 900, 700, 800};
  pl_measured_variant variant = {
      .algorithm = "default", .n_points = 2, .points = points, .n_workspaces = 2, .workspaces = listed};
  planc_graph *graph;
  ok(planc_graph_read("tests/golden/inputs/tiny.yaml", &graph));
  planc_update *update = update_with_table(&variant);
  for (int64_t batch = 1; batch <= 8; batch++) {
    ck_assert_int_eq(workspace_of(update->profiles[0], graph, SECOND, batch, "default"), want[batch - 1]);
    ck_assert(planc_profile_lists_workspace(update->profiles[0], "second", "default", batch));
  }
  planc_update_free(update);
  planc_graph_free(graph);
}
END_TEST

/* Up to its last point a table has workspaces; what ran beyond tells nothing of batches between. */
START_TEST(nothing_is_known_below_a_run_beyond_the_table) {
  static const pl_point points[] = {{.batch = 1, .time_ns = 100, .workspace_bytes = 200, .busy_ppm = 1},
                                    {.batch = 2, .time_ns = 100, .workspace_bytes = 400, .busy_ppm = 1}};
  static const pl_measured_workspace listed[] = {{1, 250}};
  pl_measured_variant variant = {
      .algorithm = "default", .n_points = 2, .points = points, .n_workspaces = 1, .workspaces = listed};
  planc_update *update = update_with_table(&variant);
  static const bool known[] = {true, true, false, true};
  for (int64_t batch = 1; batch <= 4; batch++)
    ck_assert_int_eq(planc_profile_lists_workspace(update->profiles[0], "second", "default", batch), known[batch - 1]);
  planc_update_free(update);
}
END_TEST
/* --- Results ------------------------------------------------------------------------------------------------------ */

START_TEST(ops_with_other_algorithms_are_counted) {
  mixed m;
  planc_plan *whole;
  int32_t n;
  mixed_make(&m);
  ok(planc_update_other_algorithms(&m.plan, &m.plan, &n));
  ck_assert_int_eq(n, 0);
  planc_plan renamed = m.plan;
  const char *names[8];
  memcpy(names, m.algorithms, sizeof names);
  names[m.plan.n_algorithms - 1] = "default";
  renamed.algorithms = names;
  ok(planc_update_other_algorithms(&m.plan, &renamed, &n));
  ck_assert_int_eq(n, 1);
  ok(planc_update_other_algorithms(&renamed, &m.plan, &n));
  ck_assert_int_eq(n, 1);
  planc_problem problem = roomy_problem(m.graph, k40m, 4);
  problem.job.sub_batch = 4;
  whole = plan_of(&problem, "modnn");
  ok(planc_update_other_algorithms(&m.plan, whole, &n));
  ck_assert_int_eq(n, -1);
  planc_plan_free(whole);
  mixed_free(&m);
}
END_TEST
/* --- From plan to plan -------------------------------------------------------------------------------------------- */

static void assert_same_plan(planc_plan *a, planc_plan *b, bool same_ideal) {
  char *ours, *theirs;
  size_t our_length, their_length;
  if (!same_ideal) a->predicted.jobs[0].ideal_ns = b->predicted.jobs[0].ideal_ns;
  ok(planc_plan_print(a, &ours, &our_length));
  ok(planc_plan_print(b, &theirs, &their_length));
  ck_assert_str_eq(ours, theirs);
  free(ours);
  free(theirs);
}

/* What nothing new is known of gives the same plan again: a plan holds what it takes to make it. */
START_TEST(a_plan_holds_what_it_was_made_with) {
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  for (int32_t p = 0; p < N_UPDATED_POLICIES; p++) {
    planc_problem problem = roomy_problem(graph, k40m, 64);
    problem.job.sub_batch = _i % 3 == 0 ? 24 : 64;
    planc_plan *plan, *again;
    ok(planc_make_plan(&problem, planc_policy_find(updated_policies[p]), &plan));
    bool adds = false;
    for (int32_t a = 0; a < plan->n_algorithms; a++) adds |= strcmp(plan->algorithms[a], "add") == 0;
    sheet *run = run_of(plan);
    planc_update *update = update_of(plan, run, NULL, 0);
    ck_assert_int_eq(update->change_ppm, 0);
    problem.job.profile = update->profiles[0];
    ok(planc_make_plan(&problem, planc_policy_find(updated_policies[p]), &again));
    /* How long sums of gradients take is a line through those of all sizes. */
    if (!adds) assert_same_plan(again, plan, problem.job.sub_batch == 64);
    planc_plan_free(again);
    planc_update_free(update);
    free(run);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
}
END_TEST

/* Whatever device the algorithms come from, the plan's own has the memory. */
START_TEST(the_memory_is_that_of_the_plan) {
  planc_graph *graph;
  planc_profile *h100;
  ok(planc_profile_read("profiles/h100.json", &h100));
  ok(randgraph_make(1, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_problem problem = roomy_problem(graph, h100, 64);
  planc_plan *plan = plan_of(&problem, "none");
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, k40m, PLANC_UPDATE_WEIGHT_PPM);
  const planc_device *device = planc_profile_device(update->profiles[0]);
  ck_assert_str_eq(device->name, plan->device.name);
  ck_assert_int_gt(device_of(plan)->reserved_bytes, 0);
  ck_assert_int_ne(device_of(plan)->reserved_bytes, planc_profile_device(k40m)->reserved_bytes);
  ck_assert_int_eq(device->reserved_bytes, device_of(plan)->reserved_bytes);
  ck_assert_int_eq(device->memory_bytes, device_of(plan)->bytes);
  ck_assert_int_eq(device->in_flight, planc_profile_device(k40m)->in_flight);
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(h100);
}
END_TEST

/* The profile's part of what a plan reserves stays apart from the code of the plan's algorithms. */
START_TEST(code_stays_with_its_algorithms) {
  static const pl_labelled code[] = {{"default", 4096}, {"gemm", 70000}, {"implicit-gemm", 30000}};
  planc_graph *graph;
  ok(randgraph_make(1, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_profile with = *k40m;
  with.device.reserved_bytes = 12345;
  with.code = (pl_labels){3, code};
  planc_problem problem = roomy_problem(graph, &with, 64);
  planc_plan *plan = plan_of(&problem, "none"), *next;
  ck_assert_int_ge(device_of(plan)->reserved_bytes, 12345 + 4096);
  sheet *run = run_of(plan);
  planc_update *update = update_of(plan, run, &with, PLANC_UPDATE_WEIGHT_PPM);
  ck_assert_int_eq(planc_profile_device(update->profiles[0])->reserved_bytes, 12345);
  ck_assert_int_eq(planc_profile_code(update->profiles[0], "gemm"), 70000);
  planc_profile *read;
  char *text;
  size_t length;
  ok(planc_update_print(update, 0, &text, &length));
  ok(planc_profile_parse(text, length, "update", &read));
  ck_assert_int_eq(planc_profile_code_of_all(read), planc_profile_code_of_all(&with));
  free(text);
  problem.job.profile = read;
  ok(planc_make_plan(&problem, planc_policy_find("none"), &next));
  ck_assert_int_eq(device_of(next)->reserved_bytes, device_of(plan)->reserved_bytes);
  planc_plan_free(next);
  planc_profile_free(read);
  planc_update_free(update);
  update = update_of(plan, run, NULL, PLANC_UPDATE_WEIGHT_PPM);
  ck_assert_int_eq(planc_profile_device(update->profiles[0])->reserved_bytes, device_of(plan)->reserved_bytes);
  ck_assert_int_eq(planc_profile_code_of_all(update->profiles[0]), 0);
  planc_update_free(update);
  free(run);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

START_TEST(profiles_survive_their_file) {
  uint64_t state = (uint64_t)_i;
  planc_graph *graph;
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 24, .max_elements = 4096}, &graph));
  planc_problem problem = roomy_problem(graph, k40m, 64);
  problem.job.sub_batch = 24;
  planc_plan *plan, *direct, *by_file;
  const planc_policy *policy = planc_policy_find(updated_policies[_i % N_UPDATED_POLICIES]);
  ok(planc_make_plan(&problem, policy, &plan));
  int64_t *percent = draw_percents(&state, plan, 30, 600);
  planc_plan *other = on_another_machine(plan, percent);
  sheet *run = run_of(other);
  for (int with_base = 0; with_base < 2; with_base++) {
    planc_update *update = update_of(plan, run, with_base ? k40m : NULL, PLANC_UPDATE_WEIGHT_PPM);
    planc_profile *read;
    char *text;
    size_t length;
    ok(planc_update_print(update, 0, &text, &length));
    ok(planc_profile_parse(text, length, "update", &read));
    free(text);
    problem.job.profile = update->profiles[0];
    ok(planc_make_plan(&problem, policy, &direct));
    problem.job.profile = read;
    ok(planc_make_plan(&problem, policy, &by_file));
    assert_same_plan(by_file, direct, true);
    planc_plan_free(direct);
    planc_plan_free(by_file);
    planc_profile_free(read);
    planc_update_free(update);
  }
  free(run);
  free(percent);
  planc_plan_free(other);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("update_profile");
  TCase *all = tcase_create("all");
  tcase_add_unchecked_fixture(all, set_up, tear_down);
  tcase_set_timeout(all, 60);
  tcase_add_test(all, algorithms_are_offered_where_they_ran);
  tcase_add_test(all, workspaces_of_other_batches_stay);
  tcase_add_test(all, nothing_is_known_below_a_run_beyond_the_table);
  tcase_add_test(all, ops_with_other_algorithms_are_counted);
  tcase_add_loop_test(all, a_plan_holds_what_it_was_made_with, 0, 30);
  tcase_add_test(all, the_memory_is_that_of_the_plan);
  tcase_add_test(all, code_stays_with_its_algorithms);
  tcase_add_loop_test(all, profiles_survive_their_file, 0, 20);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
