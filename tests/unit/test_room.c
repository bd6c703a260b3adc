/* What a run takes of the machine's memory is told before any of it is taken: a run for which there is not enough is
 * refused at once. */
#include <check.h>
#include <unistd.h>

#include "runtime/room.h"
#include "tests/support/judge.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"

static const char graph_text[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "loss: y\n"
    "tensors:\n"
    "  x: input f32[N,1]\n"
    "  y: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x], out: [y], traffic: 0}\n";
static const char plan_text[] =
    "body\nacquire 0 x 0\nacquire 1 y 256\ncopy 0 user on 1\nrecord 0 on 1\nwait 0 on 0\nexec a use 0 1\nrecord 1 on "
    "0\n"
    "wait 1 on 2\ncopy user 1 on 2\nrelease 0\nrelease 1\n";
static const int64_t one[] = {1};

/* Whose parameter is a pebibyte, which nothing else comes near. */
static const char large_graph_text[] =
    "planc-graph: 1\n"
    "name: large\n"
    "loss: y\n"
    "tensors:\n"
    "  x: input f32[N,1]\n"
    "  w: param f32[16777216,16777216]\n"
    "  y: f32[]\n"
    "ops:\n"
    "  - {op: a, type: t.a, in: [x, w], out: [y], traffic: 0}\n";
static const char large_plan_text[] = "body\nacquire 0 x 0\nacquire 1 y 256\nacquire 2 w 512\nexec a use 0 2 1\n";

static planc_status open_with(int64_t arena, int64_t host_arena) {
  planc_graph *graph = judge_graph(graph_text);
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1};
  planrt_session *session = NULL;
  planc_plan *plan;
  ok(script_make(plan_text, &job, 1, arena, host_arena, &plan));
  planc_status status = planrt_session_new(plan, &(planrt_options){.synthetic = true, .unchecked = true}, &session);
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
  return status;
}

static int64_t machine(void) {
  return sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

/* Each arena alone would do. */
START_TEST(arenas_count_together) {
  int64_t more_than_half = machine() / 2 + (1 << 20);
  ok(open_with(1 << 20, 1 << 20));
  assert_fails(open_with(more_than_half, more_than_half), PLANC_DEVICE, "of the machine's memory, which has");
  assert_fails(open_with(INT64_C(1) << 60, 0), PLANC_DEVICE, "the run takes 1048576.00 TiB of the machine's memory");
}
END_TEST

START_TEST(every_replica_has_arenas) {
  planc_graph *graph = judge_graph(graph_text);
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1, .replicas = 1000};
  planc_plan *plan;
  ok(script_make(plan_text, &job, 1, 4096, 512, &plan));
  ck_assert_int_eq(rt_arenas(plan, PLANC_MEMORY_DEVICE), 4096000);
  ck_assert_int_eq(rt_arenas(plan, PLANC_MEMORY_HOST), 512000);
  ck_assert_int_eq(rt_arenas(plan, PLANC_MEMORY_STORAGE), 0);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* Of every replica: both arenas, what persists at home, and in a reference what persists once more. */
START_TEST(what_persists_counts_at_home_and_in_the_reference) {
  const int64_t pebibyte = INT64_C(1) << 50;
  planc_graph *graph = judge_graph(large_graph_text);
  planc_job job = {.graph = graph, .batch = 1, .n_rounds = 1, .rounds = one, .iterations = 1, .replicas = 3};
  static const char *const told[] = {"the run takes 15360.00 TiB of the machine's memory, which has ",
                                     "the run takes 18432.00 TiB of the machine's memory, the reference beside it "
                                     "included, which has "};
  planc_plan *plan;
  ok(script_make(large_plan_text, &job, 1, pebibyte, 3 * pebibyte, &plan));
  for (int verify = 0; verify < 2; verify++) {
    planrt_session *session = NULL;
    planrt_options options = {.synthetic = true, .unchecked = true, .verify = verify > 0};
    assert_fails(planrt_session_new(plan, &options, &session), PLANC_DEVICE, told[verify]);
  }
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("room");
  TCase *tests = tcase_create("all");
  tcase_add_test(tests, arenas_count_together);
  tcase_add_test(tests, every_replica_has_arenas);
  tcase_add_test(tests, what_persists_counts_at_home_and_in_the_reference);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
