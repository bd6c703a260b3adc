/* The checker: a hand-made plan that uses everything a plan can, and every rule of its instructions broken once. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/tiny_plan.h"
#include "tests/support/unit.h"

static planc_graph *graph;
static void set_up(void) {
  graph = judge_graph(tiny_graph);
}

static void tear_down(void) {
  planc_graph_free(graph);
}

START_TEST(the_plan_is_valid) {
  planc_plan *plan = tiny_plan(graph, tiny_script);
  planc_check_report report;
  plan->memories[DEVICE].reserved_bytes = 1000;
  plan->memories[DEVICE].budget_bytes = TINY_ARENA + 1000;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_DEVICE], TINY_ARENA + 1000);
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_HOST], TINY_HOST_ARENA);
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_DEVICE], 3072 + 512);
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_HOST], 256);
  ck_assert_int_eq(report.instances, 6);
  ck_assert_int_eq(report.instructions, 62);
  ck_assert_int_eq(report.recomputed, 1);
  judge_expect(plan, PLANC_OK, "ok", "from text");
  planc_plan_free(plan);
}
END_TEST

/* --- Every rule broken once --------------------------------------------------------------------------------------- */

static const struct {
  const char *find, *replace, *message;
} broken[] = {
    /* There are no others. */
    {"wait 1 lag 1 on 1\n", "wait 1 lag 1 peers on 1\n",
     "line 45: wait event 1: waits for peers, but the plan has no other replicas"},
    {"copy 8 4 on 1\n", "copy 8 4 peers on 1\n", "prefetch y: copies from peers, but the plan has no other replicas"},
    /* Races: an order taken away, or bytes used too early. */
    {"wait 2 on 0\n", "", "exec f1: reads x, which prefetch at line 46 on stream h2d may still be writing"},
    {"wait 3 on 2\n", "", "offload y: reads y, which exec at line 50 on stream compute may still be writing"},
    {"wait 5 on 2\n", "", "offload loss: reads loss, which exec at line 60 on stream compute may still be writing"},
    {"wait 1 lag 1 on 1\n", "",
     "line 45: prefetch x: writes x, whose bytes exec at line 77 of the body before on stream compute may still be "
     "reading"},
    {"wait 4 on 0\n", "", "exec f1: writes y, whose bytes offload at line 54 on stream d2h may still be reading"},
    {"wait 7 on 1\n", "", "prefetch y: writes y, whose bytes exec at line 57 on stream compute may still be writing"},
    {"wait 4 on 1\n", "", "prefetch y: reads y, which offload at line 54 on stream d2h may still be writing"},
    {"wait 8 on 0\n", "", "move y: reads y, which prefetch at line 73 on stream h2d may still be writing"},
    {"wait 6 on 0\n", "",
     "line 60: exec f3: writes loss, whose bytes offload at line 63 of the body before on stream d2h may still be "
     "reading"},
    {"wait 1 lag 1 on 2\n", "", "offload w: reads w, which exec at line 87 on stream compute may still be writing"},
    {"exec b1 use 5 7\n", "exec b1 ws 1280 256 use 5 7\n", "exec b1: overlaps loss in residency 6"},
    {"release 6\nrecord 7 on 0\n", "release 6\nrecord 7 on 0\nacquire 8 y 1280\n",
     "acquire y: residency 8 comes where 9 is due"},
    {"acquire 10 y 2048\ncopy 10 8 on 0\nrelease 8\nacquire 11 g 1792\n",
     "acquire 10 y 2048\ncopy 10 8 on 0\nrelease 8\nacquire 11 g 1280\n",
     "exec b2: writes g, whose bytes offload at line 63 on stream d2h may still be reading"},
    {"acquire 9 y 768\nexec f1 re use 2 0 -1 9\n", "acquire 9 x 0 host\ncopy 9 2 on 2\n",
     "offload x: writes x, whose bytes prefetch at line 73 on stream h2d may still be reading"},

    /* Residencies. */
    {"acquire 3 y 768\n", "acquire 3 y 700\n", "acquire y: address 700 is not a multiple of 256"},
    {"acquire 3 y 768\n", "acquire 3 y 4096\n",
     "256 bytes from address 4096 on are not inside the arena of 4096 bytes"},
    {"acquire 3 y 768\n", "acquire 3 y -256\n", "256 bytes from address -256 on are not inside the arena"},
    {"acquire 3 y 768\n", "acquire 3 y 512\n", "acquire y: overlaps x in residency 2, which is open at 512"},
    {"acquire 3 y 768\n", "acquire 3 y 768 bytes 512\n", "acquire y: says 512 bytes, but y has 256"},
    {"acquire 3 y 768\n", "acquire 3 99 768\n", "acquire buffer 99, which there is not: the jobs have 8 buffers"},
    {"acquire 3 y 768\n", "acquire 4 y 768\n", "residency 4 comes where 3 is due"},
    {"release 3\n", "", "acquire y: overlaps y in residency 3, which is open at 768"},
    {"release 5\n", "release 5\nrelease 5\n", "release z: residency 5 is not open"},
    {"release 10\n", "",
     "body: at its end residency 10 of y is open at 2048 of memory 0, which the boundary does not say"},
    {"release 2\n", "release 2\nrelease 0\n", "body: at its end w is not there"},
    {"exec f2 use 3 5\nrelease 3\n", "release 3\nexec f2 use 3 5\n", "exec f2: residency 3 is not open"},

    /* Residencies in other memories: each has its own arena, and the same address is other bytes. */
    {"acquire 4 y 0 host\n", "acquire 4 y 0\n", "acquire y: overlaps w in residency 0, which is open at 0"},
    {"acquire 4 y 0 host\n", "acquire 4 y 512 host\n",
     "acquire y: 256 bytes from address 512 on are not inside the arena of 512 bytes"},
    {"acquire 4 y 0 host\n", "acquire 4 y 64 host\n", "acquire y: address 64 is not a multiple of 256"},
    {"acquire 4 y 0 host\n", "acquire 4 y -256 host\n", "acquire y: 256 bytes from address -256 on are not inside"},
    {"acquire 4 y 0 host\n", "acquire 4 y 0 user\n", "acquire y: memory 2 has no arena"},
    {"acquire 4 y 0 host\n", "acquire 4 y 0 in 3\n", "acquire y: memory 3 has no arena"},
    {"acquire 4 y 0 host\n", "acquire 4 y 0 in -1\n", "acquire y: memory -1 has no arena"},
    {"acquire 4 y 0 host\n", "acquire 4 y 0 host bytes 4\n", "acquire y: says 4 bytes, but y has 256"},
    {"acquire 5 z 1024\n", "acquire 5 z 0 host\n", "acquire z: overlaps y in residency 4, which is open at 0"},
    {"release 4\n", "", "body: at its end residency 4 of y is open at 0 of memory 1, which the boundary does not say"},
    {"copy 8 4 on 1\nrelease 4\n", "release 4\ncopy 8 4 on 1\n", "prefetch y: residency 4 is not open"},

    /* Exec. */
    {"exec f2 use 3 5\n", "", "exec f3: reads z in residency 5, which holds nothing yet"},
    {"exec f2 use 3 5\n", "exec f2 use 3 5\nexec f2 use 3 5\n", "exec f2: runs twice, and not to recompute"},
    {"exec up use 0 11\n", "", "body: exec up is missing"},
    {"exec f1 re use 2 0 -1 9\n", "exec f1 use 2 0 1 9\n", "exec f1: runs twice"},
    {"exec f1 re use 2 0 -1 9\n", "exec f1 re use 2 0 1 9\n", "exec f1: a recompute must skip the side effect on s"},
    {"exec f1 re use 2 0 -1 9\n", "exec b2 re use 7 9 -1\n", "exec b2: recomputes what has not run before"},
    {"exec up use 0 11\n", "exec up use 0 11\nexec up re use 0 11\n",
     "exec up: cannot be recomputed: it writes a persistent buffer, changes a gradient"},
    {"exec f1 ws 3072 512 use 2 0 1 3\n", "exec f1 use 2 0 -1 3\n", "exec f1: has no residency for s"},
    {"use 2 0 1 3\n", "use 2 0 1\n", "exec f1: names 3 residencies for its 4 accesses"},
    {"use 2 0 1 3\n", "use 2 0 1 3 3\n", "exec f1: names 5 residencies for its 4 accesses"},
    {"use 2 0 1 3\n", "use 0 2 1 3\n", "exec f1: wants x, but residency 0 is of w"},
    {"use 2 0 1 3\n", "use 2 0 1 77\n", "exec f1: residency 77 is not open"},
    {"exec f2 use 3 5\n", "exec f2 use 4 5\n", "exec f2: wants y, but residency 4 is in memory 1"},
    {"acquire 11 g 1792\n", "acquire 11 g 256 host\n", "exec b2: wants g, but residency 11 is in memory 1"},
    {"exec f1 ws 3072 512", "exec f1 ws 3072 2048", "2048 bytes from workspace address 3072 on are not inside"},
    {"exec f1 ws 3072 512", "exec f1 ws 3100 512", "workspace address 3100 is not a multiple of 256"},
    {"exec f1 ws 3072 512", "exec f1 ws 3072 0", "the workspace has an address but no bytes"},
    {"exec f1 ws 3072 512", "exec f1 ws 512 512", "exec f1: overlaps "},
    {"exec f2 use 3 5\n", "exec f2 on 1 use 3 5\n", "exec f2: stream 1 is not a compute stream"},
    {"exec f2 use 3 5\n", "exec f2 on 7 use 3 5\n", "exec f2: there is no stream 7"},
    {"exec f2 use 3 5\n", "exec 17 use 3 5\n", "the jobs have 6 instances"},
    {"exec b2 use 7 10 11\n", "exec f3 re use 5 6\nexec b2 use 7 10 11\n", "exec f3: residency 5 is not open"},
    {"acquire 2 x 512\n", "exec b1 use 5 7\nacquire 2 x 512\n", "exec b1: residency 5 is not open"},

    /* Copies: the way. */
    {"copy 2 user on 1\n", "copy 2 user on 2\n", "prefetch x: stream 2 does not copy from the user to device 0"},
    {"copy 2 user on 1\n", "copy 2 user on 0\n", "prefetch x: stream 0 does not copy from the user to device 0"},
    {"copy 2 user on 1\n", "copy 2 user on 7\n", "there is no stream 7"},
    {"copy 2 user on 1\n", "copy user user on 1\n", "copies from the user to the user"},
    {"copy 4 3 on 2\n", "copy 4 3 on 1\n", "offload y: stream 1 does not copy from device 0 to the host"},
    {"copy 4 3 on 2\n", "copy 4 3 on 0\n", "offload y: stream 0 does not copy from device 0 to the host"},
    {"copy user 6 on 2\n", "copy user 6 on 1\n", "offload loss: stream 1 does not copy from device 0 to the user"},
    {"copy 8 4 on 1\n", "copy 8 4 on 2\n", "prefetch y: stream 2 does not copy from the host to device 0"},
    {"copy 10 8 on 0\n", "copy 10 8 on 1\n", "move y: stream 1 does not compute in memory 0"},
    {"copy 8 4 on 1\n", "copy 8 4 on 1 takes 7\n", "prefetch y: says a time, but its link tells that"},
    {"acquire 5 z 1024\n", "acquire 5 y 256 host\ncopy 5 4 on 0\n", "move y: stream 0 does not compute in memory 1"},
    {"acquire 5 z 1024\n", "acquire 5 y 256 host\ncopy 5 4 on 2\n", "move y: stream 2 does not compute in memory 1"},

    /* Copies: the data. */
    {"copy 2 user on 1\n", "", "exec f1: reads x in residency 2, which holds nothing yet"},
    {"copy 2 user on 1\n", "copy 2 user on 1 bytes 128\n", "prefetch x: says 128 bytes, but x has 256"},
    {"copy 2 user on 1\n", "copy 2 4 on 1\n", "prefetch x: residency 4 is not open"},
    {"copy 8 4 on 1\n", "copy 8 user on 1\n", "prefetch y: is not a buffer that the user feeds"},
    {"copy 4 3 on 2\n", "copy user 3 on 2\n", "offload y: is not a result that leaves for the user"},
    {"copy 4 3 on 2\n", "", "prefetch y: residency 4 holds nothing yet"},
    {"copy 4 3 on 2\n", "copy 4 2 on 2\n", "offload y: residency 2 is of x"},
    {"copy 4 3 on 2\n", "copy 4 5 on 2\n", "offload y: residency 5 is not open"},
    {"copy 4 3 on 2\n", "copy 5 3 on 2\n", "move residency 5: residency 5 is not open"},
    {"copy 4 3 on 2\n", "copy 77 3 on 2\n", "offload residency 77: residency 77 is not open"},
    {"copy 4 3 on 2\n", "copy 4 -2 on 2\n", "copy y: residency -2 is not open"},
    {"copy 4 3 on 2\n", "copy 4 3 on 2 bytes 4\n", "offload y: says 4 bytes, but y has 256"},
    {"acquire 4 y 0 host\ncopy 4 3 on 2\nrecord 4 on 2\nacquire 5 z 1024\n",
     "acquire 4 z 0 host\nrecord 4 on 2\nacquire 5 z 1024\ncopy 4 5 on 2\n",
     "offload z: residency 5 holds nothing yet"},
    {"copy user 6 on 2\n", "", "body: result loss is never offloaded to the user"},
    {"copy user 6 on 2\n", "copy user 6 on 2\ncopy user 6 on 2\n", "offload loss: leaves twice"},
    {"copy user 6 on 2\n", "copy user 6 on 2 bytes 8\n", "offload loss: says 8 bytes, but loss has 4"},
    {"copy 10 8 on 0\n", "", "exec b2: reads y in residency 10, which holds nothing yet"},
    {"copy 10 8 on 0\n", "copy 10 7 on 0\n", "move y: residency 7 is of dy"},
    {"copy 10 8 on 0\n", "copy 10 10 on 0\n", "move y: copies residency 10 to itself"},
    {"copy 10 8 on 0\n", "copy 8 10 on 0\n", "move y: residency 10 holds nothing yet"},
    {"copy 10 8 on 0\n", "copy 10 8 on 0 bytes 4\n", "move y: says 4 bytes, but y has 256"},

    /* Events. */
    {"wait 8 on 0\n", "wait 9 on 0\n", "wait event 9: nothing before this line records it"},
    {"record 8 on 1\n", "", "wait event 8: nothing before this line records it"},
    {"record 8 on 1\n", "record 7 on 1\n", "record event 7: is recorded twice"},
    {"record 0 on 1\n", "record 0 on 1\nrecord 8 on 0\n",
     "event 8: is recorded on stream 1 here and on stream 0 before"},
    {"wait 2 on 0\n", "wait 2 lag 1 on 0\n", "a wait with lag 1 must stand before the record of the same body"},
    {"wait 1 lag 1 on 1\n", "wait 1 lag 0 on 1\n", "wait event 1: nothing before this line records it"},
    {"wait 1 lag 1 on 1\n", "wait 6 lag 1 on 1\n",
     "wait event 6: the prologue does not record it, as the body before would"},
    {"exec up use 0 11\nrecord 1 on 0\n", "exec up use 0 11\n", "wait event 1: the body before does not record it"},
    {"wait 0 on 0\n", "wait 0 lag 1 on 0\n", "wait event 0: a wait with lag 1 must stand before the record"},
    {"wait 2 on 0\n", "wait 2 lag 2 on 0\n", "a lag is 0 or 1"},

    /* Prologue, boundary, epilogue. */
    {"boundary s 256\n", "", "boundary: s persists and is not there"},
    {"boundary s 256\n", "boundary y 256\n", "boundary: row 1: y is not persistent or stands twice"},
    {"boundary s 256\n", "boundary w 256\n", "boundary: row 1: w is not persistent or stands twice"},
    {"boundary s 256\n", "boundary s 512\n", "acquire s: is not what row 1 of the boundary says"},
    {"boundary s 256\n", "boundary s 256 host\n", "acquire s: is not what row 1 of the boundary says"},
    {"acquire 1 s 256\n", "acquire 1 s 256\nacquire 2 x 512\n", "residency 2 comes where 2 is due, of 2"},
    {"copy 1 user on 1\n", "", "prologue: at its end s is there in version -1 instead of 0"},
    {"copy 1 user on 1\n", "copy 1 0 on 0\n", "move s: prologue and epilogue copy from and to the user only"},
    {"copy 1 user on 1\n", "copy user 0 on 2\n", "offload w: nothing leaves for the user in the prologue"},
    {"record 0 on 1\n", "record 0 on 1\nexec f1 use 0\n", "exec f1: must not stand in the prologue"},
    {"record 0 on 1\n", "record 0 on 1\nrelease 0\n", "prologue: at its end w is not there"},
    {"copy user 1 on 2\n", "", "epilogue: s is never offloaded to the user"},
    {"copy user 1 on 2\n", "copy 1 0 on 0\n", "move s: prologue and epilogue copy from and to the user only"},
    {"copy user 1 on 2\n", "copy user 1 on 2\ncopy user 1 on 2\n", "offload s: leaves twice"},
    {"copy user 1 on 2\n", "copy user 1 on 2\nexec f1 use\n", "exec f1: must not stand in the epilogue"},
    {"release 1\n", "", "epilogue: it does not release residency 1 of s"},
    {"release 1\n", "release 1\nacquire 1 s 256\n", "acquire s: must not stand in the epilogue"},
    {"copy user 0 on 2\ncopy", "copy 0 user on 1\ncopy", "prefetch w: nothing comes from the user in the epilogue"},
    {"release 2\n", "release 2\ncopy user 0 on 2\n", "offload w: is not a result that leaves for the user"},
    {"acquire 2 x 512\n", "acquire 2 x 512\ncopy 0 user on 1\n", "prefetch w: is not a buffer that the user feeds"},
};

START_TEST(a_broken_rule_is_named) {
  char *text = judge_edited(tiny_script, broken[_i].find, broken[_i].replace);
  planc_plan *plan = tiny_plan(graph, text);
  judge_expect(plan, PLANC_INVALID_PLAN, broken[_i].message, broken[_i].find);
  planc_plan_free(plan);
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_test(cases, the_plan_is_valid);
  tcase_add_loop_test(cases, a_broken_rule_is_named, 0, sizeof broken / sizeof *broken);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
