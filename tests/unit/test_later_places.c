/* Places that are taken later on, beside all commands of random schedules looked through one by one. */
#include <check.h>
#include <stdlib.h>

#include "planner/choose/later_places.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

static const int64_t UNIT = PLANC_ALIGNMENT;

static planc_profile *profile;

static void load_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

static int64_t *random_addresses(uint64_t *state, int64_t units, int32_t n) {
  int64_t *addresses = calloc((size_t)n + 1, sizeof *addresses);
  ck_assert_ptr_nonnull(addresses);
  for (int32_t k = 0; k < n; k++) addresses[k] = rand_below(state, units) * UNIT;
  return addresses;
}

typedef struct stretch {
  int64_t address, bytes;
} stretch;

/* What a command takes; no bytes: nothing. */
static stretch taken_by(const planc_schedule *s, int32_t c, const int64_t *residencies, const int64_t *workspaces) {
  const planc_command *command = &planc_schedule_commands(s)[c];
  if (command->kind == PLANC_CMD_EXEC)
    return (stretch){workspaces[c], planc_schedule_variant(s, command).workspace_bytes};
  if (command->kind != PLANC_CMD_ACQUIRE || planc_schedule_is_away(s, command->residency)) return (stretch){0, 0};
  const int32_t buffer = planc_schedule_residencies(s)[command->residency].buffer;
  return (stretch){residencies[command->residency], planc_schedule_trace(s)->buffers[buffer].bytes};
}

static bool meet(stretch a, stretch b) {
  return a.bytes > 0 && b.bytes > 0 && a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

/* In every other schedule hardly any places meet, and the first that does is farther away than is looked. */
START_TEST(the_first_that_takes_some) {
  enum { SCHEDULES = 60, QUESTIONS = 200, LOOKED_AT = 256 };
  int32_t n_met = 0, n_free = 0, n_far = 0;
  for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
    uint64_t state = seed;
    const bool is_sparse = seed % 2;
    const int64_t units = is_sparse ? 1 << 20 : 64;
    randgraph_options options = {.max_ops = is_sparse ? 400 : 60, .max_elements = 4096};
    planc_graph *graph;
    pl_arena arena = {0};
    randcase it;
    pl_later_places later;
    ok(randgraph_make(seed, &options, &graph));
    ok(randcase_make(seed, graph, profile, 1, &it));
    ok(randschedule_make(seed, NULL, &it));
    const planc_schedule *s = it.candidate.schedule;
    const int32_t n = planc_schedule_n_commands(s);
    int64_t *residencies = random_addresses(&state, units, planc_schedule_n_residencies(s));
    int64_t *workspaces = random_addresses(&state, units, n);
    ok(pl_later_places_make(s, residencies, workspaces, &arena, &later));
    for (int k = 0; k < QUESTIONS; k++) {
      const int32_t command = (int32_t)rand_below(&state, n),
                    end = command + 1 + (int32_t)rand_below(&state, n - command);
      const stretch asked = {rand_below(&state, units) * UNIT, (rand_below(&state, 4) + 1) * UNIT};
      int32_t first = command + 1, n_looked_at = 0;
      for (; first < end && n_looked_at <= LOOKED_AT; first++) {
        const stretch taken = taken_by(s, first, residencies, workspaces);
        if (meet(taken, asked)) break;
        n_looked_at += taken.bytes > 0;
      }
      const int32_t found = pl_later_places_until(&later, command, asked.address, asked.bytes, end);
      if (n_looked_at > LOOKED_AT) {
        ck_assert_int_eq(found, first - 1);
        n_far++;
        continue;
      }
      ck_assert_int_eq(found, first);
      n_met += found < end;
      n_free += found == end;
    }
    free(residencies);
    free(workspaces);
    pl_arena_free(&arena);
    randcase_free(&it);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_met, SCHEDULES * QUESTIONS / 10);
  ck_assert_int_gt(n_free, SCHEDULES * QUESTIONS / 100);
  ck_assert_int_gt(n_far, SCHEDULES * QUESTIONS / 100);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("later_places");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, load_profile, free_profile);
  tcase_add_test(tests, the_first_that_takes_some);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
