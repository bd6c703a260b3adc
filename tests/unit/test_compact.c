/* Schedules with moves: random ones are stated again in rooms between what lives at most and what greedy placement
 * takes. What comes of it is a plan within the room that the checker finds right, of the same ops in the same order. */
#include <check.h>
#include <stdlib.h>

#include "planc/check.h"
#include "planner/choose/compact.h"
#include "planner/evaluate.h"
#include "tests/support/lower_for.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"
#include "util/math.h"

static planc_profile *profile;

static void load_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct tally {
  int32_t moved, impossible, beside;
} tally;

static uint64_t work_of(const planc_schedule *s);
static int32_t moves_of(const planc_schedule *s);
static void assert_within(const randcase *c, int64_t room);

static void in_rooms(uint64_t seed, randcase *c, tally *t) {
  planc_evaluator evaluator = pl_evaluator_of(&c->problem);
  enum { ROOMS = 4 };
  for (int64_t k = 0; k <= ROOMS; k++) {
    int64_t live, peak, reserved = planc_profile_device(profile)->reserved_bytes;
    ok(randschedule_make(seed, NULL, c));
    ok(evaluator.live(&evaluator, &c->candidate, &live));
    ok(evaluator.peak(&evaluator, &c->candidate, &peak));
    int64_t room = pl_align_up(live + (peak - live) * k / ROOMS - reserved, PLANC_ALIGNMENT);
    const planc_schedule *before = c->candidate.schedule;
    uint64_t work = work_of(before);
    int32_t moves = moves_of(before), n_streams = planc_schedule_n_compute(before, 0);
    bool fits;
    ok(pl_compact(&evaluator, room, &c->candidate, &fits));
    ck_assert_int_eq(work_of(c->candidate.schedule), work);
    if (n_streams > 1) {
      ck_assert(!fits && c->candidate.schedule == before);
      t->beside++;
      return;
    }
    if (!fits) {
      ck_assert_ptr_eq(c->candidate.schedule, before);
      ck_assert_int_lt(k, ROOMS); /* there the greedy places do */
      t->impossible++;
      continue;
    }
    assert_within(c, room);
    t->moved += moves_of(c->candidate.schedule) > moves;
  }
}

/* The execs and copies to and from the device that a schedule states, as a number. */
static uint64_t work_of(const planc_schedule *s) {
  uint64_t sum = 1;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (command->kind == PLANC_CMD_EXEC)
      sum = sum * 31 + (uint64_t)command->instance * 7 + (uint64_t)command->variant * 2 + command->recompute;
    if (command->kind == PLANC_CMD_COPY && planc_schedule_route(s, command->stream) != PLANC_STREAM_COMPUTE)
      sum = sum * 37 + (uint64_t)command->version;
  }
  return sum;
}

static int32_t moves_of(const planc_schedule *s) {
  int32_t n = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    n += command->kind == PLANC_CMD_COPY && planc_schedule_route(s, command->stream) == PLANC_STREAM_COMPUTE;
  }
  return n;
}

static int64_t device_arena(const planc_plan *plan);

static void assert_within(const randcase *c, int64_t room) {
  planc_plan *plan;
  ok(lower_for(&c->problem, "random", &c->candidate, &plan));
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_le(device_arena(plan), room);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *it = &plan->body.instrs[i];
    if (it->op != PLANC_INSTR_copy) continue;
    bool moves = plan->streams[it->stream].kind == PLANC_STREAM_KIND_compute;
    ck_assert_int_eq(it->time_ns, moves ? planc_costs_move_ns(profile, it->bytes) : 0);
  }
  planc_plan_free(plan);
}

static int64_t device_arena(const planc_plan *plan) {
  for (int32_t m = 0; m < plan->n_memories; m++)
    if (plan->memories[m].kind == PLANC_MEMORY_DEVICE) return plan->memories[m].arena_bytes;
  return -1;
}

START_TEST(random_schedules_in_less_room) {
  enum { SCHEDULES = 300 };
  tally t = {0};
  int32_t n = 0;
  for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
    if (!is_sampled((int)seed, 3)) continue;
    n++;
    randgraph_options options = {.max_ops = 90, .max_elements = 4096, .inference = seed % 5 == 4};
    planc_graph *graph;
    randcase c;
    ok(randgraph_make(seed, &options, &graph));
    ok(randcase_make(seed, graph, profile, seed % 10 == 9 ? 2 : 1, &c));
    in_rooms(seed, &c, &t);
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(t.moved, n / 2);
  ck_assert_int_gt(t.impossible, n / 30);
  ck_assert_int_gt(t.beside, n / 60);
}
END_TEST

/* Nothing that states an address is stated again. */
START_TEST(what_cannot_be_stated_again_stays) {
  planc_graph *graph;
  randcase c;
  bool fits = true;
  ok(randgraph_make(3, NULL, &graph));
  ok(randcase_make(3, graph, profile, 1, &c));
  ok(randschedule_make(3, NULL, &c));
  int32_t n = planc_schedule_n_residencies(c.candidate.schedule);
  int64_t *addresses = calloc((size_t)n, sizeof *addresses);
  ck_assert_ptr_nonnull(addresses);
  for (int32_t r = 0; r < n; r++) addresses[r] = (int64_t)r << 30;
  ok(randschedule_make(3, &(randschedule_options){.addresses = addresses}, &c));
  planc_evaluator evaluator = pl_evaluator_of(&c.problem);
  ok(pl_compact(&evaluator, INT64_MAX / 4, &c.candidate, &fits));
  ck_assert(!fits);
  free(addresses);
  randcase_free(&c);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compact");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, load_profile, free_profile);
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, random_schedules_in_less_room);
  tcase_add_test(tests, what_cannot_be_stated_again_stays);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
