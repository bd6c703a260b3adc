/* What is lost of an arena, on hand-made plans: x has chunks of its own, all else shares chunks. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "planc/analysis.h"
#include "planner/analysis/remap.h"
#include "tests/support/plan_tables.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"

static const char graph_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "loss: z\n"
    "tensors:\n"
    "  x: input f32[N,1225]\n" /* 4900 bytes at batch 1 */
    "  y: f32[N,1]\n"
    "  z: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x], out: [y], traffic: 0}\n"
    "  - {op: b, type: t.b, in: [y], out: [z], traffic: 0}\n";

enum { CHUNK = 4096, ARENA = 8 * CHUNK };

static planc_graph *graph;

static void set_up(void) {
  ok(planc_graph_parse(graph_text, sizeof graph_text - 1, "chain", &graph));
}
static void tear_down(void) {
  planc_graph_free(graph);
}

static planc_plan *plan_of(const char *script, int64_t arena) {
  static const int64_t one[] = {1};
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planc_plan *plan;
  ok(script_make(script, &job, 1, arena, 0, &plan));
  return plan;
}

/* All ops run, nothing is released. */
#define BOTH "body\nacquire 0 x 0\nacquire 1 y 8192\nexec a use 0 1\nacquire 2 z 16384\nexec b use 1 2\n"

static planc_fragmentation lost_by(const char *script, int64_t chunk_bytes) {
  planc_mapping whole = {0, ARENA / CHUNK};
  planc_fragmentation lost;
  planc_plan *plan = plan_of(script, ARENA);
  tables_map(plan, chunk_bytes, &whole, chunk_bytes > 0);
  ok(planc_fragmentation_of(plan, &lost));
  planc_plan_free(plan);
  return lost;
}

START_TEST(best_fit_loses_no_chunks) {
  planc_fragmentation lost = lost_by(
      "body\nacquire 0 x 0\nacquire 1 y 8192\nexec a use 0 1\nrelease 0\nacquire 2 z 9216\n"
      "exec b ws 12288 4000 use 1 2\nrelease 1\nrelease 2\n",
      0);
  ck_assert_int_eq(lost.live_bytes, 4900 + 4);
  ck_assert_int_eq(lost.lost_bytes, ARENA - 4904);
  ck_assert_int_eq(lost.inside_bytes, 0);
  ck_assert_int_eq(lost.bound_bytes, 0);
  ck_assert_int_eq(lost.shared_bytes, 0);
}
END_TEST

/* y and z in one chunk, the workspace in another: what is free is the most before z comes. */
START_TEST(small_data_shares_a_chunk) {
  planc_fragmentation lost = lost_by(
      "body\nacquire 0 x 0\nacquire 1 y 8192\nexec a use 0 1\nrelease 0\nacquire 2 z 9216\n"
      "exec b ws 12288 4000 use 1 2\nrelease 1\nrelease 2\n",
      CHUNK);
  ck_assert_int_eq(lost.live_bytes, 4900 + 4);
  ck_assert_int_eq(lost.inside_bytes, 2 * CHUNK - 4900);
  ck_assert_int_eq(lost.most_at_once, 1);
  ck_assert_int_eq(lost.bound_bytes, CHUNK);
  ck_assert_int_eq(lost.shared_bytes, (CHUNK - 8) + (CHUNK - 4000));
}
END_TEST

START_TEST(small_data_in_chunks_apart) {
  planc_fragmentation lost = lost_by(
      "body\nacquire 0 x 0\nacquire 1 y 8192\nexec a use 0 1\nrelease 0\nacquire 2 z 16384\n"
      "exec b use 1 2\nrelease 1\nrelease 2\n",
      CHUNK);
  ck_assert_int_eq(lost.shared_bytes, 2 * (CHUNK - 4));
}
END_TEST

/* Addresses that no allocator of ours gives: a workspace over the end of a chunk holds both. */
START_TEST(a_piece_over_the_end_of_a_chunk) {
  planc_fragmentation lost = lost_by(
      "body\nacquire 0 x 0\nacquire 1 y 20480\nexec a use 0 1\nrelease 0\nacquire 2 z 20484\n"
      "exec b ws 10240 4000 use 1 2\nrelease 1\nrelease 2\n",
      CHUNK);
  ck_assert_int_eq(lost.shared_bytes, (CHUNK - 8) + (2 * CHUNK - 4000));
}
END_TEST

START_TEST(sums_that_do_not_fit_are_an_error) {
  planc_plan *plan = plan_of(BOTH, ARENA);
  planc_fragmentation lost;
  for (int k = 0; k < 2; k++) ((planc_instr *)&plan->body.instrs[k])->bytes = INT64_MAX / 6;
  assert_fails(planc_fragmentation_of(plan, &lost), PLANC_INVALID_PLAN, "64 bits");
  planc_plan_free(plan);
}
END_TEST

/* Numbers of a plan that stand for more than memory holds. */
START_TEST(jobs_beyond_the_body_are_refused) {
  planc_plan *plan = plan_of(BOTH, ARENA);
  planc_fragmentation lost;
  ((planc_job *)plan->jobs)->iterations = 1 << 30;
  assert_fails(planc_fragmentation_of(plan, &lost), PLANC_INVALID_PLAN, "the jobs have at least");
  planc_plan_free(plan);
}
END_TEST

/* A few rows that map all of a huge arena again and again. */
START_TEST(chunks_are_not_mapped_without_end) {
  enum { CHUNKS = 1 << 22, TIMES = 8 };
  planc_mapping whole = {0, CHUNKS};
  const int64_t arena = INT64_C(256) * CHUNKS;
  char script[1024] = BOTH;
  for (int k = 3; k < TIMES; k++) sprintf(script + strlen(script), "acquire %d x %d\n", k, 32768 * k);
  planc_plan *plan = plan_of(script, arena);
  int64_t *mapped, sum;
  tables_map(plan, 256, &whole, 1);
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_acquire) ((planc_instr *)&plan->body.instrs[i])->bytes = arena;
  assert_fails(pl_count_mappings(plan, &mapped, &sum), PLANC_INVALID_PLAN, "mapped too often");
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("fragmentation");
  TCase *tests = tcase_create("all");
  tcase_add_unchecked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, best_fit_loses_no_chunks);
  tcase_add_test(tests, small_data_shares_a_chunk);
  tcase_add_test(tests, small_data_in_chunks_apart);
  tcase_add_test(tests, a_piece_over_the_end_of_a_chunk);
  tcase_add_test(tests, sums_that_do_not_fit_are_an_error);
  tcase_add_test(tests, jobs_beyond_the_body_are_refused);
  tcase_add_test(tests, chunks_are_not_mapped_without_end);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
