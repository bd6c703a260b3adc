/* What is said where something has no place: who it is, when, and who is there. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/policy.h"
#include "planner/lower/occupants.h"
#include "planner/shortage.h"
#include "tests/support/unit.h"

static const char graph_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "tensors:\n"
    "  w: param f32[1024]\n"
    "  x: input f32[N,1024]\n" /* 4096 bytes at batch 1 */
    "  y: f32[N,512]\n"
    "  z: f32[N,256]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x, w], out: [y], traffic: 0}\n"
    "  - {op: b, type: t.b, in: [y], out: [z], traffic: 0}\n"
    "outputs: [z]\n";

static planc_graph *graph;
static planc_profile *profile;
static planc_trace *trace;

static void set_up(void) {
  static const int64_t one[] = {1};
  planc_job job = {.batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  ok(planc_graph_parse(graph_text, sizeof graph_text - 1, "chain", &graph));
  ok(planc_profile_read("profiles/k40m.json", &profile));
  job.graph = graph;
  ok(planc_expand(&job, 1, &trace));
}
static void tear_down(void) {
  planc_trace_free(trace);
  planc_profile_free(profile);
  planc_graph_free(graph);
}

static int32_t buffer_named(const char *name) {
  int32_t b = 0;
  while (strcmp(planc_trace_buffer_name(trace, b), name) != 0) b++;
  return b;
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

enum { POSITIONS = 6 };

/* w is there all the time, x, y and a workspace one after the other. */
static char *tell(int64_t workspace_address, int64_t room) {
  static const int32_t instance_at[POSITIONS] = {0, 0, 1, 1, -1, -1};
  const pl_item items[] = {{1024, 0, {{0, POSITIONS}, {0, 0}}},
                           {2048, 1024, {{1, 2}, {0, 0}}},
                           {512, 3072, {{1, 4}, {0, 0}}},
                           {1536, workspace_address, {{3, 4}, {0, 0}}}};
  const int32_t what[] = {buffer_named("w"), buffer_named("x"), buffer_named("y"), pl_workspace_of(1)};
  pl_occupants occupants = {
      .trace = trace, .items = items, .what = what, .n = 4, .instance_at = instance_at, .n_positions = POSITIONS};
  char *text;
  ok(pl_occupants_tell(&occupants, room, &text));
  return text;
}

static void assert_told(char *text, const char *expected) {
  ck_assert_str_eq(text, expected);
  free(text);
}

START_TEST(all_fit) {
  assert_told(tell(1024, 3584), "");
}
END_TEST

START_TEST(the_fullest_moment_is_told) {
  assert_told(tell(1024, 3000),
              ": x of 2048 bytes finds no place at op a beside 1536 bytes, the largest w of 1024 and y of 512");
}
END_TEST

/* y lies in the middle of what is free. */
START_TEST(a_workspace_between_pieces) {
  assert_told(
      tell(3584, 3600),
      ": the workspace of op b of 1536 bytes finds no place at op b beside 1536 bytes, the largest w of 1024 and "
      "y of 512; 2064 are free then, in pieces that do not fit");
}
END_TEST

START_TEST(one_that_is_alone) {
  pl_no_place alone = {.trace = trace, .unplaced = {buffer_named("z"), 7}, .instance = -1, .room = 5};
  char *text;
  ok(pl_no_place_tell(&alone, &text));
  assert_told(text, ": z of 7 bytes finds no place at the end of the period");
}
END_TEST

START_TEST(the_largest_are_named) {
  pl_no_place it = {.trace = trace, .unplaced = {buffer_named("z"), 7}, .instance = 1, .room = 5};
  const int64_t bytes[] = {3, 9, 1, 9};
  const char *const names[] = {"w", "x", "y", "z"};
  char *text;
  for (int k = 0; k < 4; k++) pl_no_place_beside(&it, (pl_occupant){buffer_named(names[k]), bytes[k]});
  ok(pl_no_place_tell(&it, &text));
  assert_told(text, ": z of 7 bytes finds no place at op b beside 22 bytes, the largest x of 9 and z of 9");
}
END_TEST

/* Where a message tells what several GPUs need together, what is one GPU's is told as that. */
START_TEST(figures_of_one_gpu) {
  pl_no_place it = {.trace = trace, .unplaced = {buffer_named("z"), 7}, .instance = -1, .room = 5, .gpus = 4};
  char *text;
  ok(pl_no_place_tell(&it, &text));
  assert_told(text, ": on each of 4 GPUs z of 7 bytes finds no place at the end of the period");
}
END_TEST

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_status plan_with(const char *policy, int64_t budget, int64_t host_budget) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 1,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = budget,
                           .terms.budgets[PLANC_MEMORY_HOST] = host_budget};
  planc_plan *plan = NULL;
  planc_status status = planc_make_plan(&problem, planc_policy_find(policy), &plan);
  planc_plan_free(plan);
  return status;
}

START_TEST(a_plan_beyond_the_budget) {
  assert_fails(plan_with("none", 9000, -1), PLANC_INFEASIBLE,
               "policy none, in its last attempt, took 10240 bytes of device memory, the budget is 9000: ");
  assert_fails(plan_with("none", 9000, -1), PLANC_INFEASIBLE, " bytes finds no place at op a beside ");
  assert_fails(plan_with("none", 5000, -1), PLANC_INFEASIBLE, "of 4096");
}
END_TEST

START_TEST(a_plan_beyond_the_host_budget) {
  assert_fails(plan_with("window", 1 << 20, 100), PLANC_INFEASIBLE,
               "bytes of host memory, the budget is 100: w of 4096 bytes finds no place at op a");
}
END_TEST

/* Each of both GPUs has what one alone has; the host is there for both, and each has a device of its own. */
START_TEST(a_plan_of_two_gpus) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 1,
                           .terms.gpus = 2,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = 1 << 20,
                           .terms.budgets[PLANC_MEMORY_HOST] = 100};
  planc_plan *plan;
  assert_fails(planc_make_plan(&problem, planc_policy_find("window"), &plan), PLANC_INFEASIBLE,
               "bytes of host memory, the budget is 100: on each of 2 GPUs w of 4096 bytes finds no place at op a");
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = 9000;
  assert_fails(planc_make_plan(&problem, planc_policy_find("none"), &plan), PLANC_INFEASIBLE,
               "policy none, in its last attempt, took 10240 bytes of device memory, the budget is 9000: y of 2048 "
               "bytes finds no place");
}
END_TEST

/* What is reserved is a part of the budget. */
START_TEST(parts_of_the_budget) {
  char text[PL_SHORTAGE_TEXT];
  profile->device.reserved_bytes = 1000;
  assert_fails(plan_with("none", 10000, -1), PLANC_INFEASIBLE,
               "policy none, in its last attempt, took 11240 bytes of device memory, the budget is 10000, 1000 of it "
               "reserved: ");
  assert_fails(plan_with("none", 500, -1), PLANC_INFEASIBLE, "the budget is 500, less than the 1000 reserved");
  pl_shortage shortage = {.needs = {PLANC_MEMORY_HOST, 9}, .budget = 8, .beside = 3, .replicas = 2};
  ck_assert_str_eq(pl_shortage_format(&shortage, text), "9 bytes of host memory, the budget is 8, 3 of it storage");
  ck_assert_int_eq(pl_shortage_room(&shortage), 4);
  shortage.needs.memory = PLANC_MEMORY_DEVICE;
  ck_assert_int_eq(pl_shortage_room(&shortage), 5);
  shortage.needs.memory = PLANC_MEMORY_STORAGE;
  shortage.beside = 0;
  ck_assert_str_eq(pl_shortage_format(&shortage, text), "9 bytes of storage, the budget is 8");
}
END_TEST

/* --- Schedules ---------------------------------------------------------------------------------------------------- */

/* Runs both ops with stated addresses. */
static planc_schedule *schedule_with(planc_costs *costs, int64_t y_address, int64_t z_address) {
  planc_schedule *s;
  int32_t w, x, y, z;
  ok(planc_schedule_new(trace, (const planc_costs *const[]){costs}, NULL, 0, &s));
  ok(planc_schedule_boundary(s, buffer_named("w"), planc_schedule_device(s), 0, &w));
  ok(planc_schedule_acquire(s, buffer_named("x"), planc_schedule_device(s), 4096, &x));
  ok(planc_schedule_prefetch(s, x, 0));
  ok(planc_schedule_acquire(s, buffer_named("y"), planc_schedule_device(s), y_address, &y));
  ok(planc_schedule_exec(s, 0, 0, PLANC_BLANK, false));
  ok(planc_schedule_release(s, x));
  ok(planc_schedule_acquire(s, buffer_named("z"), planc_schedule_device(s), z_address, &z));
  ok(planc_schedule_exec(s, 1, 0, PLANC_BLANK, false));
  ok(planc_schedule_deliver(s, z));
  ok(planc_schedule_release(s, y));
  ok(planc_schedule_release(s, z));
  ok(planc_schedule_finish(s));
  return s;
}

static planc_status address(int64_t y_address, int64_t z_address, int64_t room, char **out_text) {
  static const int64_t one[] = {1};
  planc_costs *costs;
  pl_arena arena = {0};
  pl_addresses addresses;
  ok(planc_costs_make(profile, graph, 1, one, &costs));
  planc_schedule *s = schedule_with(costs, y_address, z_address);
  planc_status status =
      pl_assign_device_addresses(&arena, s, &(planc_terms){.first_will_do = false}, 0, &(pl_placing){0}, &addresses);
  if (!status) status = pl_slots_make(&arena, s, NULL, NULL, false, &addresses.away);
  if (!status) ok(pl_schedule_no_place(s, &addresses, PLANC_MEMORY_DEVICE, room, out_text));
  pl_arena_free(&arena);
  planc_schedule_free(s);
  planc_costs_free(costs);
  return status;
}

START_TEST(stated_addresses_that_overlap) {
  char *text;
  assert_fails(address(5120, 8192, 0, &text), PLANC_INTERNAL,
               "y of 2048 bytes at address 5120 overlaps x of 4096 at 4096 at op a");
  assert_fails(address(8192, 3840, 0, &text), PLANC_INTERNAL,
               "z of 1024 bytes at address 3840 overlaps w of 4096 at 0 at op b");
}
END_TEST

START_TEST(a_schedule_beyond_the_room) {
  char *text;
  ok(address(8192, 4096, 10000, &text));
  assert_told(text, ": y of 2048 bytes finds no place at op a beside 8192 bytes, the largest w of 4096 and x of 4096");
  ok(address(8192, 4096, 10240, &text));
  assert_told(text, "");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("no_place");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, all_fit);
  tcase_add_test(tests, the_fullest_moment_is_told);
  tcase_add_test(tests, a_workspace_between_pieces);
  tcase_add_test(tests, one_that_is_alone);
  tcase_add_test(tests, the_largest_are_named);
  tcase_add_test(tests, figures_of_one_gpu);
  tcase_add_test(tests, a_plan_beyond_the_budget);
  tcase_add_test(tests, a_plan_beyond_the_host_budget);
  tcase_add_test(tests, a_plan_of_two_gpus);
  tcase_add_test(tests, parts_of_the_budget);
  tcase_add_test(tests, stated_addresses_that_overlap);
  tcase_add_test(tests, a_schedule_beyond_the_room);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
