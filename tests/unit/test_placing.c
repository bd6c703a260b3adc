/* Places of what is large, and of the rest around it: no two things of a random schedule have the same bytes at a
 * time, and what is left out is not looked at. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planner/evaluate.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"

static planc_profile *profile;

static void load_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct places {
  int64_t *residencies, *workspaces, bytes;
} places;

static places place(const randcase *c, planc_placing what, const places *given) {
  const planc_schedule *s = c->candidate.schedule;
  const size_t n = (size_t)planc_schedule_n_residencies(s), n_commands = (size_t)planc_schedule_n_commands(s);
  planc_evaluator evaluator = pl_evaluator_of(&c->problem);
  places out = {calloc(n + 1, sizeof(int64_t)), calloc(n_commands + 1, sizeof(int64_t)), 0};
  ck_assert(out.residencies && out.workspaces);
  if (given) {
    memcpy(out.residencies, given->residencies, n * sizeof(int64_t));
    memcpy(out.workspaces, given->workspaces, n_commands * sizeof(int64_t));
  }
  ok(evaluator.place(&evaluator, &c->candidate, what, out.residencies, out.workspaces, &out.bytes));
  return out;
}

static void free_places(places *p) {
  free(p->residencies);
  free(p->workspaces);
}

static int64_t bytes_of(const planc_schedule *s, int32_t residency) {
  return planc_schedule_trace(s)->buffers[planc_schedule_residencies(s)[residency].buffer].bytes;
}

/* What persists and never leaves. */
static bool is_always_there(const planc_schedule *s, int32_t residency) {
  bool is_first = residency >= planc_schedule_n_away(s) && residency < planc_schedule_n_boundary(s);
  return is_first && planc_schedule_open(s, planc_schedule_residencies(s)[residency].buffer) == residency;
}

static bool is_large(const planc_schedule *s, int32_t residency, int64_t large_bytes) {
  return bytes_of(s, residency) >= large_bytes || is_always_there(s, residency);
}

typedef struct extent {
  int64_t start, end;
  int32_t residency;
} extent;

typedef struct memory {
  extent items[1 << 12];
  int32_t n;
} memory;

static void assert_free(const memory *m, int64_t start, int64_t bytes) {
  for (int32_t k = 0; k < m->n; k++) ck_assert(m->items[k].end <= start || m->items[k].start >= start + bytes);
}

static void put(memory *m, int64_t start, int64_t bytes, int32_t residency) {
  assert_free(m, start, bytes);
  ck_assert_int_lt(m->n, 1 << 12);
  m->items[m->n++] = (extent){start, start + bytes, residency};
}

static void take(memory *m, int32_t residency) {
  for (int32_t k = 0; k < m->n; k++)
    if (m->items[k].residency == residency) m->items[k--] = m->items[--m->n];
}

/* Of what has so many bytes at least or is always there: all commands one after the other. */
static void assert_apart(const planc_schedule *s, const places *p, int64_t large_bytes) {
  static memory m;
  m.n = 0;
  for (int32_t r = planc_schedule_n_away(s); r < planc_schedule_n_boundary(s); r++)
    if (is_large(s, r, large_bytes)) put(&m, p->residencies[r], bytes_of(s, r), r);
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    const int32_t r = command->residency;
    if (command->kind == PLANC_CMD_RELEASE) take(&m, r);
    if (command->kind == PLANC_CMD_ACQUIRE && !planc_schedule_is_away(s, r) && is_large(s, r, large_bytes))
      put(&m, p->residencies[r], bytes_of(s, r), r);
    int64_t workspace = command->kind == PLANC_CMD_EXEC ? planc_schedule_variant(s, command).workspace_bytes : 0;
    if (workspace > 0 && workspace >= large_bytes) assert_free(&m, p->workspaces[c], workspace);
  }
}

/* Large ones stay where they are when the rest is placed; returns how many there are. */
static int32_t assert_kept(const planc_schedule *s, const places *before, const places *after, int64_t large_bytes) {
  int32_t n = 0;
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++) {
    if (planc_schedule_is_away(s, r) || !is_large(s, r, large_bytes)) continue;
    ck_assert_int_eq(after->residencies[r], before->residencies[r]);
    n++;
  }
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (command->kind != PLANC_CMD_EXEC) continue;
    int64_t bytes = planc_schedule_variant(s, command).workspace_bytes;
    if (bytes > 0 && bytes >= large_bytes) ck_assert_int_eq(after->workspaces[c], before->workspaces[c]);
  }
  return n;
}

START_TEST(the_rest_lies_around_what_is_large) {
  enum { SCHEDULES = 120 };
  int32_t n_large = 0, n_all = 0, n_higher = 0, n = 0;
  for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
    if (!is_sampled((int)seed, 2)) continue;
    n++;
    const int64_t large_bytes = INT64_C(256) << seed % 7;
    randgraph_options options = {.max_ops = 90, .max_elements = 4096, .inference = seed % 5 == 4};
    planc_graph *graph;
    randcase c;
    ok(randgraph_make(seed, &options, &graph));
    ok(randcase_make(seed, graph, profile, 1, &c));
    ok(randschedule_make(seed, NULL, &c));
    if (planc_schedule_n_compute(c.candidate.schedule, 0) == 1) {
      const planc_schedule *s = c.candidate.schedule;
      places large = place(&c, (planc_placing){.large_bytes = large_bytes}, NULL);
      places all = place(&c, (planc_placing){.large_bytes = large_bytes, .rest = true}, &large);
      assert_apart(s, &large, large_bytes);
      assert_apart(s, &all, 0);
      n_large += assert_kept(s, &large, &all, large_bytes);
      n_all += planc_schedule_n_residencies(s);
      n_higher += all.bytes > large.bytes;
      ck_assert_int_ge(all.bytes, large.bytes);
      free_places(&large);
      free_places(&all);
    }
    randcase_free(&c);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_large, n_all / 10);
  ck_assert_int_lt(n_large, n_all - n_all / 10);
  ck_assert_int_gt(n_higher, n / 4);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("placing");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, load_profile, free_profile);
  tcase_add_test(tests, the_rest_lies_around_what_is_large);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
