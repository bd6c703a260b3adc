/* The checker on hand-made plans with replicas: what one may get of the others, and what orders it. The oracle that has
 * all replicas written out (unroll.h) must say the same of their order. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "tests/support/judge.h"
#include "tests/support/plan_tables.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "tests/support/unroll.h"

static const char pair[] =
    "planc-graph: 1\n"
    "name: pair\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  dw: grad f32[64]\n"
    "ops:\n"
    "  - {op: g, type: t.g, phase: backward, in: [x], out: [dw], flags: [accumulates]}\n"
    "  - {op: u, type: t.u, phase: optimizer, in: [w, dw], out: [w]}\n";

/* g#1 is the exchange, dw#1 what it gets of the others. Events: 0 the input is there, 1 the gradient is made, 2 it is
 * on the host, 3 the others' have come, 4 the optimizer has run, 5 the boundary is there. Streams 3 and 4 have nothing
 * to do. */
static const char exchange[] =
    "storage 0\n"
    "boundary w 0\n"
    "prologue\n"
    "acquire 0 w 0\n"
    "copy 0 user on 1\n"
    "record 5 on 1\n"
    "wait 5 on 0\n"
    "record 3 on 1\n"
    "record 4 on 0\n"
    "body\n"
    "wait 4 lag 1 on 1\n"
    "acquire 1 x 256\n"
    "copy 1 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "acquire 2 dw#0 512\n"
    "exec g#0 use 1 2\n"
    "record 1 on 0\n"
    "wait 1 on 2\n"
    "acquire 3 dw#0 0 host\n"
    "wait 3 lag 1 peers on 2\n"
    "copy 3 2 on 2\n"
    "record 2 on 2\n"
    "acquire 4 dw#1 768\n"
    "wait 2 peers on 1\n"
    "copy 4 3 peers on 1\n"
    "record 3 on 1\n"
    "wait 3 on 0\n"
    "wait 2 on 0\n"
    "exec g#1 use 2 4\n"
    "exec u use 0 2\n"
    "record 4 on 0\n"
    "release 1\n"
    "release 2\n"
    "release 3\n"
    "release 4\n"
    "epilogue\n"
    "wait 4 lag 1 on 2\n"
    "copy user 0 on 2\n"
    "release 0\n";

enum { ARENA = 1536, HOST_ARENA = 512, MOST_BODIES = 3 };

static planc_graph *graph;

static void set_up(void) {
  graph = judge_graph(pair);
}
static void tear_down(void) {
  planc_graph_free(graph);
}

static planc_plan *make_plan(const char *script, int32_t replicas) {
  static const int64_t rounds[] = {2};
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = rounds, .iterations = 1, .replicas = replicas};
  planc_plan *plan;
  ok(script_make(script, &job, 1, ARENA, HOST_ARENA, &plan));
  return plan;
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

/* Whether any run of none to three bodies by all replicas has two accesses that nothing orders. */
static bool races(const planc_plan *plan) {
  planc_trace *trace;
  bool found = false;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  for (int32_t bodies = 0; bodies <= MOST_BODIES && !found; bodies++) {
    unrolled u;
    int64_t pair_found[2];
    unroll(plan, trace, bodies, &u);
    ck_assert_int_eq(unrolled_order(&u, NULL), -1);
    found = unrolled_race(&u, pair_found);
    unrolled_free(&u);
  }
  planc_trace_free(trace);
  return found;
}

/* Up to three edits of the script, and what the checker says with two replicas and with more; NULL: it is right. */
typedef struct ordering {
  const char *edits[3][2];
  const char *of_two, *of_more;
} ordering;

#define BOTH(message) message, message
static const ordering orderings[] = {
    {{{NULL}}, BOTH(NULL)},
    /* The others' gradients are read when they have sent them. */
    {{{"wait 2 peers on 1\n", ""}},
     BOTH("prefetch the other replicas' dw: reads dw of another replica, which offload at line 50 on stream d2h may "
          "still be writing")},
    {{{"wait 2 peers on 1\n", "wait 2 on 1\n"}}, BOTH("reads dw of another replica, which offload at line")},
    {{{"copy 3 2 on 2\nrecord 2 on 2\n", "record 2 on 2\ncopy 3 2 on 2\n"}},
     BOTH("reads dw of another replica, which offload at line")},
    /* The next body sends when they have been read. */
    {{{"wait 3 lag 1 peers on 2\n", ""}},
     BOTH("offload dw: writes dw, whose bytes prefetch at line 53 of the body before on stream h2d of another replica "
          "may still be reading")},
    {{{"wait 3 lag 1 peers on 2\n", "wait 3 lag 1 on 2\n"}},
     BOTH("of the body before on stream h2d of another replica may still be reading")},
    {{{"wait 3 lag 1 peers on 2\n", ""},
      {"wait 3 on 0\n", "wait 3 on 0\nwait 3 peers on 0\n"},
      {"wait 1 on 2\n", "wait 4 lag 1 on 2\nwait 1 on 2\n"}},
     BOTH(NULL)},
    {{{"wait 3 lag 1 peers on 2\n", "wait 4 lag 1 peers on 2\n"}}, BOTH(NULL)},
    /* So does whoever takes the bytes, in the same body too. */
    {{{"release 3\n", ""},
      {"wait 3 on 0\n", "release 3\nacquire 5 x 0 host\nwait 3 on 2\ncopy 5 1 on 2\nwait 3 on 0\n"},
      {"wait 2 on 0\n", "wait 2 on 0\nrecord 6 on 2\nwait 6 on 1\nrecord 7 on 1\nwait 7 on 0\nrelease 5\n"}},
     BOTH("offload x: writes x, whose bytes prefetch at line 54 on stream h2d of another replica may still be "
          "reading")},
    {{{"release 3\n", ""},
      {"wait 3 on 0\n", "release 3\nacquire 5 x 0 host\nwait 3 peers on 2\ncopy 5 1 on 2\nwait 3 on 0\n"},
      {"wait 2 on 0\n", "wait 2 on 0\nrecord 6 on 2\nwait 6 on 1\nrecord 7 on 1\nwait 7 on 0\nrelease 5\n"}},
     BOTH(NULL)},
    /* What we have done the others may tell us: theirs have read behind the end of ours. */
    {{{"wait 2 on 0\n", ""}}, BOTH("exec the exchange of g: writes dw, whose bytes offload at line")},
    {{{"wait 2 on 0\n", "wait 3 peers on 0\n"}}, BOTH(NULL)},
    /* Of a third one another tells; of itself it does not say here. */
    {{{"wait 3 on 0\n", "wait 3 peers on 3\nrecord 6 on 3\nwait 3 on 0\n"},
      {"wait 3 lag 1 peers on 2\n", "wait 6 lag 1 peers on 2\n"},
      {"record 3 on 1\n", "record 3 on 1\nrecord 6 on 3\n"}},
     "of the body before on stream h2d of another replica may still be reading",
     NULL},
};

static planc_plan *make_edited(const char *const (*edits)[2], int n, int32_t replicas) {
  char *script = judge_edited(exchange, "", "");
  for (int e = 0; e < n && edits[e][0]; e++) {
    char *edited = judge_edited(script, edits[e][0], edits[e][1]);
    free(script);
    script = edited;
  }
  planc_plan *plan = make_plan(script, replicas);
  free(script);
  return plan;
}

START_TEST(order_is_found_among_all) {
  const ordering *at = &orderings[_i];
  for (int32_t replicas = 2; replicas <= 4; replicas++) {
    const char *message = replicas == 2 ? at->of_two : at->of_more;
    planc_plan *plan = make_edited(at->edits, 3, replicas);
    judge_expect(plan, message ? PLANC_INVALID_PLAN : PLANC_OK, message ? message : "ok", at->edits[0][1]);
    ck_assert_int_eq(races(plan), message != NULL);
    planc_plan_free(plan);
  }
}
END_TEST

/* --- What is copied ----------------------------------------------------------------------------------------------- */

static const struct {
  const char *edits[2][2];
  const char *message;
} broken[] = {
    {{{"copy 4 3 peers on 1\n", "copy 4 3 on 1\n"}}, "prefetch the other replicas' dw: residency 3 is of dw"},
    {{{"copy 4 3 peers on 1\n", "copy 4 user on 1\n"}}, "the other replicas' dw: is not a buffer that the user feeds"},
    {{{"copy 4 3 peers on 1\n", "copy user 3 peers on 2\n"}}, "copy dw: copies between peers and the user"},
    {{{"copy 4 3 peers on 1\n", "copy 4 user peers on 1\n"}}, "copies between peers and the user"},
    {{{"copy 4 3 peers on 1\n", "copy 4 3 peers on 2\n"}}, "stream 2 does not copy from the host to device 0"},
    {{{"copy 4 3 peers on 1\n", "copy 4 4 peers on 1\n"}}, "copies residency 4 to itself"},
    {{{"copy 4 3 peers on 1\n", "copy 4 3 peers on 1 bytes 512\n"}}, "says 512 bytes, but dw has 256"},
    {{{"copy 4 3 peers on 1\n", "copy 1 3 peers on 1\n"}}, "prefetch x: is not what dw of other replicas goes to"},
    {{{"copy 4 3 peers on 1\n", "copy 2 3 peers on 1\n"}}, "prefetch dw: is not what dw of other replicas goes to"},
    {{{"acquire 3 dw#0 0 host\n", "acquire 3 x 0 host\n"}, {"copy 3 2 on 2\n", "copy 3 1 on 2\n"}},
     "prefetch the other replicas' dw: is not what x of other replicas goes to"},
    {{{"copy 4 3 peers on 1\n", "copy 4 2 peers on 0\n"}}, "gets dw out of memory 0, which is another replica's own"},
    {{{"copy 3 2 on 2\n", ""}}, "residency 3 holds nothing yet"},
    {{{"exec u use 0 2\n",
       "record 6 on 0\nwait 6 on 2\nwait 3 peers on 2\ncopy 3 2 on 2\nrecord 7 on 2\nwait 7 peers on 1\n"
       "copy 4 3 peers on 1\nexec u use 0 2\n"}},
     "prefetch the other replicas' dw: gets version 2 of dw, not what is sent, version 1"},
    {{{"copy 4 3 peers on 1\n", ""}}, "exec the exchange of g: reads the other replicas' dw in residency 4, which"},
    {{{"wait 2 peers on 1\n", "wait 3 peers on 1\n"}}, "wait event 3: nothing before this line records it"},
    {{{"wait 2 peers on 1\n", "wait 2 peers on 1\nwait 2 lag 1 peers on 1\n"}},
     "a wait with lag 1 must stand before the record of the same body"},
    {{{"record 3 on 1\n", ""}}, "wait event 3: the prologue does not record it"},
};

START_TEST(what_is_copied_is_what_the_exchange_adds) {
  planc_plan *plan = make_edited(broken[_i].edits, 2, 2);
  judge_expect(plan, PLANC_INVALID_PLAN, broken[_i].message, broken[_i].edits[0][1]);
  planc_plan_free(plan);
}
END_TEST

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

/* The others' part is as large as there are others, which each have as much of host and storage. */
START_TEST(budgets_are_for_all_replicas) {
  for (int32_t replicas = 2; replicas <= 4; replicas++) {
    planc_plan *plan = make_plan(exchange, replicas);
    planc_memory *device = &plan->memories[tables_memory(plan, PLANC_MEMORY_DEVICE)];
    planc_memory *host = &plan->memories[tables_memory(plan, PLANC_MEMORY_HOST)];
    planc_memory *storage = &plan->memories[tables_memory(plan, PLANC_MEMORY_STORAGE)];
    planc_check_report report;
    host->reserved_bytes = 100;
    storage->arena_bytes = 1024;
    device->budget_bytes = device->arena_bytes;
    host->budget_bytes = replicas * HOST_ARENA + 100;
    storage->budget_bytes = replicas * INT64_C(1024);
    ok(planc_check(plan, NULL, &report));
    ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_DEVICE], ARENA);
    ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_HOST], replicas * HOST_ARENA + 100);
    ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_STORAGE], replicas * INT64_C(1024));
    ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_DEVICE], 768 + (replicas - 1) * 256);
    ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_HOST], 256);
    host->budget_bytes--;
    judge_expect(plan, PLANC_INFEASIBLE, "host needs ", "the host");
    host->budget_bytes = -1;
    storage->budget_bytes--;
    judge_expect(plan, PLANC_INFEASIBLE, "storage needs ", "storage");
    planc_check_options enough = {.budgets = {-1, -1, 4096}};
    ok(planc_check(plan, &enough, NULL));
    planc_plan_free(plan);
  }
}
END_TEST

/* A plan for another number of replicas is none: it has not the room for their gradients. */
START_TEST(the_number_of_replicas_is_part_of_the_plan) {
  static const int32_t others[] = {0, 3, 4, PLANC_PLAN_MAX_REPLICAS, PLANC_PLAN_MAX_REPLICAS + 1, INT32_MAX};
  static const char *const messages[] = {
      "there is not is not persistent", "has 512", "has 768", "has 1048320", "4097 replicas, at most 4096 are allowed",
      "at most 4096 are allowed"};
  for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
    planc_plan *plan = make_plan(exchange, 2);
    ((planc_job *)plan->jobs)[0].replicas = others[k];
    judge_expect(plan, PLANC_INVALID_PLAN, messages[k], "another number");
    planc_plan_free(plan);
  }
}
END_TEST

/* Exchanges are counted before they are made. */
START_TEST(exchanges_are_instances) {
  planc_plan *plan = make_plan(exchange, 2);
  ((planc_job *)plan->jobs)[0].iterations = 2;
  judge_expect(plan, PLANC_INVALID_PLAN, "the jobs have at least 6 instances and 12 accesses", "two iterations");
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check_replicas");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, order_is_found_among_all, 0, sizeof orderings / sizeof *orderings);
  tcase_add_loop_test(cases, what_is_copied_is_what_the_exchange_adds, 0, sizeof broken / sizeof *broken);
  tcase_add_test(cases, budgets_are_for_all_replicas);
  tcase_add_test(cases, exchanges_are_instances);
  tcase_add_test(cases, the_number_of_replicas_is_part_of_the_plan);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
