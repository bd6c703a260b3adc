/* The checker on what lives on the host between periods: a hand-made plan, and its rules broken once each. */
#include <check.h>
#include <stdlib.h>

#include "planc/check.h"
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

/* w is at home at host 0 and is trained; c, at home at host 256, never changes. Both pass through device 0.
 * Residencies: w 0, c 1, x 2, w 3, c 4, loss 5, g 6. Events: 0-2 and 9-11 on the way through, 3 compute, 4 w, c and x
 * are there, 5 f, 6 w is home, 7 the loss is out, 8 c has been read. */
static const char script[] =
    "home w 0\n"
    "home c 256\n"
    "prologue\n"
    "acquire 0 w 0\n"
    "prefetch 0 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 2\n"
    "offload 0 0 on 2\n"
    "release 0\n"
    "record 1 on 2\n"
    "wait 1 on 1\n"
    "acquire 1 c 0\n"
    "prefetch 1 user on 1\n"
    "record 2 on 1\n"
    "wait 2 on 2\n"
    "offload 1 256 on 2\n"
    "release 1\n"
    "record 6 on 2\n"
    "wait 6 on 0\n"
    "record 3 on 0\n"
    "body\n"
    "wait 3 lag 1 on 1\n"
    "wait 6 lag 1 on 1\n"
    "acquire 2 x 0\n"
    "prefetch 2 user on 1\n"
    "acquire 3 w 512\n"
    "prefetch 3 0 on 1\n"
    "acquire 4 c 256\n"
    "prefetch 4 256 on 1\n"
    "record 4 on 1\n"
    "wait 4 on 0\n"
    "wait 6 lag 1 on 0\n"
    "acquire 5 loss 768\n"
    "exec f use 2 3 4 5\n"
    "record 5 on 0\n"
    "wait 5 on 2\n"
    "offload 5 user on 2\n"
    "release 4\n"
    "acquire 6 g 1024\n"
    "exec b use 2 3 6\n"
    "exec up use 3 6\n"
    "record 3 on 0\n"
    "wait 3 on 2\n"
    "offload 3 0 on 2\n"
    "record 6 on 2\n"
    "release 2\n"
    "release 3\n"
    "release 5\n"
    "release 6\n"
    "epilogue\n"
    "wait 6 lag 1 on 1\n"
    "acquire 0 w 0\n"
    "prefetch 0 0 on 1\n"
    "record 7 on 1\n"
    "wait 7 on 2\n"
    "offload 0 user on 2\n"
    "release 0\n"
    "acquire 1 c 256\n"
    "prefetch 1 256 on 1\n"
    "record 8 on 1\n"
    "wait 8 on 2\n"
    "offload 1 user on 2\n"
    "release 1\n";

enum { ARENA = 1280, HOST = 512 };

static planc_graph *graph;

static void set_up(void) {
  graph = judge_graph(tiny);
}

static void tear_down(void) {
  planc_graph_free(graph);
}

static planc_plan *make(const char *text) {
  return judge_plan(graph, text, ARENA, HOST);
}

START_TEST(the_plan_is_valid) {
  planc_plan *plan = make(script);
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.touched_bytes, ARENA);
  ck_assert_int_eq(report.host_touched_bytes, HOST);
  judge_expect(plan, PLANC_OK, "ok", "from text");
  planc_plan_free(plan);
}
END_TEST

static const struct {
  const char *find, *replace, *message;
} broken[] = {
    /* Where the boundary says it is. */
    {"home w 0\n", "boundary w 0\n", "only what is at home goes to the host in the prologue"},
    {"home c 256\n", "home c 0\n", "prologue: at its end c is not at home at host address 0 in version 0"},
    {"home c 256\n", "home c 300\n", "boundary: row 1: host address 300 is not a multiple of 256"},
    {"home c 256\n", "home c 512\n", "prologue: at its end c is not at home at host address 512 in version 0"},
    {"acquire 0 w 0\n", "acquire 0 c 0\n", "acquire c: is not what row 0 of the boundary says"},
    /* The way there. */
    {"offload 0 0 on 2\n", "", "prologue: at its end w is not at home at host address 0 in version 0"},
    {"offload 0 0 on 2\n", "offload 0 user on 2\n", "nothing leaves for the user in the prologue"},
    {"prefetch 0 user on 1\n", "prefetch 0 0 on 1\n", "in the prologue copies come from the user only"},
    {"wait 0 on 2\n", "", "offload w: reads w, which prefetch at line"},
    {"wait 1 on 1\n", "", "prefetch c: writes c, whose bytes offload at line"},
    {"release 1\nrecord 6", "record 6", "prologue: at its end residency 1 of c is open at 0, which the boundary"},
    /* In the body. */
    {"prefetch 3 0 on 1\n", "prefetch 3 256 on 1\n", "prefetch w: host address 256 holds c"},
    {"prefetch 3 0 on 1\n", "", "exec f: reads w in residency 3, which holds nothing yet"},
    {"wait 3 lag 1 on 1\nwait 6 lag 1 on 1\n", "wait 3 lag 1 on 1\n", "prefetch w: reads its host slot, which offload"},
    {"offload 3 0 on 2\n", "", "body: at its end w is not at home at host address 0 in version 1"},
    {"offload 3 0 on 2\n", "offload 3 256 on 2\n", "body: at its end w is not at home at host address 0 in version 1"},
    {"exec up use 3 6\nrecord 3 on 0\nwait 3 on 2\noffload 3 0 on 2\n",
     "record 3 on 0\nwait 3 on 2\noffload 3 0 on 2\nrecord 9 on 2\nwait 9 on 0\nexec up use 3 6\n",
     "body: at its end w is not at home at host address 0 in version 1"},
    {"wait 3 on 2\noffload 3 0 on 2\n", "offload 3 0 on 2\n", "offload w: reads w, which exec at line"},
    {"release 3\n", "", "body: at its end residency 3 of w is open at 512, which the boundary does not say"},
    {"release 4\n", "", "body: at its end residency 4 of c is open at 256, which the boundary does not say"},
    /* The way back. */
    {"acquire 0 w 0\nprefetch 0 0 on 1\nrecord 7 on 1\nwait 7 on 2\noffload 0 user on 2\nrelease 0\n", "",
     "acquire c: residency 1 comes where 0 is due, of 2"},
    {"prefetch 0 0 on 1\nrecord 7", "prefetch 0 user on 1\nrecord 7", "nothing comes from the user in the epilogue"},
    {"wait 7 on 2\n", "", "offload w: reads w, which prefetch at line"},
    {"epilogue\nwait 6 lag 1 on 1\n", "epilogue\n", "prefetch w: reads its host slot, which offload at line"},
    {"offload 1 user on 2\n", "", "epilogue: c is never offloaded to the user"},
    {"offload 1 user on 2\nrelease 1\n", "offload 1 user on 2\n", "epilogue: it does not release residency 1 of c"},
};

START_TEST(a_broken_rule_is_named) {
  char *text = judge_edited(script, broken[_i].find, broken[_i].replace);
  planc_plan *plan = make(text);
  judge_expect(plan, PLANC_INVALID_PLAN, broken[_i].message, broken[_i].find);
  planc_plan_free(plan);
  free(text);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, set_up, tear_down);
  tcase_add_test(all, the_plan_is_valid);
  tcase_add_loop_test(all, a_broken_rule_is_named, 0, (int)(sizeof broken / sizeof *broken));
  Suite *suite = suite_create("check_home");
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
