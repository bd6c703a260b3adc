/* Places that are kept, of random schedules: whatever lives longer for it, never more than before lives at a time, what
 * is small and delivered stays as long as there is room, and the rest is as it was. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planner/lower/kept_places.h"
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

/* Of residencies on the device alone; command c stands at position c + 1. */
static pl_item *items_of(const planc_schedule *s, int32_t n) {
  const int32_t n_commands = planc_schedule_n_commands(s);
  pl_item *items = calloc((size_t)n + 1, sizeof *items);
  ck_assert_ptr_nonnull(items);
  for (int32_t r = 0; r < n; r++) {
    const int32_t buffer = planc_schedule_residencies(s)[r].buffer;
    items[r].bytes = planc_schedule_is_away(s, r) ? 0 : planc_schedule_trace(s)->buffers[buffer].bytes;
    items[r].address = PLANC_BLANK;
    items[r].spans[0].end = n_commands + 2;
  }
  for (int32_t c = 0; c < n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (command->kind == PLANC_CMD_ACQUIRE) items[command->residency].spans[0].start = c + 1;
    if (command->kind == PLANC_CMD_RELEASE) items[command->residency].spans[0].end = c + 1;
  }
  return items;
}

static bool lives_at(const pl_item *item, int32_t position) {
  return pl_item_meets(item, (pl_lifetime){position, position + 1});
}

static int64_t live_at(const pl_item *items, int32_t n, int32_t position) {
  int64_t sum = 0;
  for (int32_t r = 0; r < n; r++)
    if (lives_at(&items[r], position)) sum += pl_align_up(items[r].bytes, PLANC_ALIGNMENT);
  return sum;
}

typedef struct tally {
  int32_t longer, delivered, cut_short;
} tally;

/* A small result is there up to the end, or up to where there is no room for it. */
static void look_at_delivered(const planc_schedule *s, const pl_item *items, int32_t n, int64_t most, tally *t) {
  enum { SMALL = 4096 };
  const int32_t horizon = planc_schedule_n_commands(s) + 2;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (command->kind != PLANC_CMD_COPY || command->residency != PLANC_USER) continue;
    const pl_item *item = &items[command->source];
    const int64_t bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT);
    if (bytes > most / SMALL) continue;
    t->delivered++;
    if (pl_item_end(item) == horizon) continue;
    ck_assert_int_gt(live_at(items, n, pl_item_end(item)) + bytes, most);
    t->cut_short++;
  }
}

static void keep_in(const randcase *it, tally *t) {
  const planc_schedule *s = it->candidate.schedule;
  const int32_t n = planc_schedule_n_residencies(s), horizon = planc_schedule_n_commands(s) + 2;
  pl_item *before = items_of(s, n), *after = items_of(s, n);
  pl_arena arena = {0};
  int64_t most = 0;
  for (int32_t p = 0; p < horizon; p++) most = pl_max(most, live_at(before, n, p));
  ok(pl_keep_places(&arena, s, after, n));
  for (int32_t p = 0; p < horizon; p++) {
    ck_assert_int_le(live_at(after, n, p), most);
    for (int32_t r = 0; r < n; r++)
      if (lives_at(&before[r], p)) ck_assert(lives_at(&after[r], p));
  }
  for (int32_t r = 0; r < n; r++) {
    ck_assert_int_eq(after[r].bytes, before[r].bytes);
    ck_assert_int_eq(after[r].address, PLANC_BLANK);
    t->longer += memcmp(after[r].spans, before[r].spans, sizeof after[r].spans) != 0;
  }
  look_at_delivered(s, after, n, most, t);
  pl_arena_free(&arena);
  free(before);
  free(after);
}

START_TEST(nothing_takes_more_room) {
  enum { SCHEDULES = 150 };
  tally t = {0};
  int32_t n = 0;
  for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
    if (!is_sampled((int)seed, 2)) continue;
    n++;
    randgraph_options options = {.max_ops = 40, .max_elements = seed % 2 ? 4096 : 1 << 20};
    planc_graph *graph;
    randcase it;
    ok(randgraph_make(seed, &options, &graph));
    ok(randcase_make(seed, graph, profile, 1, &it));
    ok(randschedule_make(seed, NULL, &it));
    keep_in(&it, &t);
    randcase_free(&it);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(t.longer, n / 2);
  ck_assert_int_gt(t.delivered, n / 10);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("kept_places");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, load_profile, free_profile);
  tcase_add_test(tests, nothing_takes_more_room);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
