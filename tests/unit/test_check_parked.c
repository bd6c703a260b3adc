/* The checker on what is parked on the host, or in storage, between periods: hand-made plans, and their rules broken
 * once each. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/judge.h"
#include "tests/support/unit.h"

/* At batch 2 every storage has 256 bytes, the loss 4. */
static const char tiny[] =
    "planc-graph: 1\n"
    "name: tiny\n"
    "loss: loss\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  c: param f32[64]\n"
    "  loss: f32[]\n"
    "  g: grad f32[64]\n"
    "ops:\n"
    "  - {op: f, type: t.make, in: [x, w, c], out: [loss]}\n"
    "  - {op: b, type: t.make, phase: backward, in: [x, w], out: [g]}\n"
    "  - {op: up, type: t.make, phase: optimizer, in: [w, g], out: [w]}\n";

/* w is parked at host 0 and is trained; c, parked at host 256, never changes. Residencies: w 0, c 1, x 2, w 3, c 4,
 * loss 5, g 6, w again where it is parked 7. Events: 0 w and c are parked, 3 compute, 4 w, c and x are there, 5 f, 6 w
 * is parked again. */
static const char script[] =
    "boundary w 0 host\n"
    "boundary c 256 host\n"
    "prologue\n"
    "acquire 0 w 0 host\n"
    "copy 0 user on 1\n"
    "acquire 1 c 256 host\n"
    "copy 1 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 2\n"
    "record 6 on 2\n"
    "record 3 on 0\n"
    "body\n"
    "wait 3 lag 1 on 1\n"
    "wait 6 lag 1 on 1\n"
    "acquire 2 x 0\n"
    "copy 2 user on 1\n"
    "acquire 3 w 512\n"
    "copy 3 0 on 1\n"
    "release 0\n"
    "acquire 4 c 256\n"
    "copy 4 1 on 1\n"
    "record 4 on 1\n"
    "wait 4 on 0\n"
    "wait 6 lag 1 on 0\n"
    "acquire 5 loss 768\n"
    "exec f use 2 3 4 5\n"
    "record 5 on 0\n"
    "wait 5 on 2\n"
    "copy user 5 on 2\n"
    "release 4\n"
    "acquire 6 g 1024\n"
    "exec b use 2 3 6\n"
    "exec up use 3 6\n"
    "record 3 on 0\n"
    "wait 3 on 2\n"
    "acquire 7 w 0 host\n"
    "copy 7 3 on 2\n"
    "record 6 on 2\n"
    "release 2\n"
    "release 3\n"
    "release 5\n"
    "release 6\n"
    "epilogue\n"
    "copy user 0 on 2\n"
    "release 0\n"
    "copy user 1 on 2\n"
    "release 1\n";

enum { ARENA = 1280, HOST_ARENA = 512 };

static planc_graph *graph;

static void set_up(void) {
  graph = judge_graph(tiny);
}

static void tear_down(void) {
  planc_graph_free(graph);
}

static planc_plan *make(const char *text) {
  return judge_plan(graph, text, ARENA, HOST_ARENA);
}

START_TEST(the_plan_is_valid) {
  planc_plan *plan = make(script);
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_DEVICE], ARENA);
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_HOST], HOST_ARENA);
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_HOST], HOST_ARENA);
  judge_expect(plan, PLANC_OK, "ok", "from text");
  planc_plan_free(plan);
}
END_TEST

static const struct {
  const char *find, *replace, *message;
} broken[] = {
    /* Where the boundary says it is. */
    {"boundary w 0 host\n", "boundary w 0\n", "acquire w: is not what row 0 of the boundary says"},
    {"boundary c 256 host\n", "boundary c 0 host\n", "acquire c: is not what row 1 of the boundary says"},
    {"boundary c 256 host\n", "boundary c 256 user\n", "acquire c: is not what row 1 of the boundary says"},
    {"boundary c 256 host\n", "boundary c 256 in 9\n", "acquire c: is not what row 1 of the boundary says"},
    {"acquire 0 w 0 host\n", "acquire 0 c 0 host\n", "acquire c: is not what row 0 of the boundary says"},
    {"acquire 0 w 0 host\n", "acquire 0 w 0\n", "acquire w: is not what row 0 of the boundary says"},
    {"acquire 1 c 256 host\n", "acquire 1 c 300 host\n", "acquire c: address 300 is not a multiple of 256"},
    {"acquire 1 c 256 host\n", "acquire 1 c 512 host\n",
     "acquire c: 256 bytes from address 512 on are not inside the arena of 512 bytes"},
    {"acquire 1 c 256 host\n", "acquire 1 c 0 host\n", "acquire c: overlaps w in residency 0, which is open at 0"},
    /* The way there. */
    {"copy 0 user on 1\n", "", "prologue: at its end w is there in version -1 instead of 0"},
    {"copy 0 user on 1\n", "copy user 0 on 2\n", "copy w: residency 0 holds nothing yet"},
    {"copy 0 user on 1\n", "copy 0 user on 2\n", "copy w: stream 2 does not copy from the user to the host"},
    {"copy 1 user on 1\n", "copy 1 0 on 1\n", "move c: stream 1 does not compute in memory 1"},
    {"copy 1 user on 1\n", "copy 1 user on 1\ncopy user 1 on 2\n",
     "copy c: nothing leaves for the user in the prologue"},
    {"wait 0 on 2\n", "",
     "copy w: reads w, which copy at line 31 on stream h2d may still be writing, in a run without bodies"},
    {"record 0 on 1\n", "release 1\nrecord 0 on 1\n", "prologue: at its end c is not there"},
    /* In the body. */
    {"copy 3 0 on 1\n", "copy 3 1 on 1\n", "prefetch w: residency 1 is of c"},
    {"copy 3 0 on 1\n", "", "exec f: reads w in residency 3, which holds nothing yet"},
    {"copy 3 0 on 1\nrelease 0\n", "release 0\ncopy 3 0 on 1\n", "prefetch w: residency 0 is not open"},
    {"copy 3 0 on 1\n", "copy 3 user on 1\n", "prefetch w: is not a buffer that the user feeds"},
    {"exec f use 2 3 4 5\n", "exec f use 2 3 1 5\n", "exec f: wants c, but residency 1 is in memory 1"},
    {"wait 6 lag 1 on 1\n", "",
     "prefetch w: reads w, which offload at line 61 of the body before on stream d2h may still be writing"},
    {"copy 7 3 on 2\n", "", "body: at its end w is there in version -1 instead of 1"},
    {"copy 7 3 on 2\n", "copy 7 1 on 0\n", "move w: stream 0 does not compute in memory 1"},
    {"exec up use 3 6\nrecord 3 on 0\nwait 3 on 2\nacquire 7 w 0 host\ncopy 7 3 on 2\n",
     "record 3 on 0\nwait 3 on 2\nacquire 7 w 0 host\ncopy 7 3 on 2\nrecord 9 on 2\nwait 9 on 0\nexec up use 3 6\n",
     "body: at its end w is there in version 0 instead of 1"},
    {"wait 3 on 2\nacquire 7", "acquire 7", "offload w: reads w, which exec at line"},
    {"wait 4 on 0\n", "", "exec f: reads x, which prefetch at line"},
    {"release 0\n", "", "acquire w: overlaps w in residency 0, which is open at 0"},
    {"acquire 7 w 0 host\n", "acquire 7 w 256 host\n", "acquire w: overlaps c in residency 1, which is open at 256"},
    {"release 3\n", "",
     "body: at its end residency 3 of w is open at 512 of memory 0, which the boundary does not say"},
    {"release 4\n", "",
     "body: at its end residency 4 of c is open at 256 of memory 0, which the boundary does not say"},
    {"release 5\n", "release 5\nrelease 1\n", "body: at its end c is not there"},
    /* At the right address, but of another memory. */
    {"release 4\n", "release 1\n",
     "body: at its end residency 4 of c is open at 256 of memory 0, which the boundary does not say"},
    /* The way back. */
    {"copy user 0 on 2\n", "", "epilogue: w is never offloaded to the user"},
    {"copy user 0 on 2\n", "copy 0 user on 1\n", "copy w: nothing comes from the user in the epilogue"},
    {"copy user 0 on 2\n", "copy user 0 on 1\n", "copy w: stream 1 does not copy from the host to the user"},
    {"copy user 1 on 2\n", "", "epilogue: c is never offloaded to the user"},
    {"copy user 1 on 2\n", "copy user 1 on 2\ncopy user 1 on 2\n", "copy c: leaves twice"},
    {"copy user 1 on 2\n", "acquire 7 c 512\ncopy 7 1 on 1\n", "acquire c: must not stand in the epilogue"},
    {"copy user 1 on 2\nrelease 1\n", "copy user 1 on 2\n", "epilogue: it does not release residency 1 of c"},
};

START_TEST(a_broken_rule_is_named) {
  char *text = judge_edited(script, broken[_i].find, broken[_i].replace);
  planc_plan *plan = make(text);
  judge_expect(plan, PLANC_INVALID_PLAN, broken[_i].message, broken[_i].find);
  planc_plan_free(plan);
  free(text);
}
END_TEST

/* --- Further memories --------------------------------------------------------------------------------------------- */

/* c is parked in storage and passes through the host; so do x, which the user feeds to the host, and the loss. All in
 * one chain. Residencies: w 0, c 1; c on the host 2, c 3, x on the host 4, x 5, loss 6, g 7, loss on the host 8. */
static const char deep[] =
    "storage 768\n"
    "boundary w 0\n"
    "boundary c 512 storage\n"
    "prologue\n"
    "acquire 0 w 0\n"
    "acquire 1 c 512 storage\n"
    "copy 0 user on 1\n"
    "copy 1 user on 3\n"
    "record 0 on 1\n"
    "wait 0 on 3\n"
    "record 4 on 3\n"
    "wait 4 on 2\n"
    "record 1 on 2\n"
    "body\n"
    "wait 1 lag 1 on 4\n"
    "acquire 2 c 0 host\n"
    "copy 2 1 on 4\n"
    "record 5 on 4\n"
    "wait 5 on 1\n"
    "acquire 3 c 256\n"
    "copy 3 2 on 1\n"
    "release 2\n"
    "acquire 4 x 256 host\n"
    "copy 4 user on 1\n"
    "acquire 5 x 512\n"
    "copy 5 4 on 1\n"
    "release 4\n"
    "record 2 on 1\n"
    "wait 2 on 0\n"
    "acquire 6 loss 768\n"
    "exec f use 5 0 3 6\n"
    "acquire 7 g 1024\n"
    "exec b use 5 0 7\n"
    "exec up use 0 7\n"
    "record 3 on 0\n"
    "wait 3 on 2\n"
    "acquire 8 loss 0 host\n"
    "copy 8 6 on 2\n"
    "copy user 8 on 2\n"
    "record 1 on 2\n"
    "release 3\n"
    "release 5\n"
    "release 6\n"
    "release 7\n"
    "release 8\n"
    "epilogue\n"
    "wait 1 lag 1 on 4\n"
    "copy user 0 on 2\n"
    "copy user 1 on 4\n"
    "release 0\n"
    "release 1\n";

START_TEST(data_may_pass_through_any_memory) {
  planc_plan *plan = make(deep);
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_DEVICE], ARENA);
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_HOST], HOST_ARENA);
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_STORAGE], 768);
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_STORAGE], 768);
  judge_expect(plan, PLANC_OK, "ok", "from text");
  planc_check_options options = {.budgets = {-1, -1, 700}};
  assert_fails(planc_check(plan, &options, NULL), PLANC_INFEASIBLE,
               "storage needs 768 bytes, its budget is 700, 68 too few");
  planc_plan_free(plan);
}
END_TEST

static const struct {
  const char *find, *replace, *message;
} broken_deep[] = {
    {"acquire 3 c 256\ncopy 3 2 on 1\n", "acquire 3 c 256\ncopy 3 1 on 2\n",
     "prefetch c: stream 2 does not copy from storage to device 0"},
    {"acquire 2 c 0 host\n", "acquire 2 c 512 storage\n", "acquire c: overlaps c in residency 1, which is open at 512"},
    {"acquire 2 c 0 host\n", "acquire 2 c 0 storage\n", "move c: stream 4 does not compute in memory 2"},
    {"acquire 2 c 0 host\n", "acquire 2 c 768 storage\n", "are not inside the arena of 768 bytes"},
    {"copy 4 user on 1\n", "", "prefetch x: residency 4 holds nothing yet"},
    {"copy 8 6 on 2\n", "", "copy loss: residency 8 holds nothing yet"},
    {"copy user 8 on 2\n", "copy user 8 on 2\ncopy user 6 on 2\n", "offload loss: leaves twice"},
    {"copy user 8 on 2\n", "copy user 8 on 2\nrelease 1\n", "body: at its end c is not there"},
};

START_TEST(a_broken_rule_of_several_memories_is_named) {
  char *text = judge_edited(deep, broken_deep[_i].find, broken_deep[_i].replace);
  planc_plan *plan = make(text);
  judge_expect(plan, PLANC_INVALID_PLAN, broken_deep[_i].message, broken_deep[_i].find);
  planc_plan_free(plan);
  free(text);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, set_up, tear_down);
  tcase_add_test(all, the_plan_is_valid);
  tcase_add_loop_test(all, a_broken_rule_is_named, 0, (int)(sizeof broken / sizeof *broken));
  tcase_add_test(all, data_may_pass_through_any_memory);
  tcase_add_loop_test(all, a_broken_rule_of_several_memories_is_named, 0, sizeof broken_deep / sizeof *broken_deep);
  Suite *suite = suite_create("check_parked");
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
