/* The checker: a hand-made plan that uses everything a plan can, and every rule broken once. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "tests/support/judge.h"
#include "tests/support/unit.h"

/* --- The plan ----------------------------------------------------------------------------------------------------- */

/* At batch 2 every storage has 256 bytes, the loss 4. */
static const char tiny[] =
    "planc-graph: 1\n"
    "name: tiny\n"
    "loss: loss\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  s: state f32[64]\n"
    "  y: f32[N,32]\n"
    "  z: f32[N,32]\n"
    "  loss: f32[]\n"
    "  dy: f32[N,32]\n"
    "  g: grad f32[64]\n"
    "ops:\n"
    "  - {op: f1, type: t.make, in: [x, w], out: [y], effects: [s]}\n"
    "  - {op: f2, type: t.make, in: [y], out: [z]}\n"
    "  - {op: f3, type: t.make, in: [z], out: [loss]}\n"
    "  - {op: b1, type: t.make, phase: backward, in: [z], out: [dy]}\n"
    "  - {op: b2, type: t.make, phase: backward, in: [dy, y], out: [g]}\n"
    "  - {op: up, type: t.make, phase: optimizer, in: [w, g], out: [w]}\n";

/* y leaves for the host after f1 and comes back for b2; f1 is run again in between, and y is moved. Residencies: w 0,
 * s 1, x 2, y 3, z 4, loss 5, dy 6, y back 7, y again 8, y moved 9, g 10. Events: 0 the prologue's copies, 1 the end of
 * compute, 2 x is there, 3 f1, 4 y is on the host, 5 f3, 6 the loss is out, 7 b1, 8 y is back. */
static const char script[] =
    "boundary w 0\n"
    "boundary s 256\n"
    "prologue\n"
    "acquire 0 w 0\n"
    "acquire 1 s 256\n"
    "prefetch 0 user on 1\n"
    "prefetch 1 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "wait 0 on 2\n"
    "record 1 on 0\n"
    "body\n"
    "acquire 2 x 512\n"
    "wait 1 lag 1 on 1\n"
    "prefetch 2 user on 1\n"
    "record 2 on 1\n"
    "wait 2 on 0\n"
    "acquire 3 y 768\n"
    "exec f1 ws 3072 512 use 2 0 1 3\n"
    "record 3 on 0\n"
    "wait 3 on 2\n"
    "offload 3 0 on 2\n"
    "record 4 on 2\n"
    "acquire 4 z 1024\n"
    "exec f2 use 3 4\n"
    "release 3\n"
    "acquire 5 loss 1280\n"
    "exec f3 use 4 5\n"
    "record 5 on 0\n"
    "wait 5 on 2\n"
    "offload 5 user on 2\n"
    "record 6 on 2\n"
    "acquire 6 dy 1536\n"
    "exec b1 use 4 6\n"
    "release 4\n"
    "release 5\n"
    "record 7 on 0\n"
    "acquire 7 y 1024\n"
    "wait 7 on 1\n"
    "wait 4 on 1\n"
    "prefetch 7 0 on 1\n"
    "record 8 on 1\n"
    "wait 4 on 0\n"
    "acquire 8 y 768\n"
    "exec f1 re use 2 0 -1 8\n"
    "release 8\n"
    "wait 8 on 0\n"
    "acquire 9 y 2048\n"
    "move 9 7 on 0\n"
    "release 7\n"
    "acquire 10 g 1792\n"
    "exec b2 use 6 9 10\n"
    "wait 6 on 0\n"
    "exec up use 0 10\n"
    "record 1 on 0\n"
    "release 2\n"
    "release 6\n"
    "release 9\n"
    "release 10\n"
    "epilogue\n"
    "wait 1 lag 1 on 2\n"
    "offload 0 user on 2\n"
    "offload 1 user on 2\n"
    "release 0\n"
    "release 1\n";

enum { ARENA = 4096, HOST = 256 };

static planc_graph *graph;
static const int64_t two_rounds[] = {2, 2};

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
  plan->device.reserved_bytes = 1000;
  plan->predicted.peak_bytes = plan->budget_bytes = ARENA + 1000;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.peak_bytes, ARENA + 1000);
  ck_assert_int_eq(report.host_peak_bytes, HOST);
  ck_assert_int_eq(report.touched_bytes, 3072 + 512);
  ck_assert_int_eq(report.host_touched_bytes, 256);
  ck_assert_int_eq(report.instances, 6);
  ck_assert_int_eq(report.instructions, 60);
  ck_assert_int_eq(report.recomputed, 1);
  judge_expect(plan, PLANC_OK, "ok", "from text");
  planc_plan_free(plan);
}
END_TEST

/* --- Every rule broken once --------------------------------------------------------------------------------------- */

static const struct {
  const char *find, *replace, *message;
} broken[] = {
    /* Races: an order taken away, or bytes used too early. */
    {"wait 2 on 0\n", "", "exec f1: reads x, which prefetch at line 37 on stream h2d may still be writing"},
    {"wait 3 on 2\n", "", "offload y: reads y, which exec at line 41 on stream compute may still be writing"},
    {"wait 5 on 2\n", "", "offload loss: reads loss, which exec at line 50 on stream compute may still be writing"},
    {"wait 1 lag 1 on 1\n", "",
     "line 36: prefetch x: writes x, whose bytes exec at line 66 of the body before on stream compute may still be "
     "reading"},
    {"wait 4 on 0\n", "", "exec f1: writes y, whose bytes offload at line 44 on stream d2h may still be reading"},
    {"wait 7 on 1\n", "", "prefetch y: writes y, whose bytes exec at line 47 on stream compute may still be writing"},
    {"wait 4 on 1\n", "",
     "prefetch y: reads its host slot, which offload at line 44 on stream d2h may still be writing"},
    {"wait 8 on 0\n", "", "move y: reads y, which prefetch at line 63 on stream h2d may still be writing"},
    {"wait 6 on 0\n", "",
     "line 50: exec f3: writes loss, whose bytes offload at line 53 of the body before on stream d2h may still be "
     "reading"},
    {"wait 1 lag 1 on 2\n", "", "offload w: reads w, which exec at line 76 on stream compute may still be writing"},
    {"exec b1 use 4 6\n", "exec b1 ws 1280 256 use 4 6\n", "exec b1: overlaps loss in residency 5"},
    {"release 5\nrecord 7 on 0\n", "release 5\nrecord 7 on 0\nacquire 7 y 1280\n",
     "acquire y: residency 7 comes where 8 is due"},
    {"acquire 9 y 2048\nmove 9 7 on 0\nrelease 7\nacquire 10 g 1792\n",
     "acquire 9 y 2048\nmove 9 7 on 0\nrelease 7\nacquire 10 g 1280\n",
     "exec b2: writes g, whose bytes offload at line 53 on stream d2h may still be reading"},

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
    {"release 4\n", "release 4\nrelease 4\n", "release z: residency 4 is not open"},
    {"release 9\n", "", "body: at its end residency 9 of y is open at 2048, which the boundary does not say"},
    {"release 2\n", "release 2\nrelease 0\n", "body: at its end w is not resident"},
    {"exec f2 use 3 4\nrelease 3\n", "release 3\nexec f2 use 3 4\n", "exec f2: residency 3 is not open"},

    /* Exec. */
    {"exec f2 use 3 4\n", "", "exec f3: reads z in residency 4, which holds nothing yet"},
    {"exec f2 use 3 4\n", "exec f2 use 3 4\nexec f2 use 3 4\n", "exec f2: runs twice, and not to recompute"},
    {"exec up use 0 10\n", "", "body: exec up is missing"},
    {"exec f1 re use 2 0 -1 8\n", "exec f1 use 2 0 1 8\n", "exec f1: runs twice"},
    {"exec f1 re use 2 0 -1 8\n", "exec f1 re use 2 0 1 8\n", "exec f1: a recompute must skip the side effect on s"},
    {"exec f1 re use 2 0 -1 8\n", "exec b2 re use 6 8 -1\n", "exec b2: recomputes what has not run before"},
    {"exec up use 0 10\n", "exec up use 0 10\nexec up re use 0 10\n",
     "exec up: cannot be recomputed: it updates a persistent buffer or a gradient"},
    {"exec f1 ws 3072 512 use 2 0 1 3\n", "exec f1 use 2 0 -1 3\n", "exec f1: has no residency for s"},
    {"use 2 0 1 3\n", "use 2 0 1\n", "exec f1: names 3 residencies for its 4 accesses"},
    {"use 2 0 1 3\n", "use 2 0 1 3 3\n", "exec f1: names 5 residencies for its 4 accesses"},
    {"use 2 0 1 3\n", "use 0 2 1 3\n", "exec f1: wants x, but residency 0 is of w"},
    {"use 2 0 1 3\n", "use 2 0 1 77\n", "exec f1: residency 77 is not open"},
    {"exec f1 ws 3072 512", "exec f1 ws 3072 2048", "2048 bytes from workspace address 3072 on are not inside"},
    {"exec f1 ws 3072 512", "exec f1 ws 3100 512", "workspace address 3100 is not a multiple of 256"},
    {"exec f1 ws 3072 512", "exec f1 ws 3072 0", "the workspace has an address but no bytes"},
    {"exec f1 ws 3072 512", "exec f1 ws 512 512", "exec f1: overlaps "},
    {"exec f2 use 3 4\n", "exec f2 on 1 use 3 4\n", "exec f2: stream 1 is not a compute stream"},
    {"exec f2 use 3 4\n", "exec f2 on 7 use 3 4\n", "exec f2: there is no stream 7"},
    {"exec f2 use 3 4\n", "exec 17 use 3 4\n", "the jobs have 6 instances"},
    {"exec b2 use 6 9 10\n", "exec f3 re use 4 5\nexec b2 use 6 9 10\n", "exec f3: residency 4 is not open"},
    {"acquire 2 x 512\n", "exec b1 use 4 6\nacquire 2 x 512\n", "exec b1: residency 4 is not open"},

    /* Copies. */
    {"prefetch 2 user on 1\n", "", "exec f1: reads x in residency 2, which holds nothing yet"},
    {"prefetch 2 user on 1\n", "prefetch 2 user on 2\n", "prefetch x: stream 2 is not a host-to-device stream"},
    {"prefetch 2 user on 1\n", "prefetch 2 user on 1 bytes 128\n", "prefetch x: says 128 bytes, but x has 256"},
    {"prefetch 2 user on 1\n", "prefetch 2 0 on 1\n", "prefetch x: this body left no copy of it at host address 0"},
    {"prefetch 7 0 on 1\n", "prefetch 7 user on 1\n", "prefetch y: is not a buffer that the user feeds"},
    {"prefetch 7 0 on 1\n", "prefetch 7 256 on 1\n",
     "256 bytes from host address 256 on are not inside the arena of 256"},
    {"prefetch 7 0 on 1\n", "prefetch 7 64 on 1\n", "prefetch y: host address 64 is not a multiple of 256"},
    {"offload 3 0 on 2\n", "offload 3 0 on 1\n", "offload y: stream 1 is not a device-to-host stream"},
    {"offload 3 0 on 2\n", "offload 3 user on 2\n", "offload y: is not a result that leaves for the user"},
    {"offload 3 0 on 2\n", "", "prefetch y: this body left no copy of it at host address 0"},
    {"offload 3 0 on 2\n", "offload 2 0 on 2\n", "prefetch y: host address 0 holds x"},
    {"offload 3 0 on 2\n", "offload 4 0 on 2\n", "offload residency 4: residency 4 is not open"},
    {"offload 3 0 on 2\nrecord 4 on 2\nacquire 4 z 1024\n", "record 4 on 2\nacquire 4 z 1024\noffload 4 0 on 2\n",
     "offload z: residency 4 holds nothing yet"},
    {"offload 5 user on 2\n", "", "body: result loss is never offloaded to the user"},
    {"offload 5 user on 2\n", "offload 5 user on 2\noffload 5 user on 2\n", "offload loss: leaves twice"},
    {"move 9 7 on 0\n", "", "exec b2: reads y in residency 9, which holds nothing yet"},
    {"move 9 7 on 0\n", "move 9 6 on 0\n", "move y: residency 6 is not another one of the same buffer"},
    {"move 9 7 on 0\n", "move 9 9 on 0\n", "move y: residency 9 is not another one of the same buffer"},
    {"move 9 7 on 0\n", "move 9 7 on 1\n", "move y: stream 1 is not a compute stream"},
    {"move 9 7 on 0\n", "move 7 9 on 0\n", "move y: residency 9 holds nothing yet"},
    {"move 9 7 on 0\n", "move 9 7 on 0 bytes 4\n", "move y: says 4 bytes, but y has 256"},

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
    {"exec up use 0 10\nrecord 1 on 0\n", "exec up use 0 10\n", "wait event 1: the body before does not record it"},
    {"wait 0 on 0\n", "wait 0 lag 1 on 0\n", "wait event 0: a wait with lag 1 must stand before the record"},
    {"wait 2 on 0\n", "wait 2 lag 2 on 0\n", "a lag is 0 or 1"},

    /* Prologue, boundary, epilogue. */
    {"boundary s 256\n", "", "boundary: s persists and is not there"},
    {"boundary s 256\n", "boundary y 256\n", "boundary: row 1: y is not persistent or stands twice"},
    {"boundary s 256\n", "boundary w 256\n", "boundary: row 1: w is not persistent or stands twice"},
    {"boundary s 256\n", "boundary s 512\n", "acquire s: is not what row 1 of the boundary says"},
    {"acquire 1 s 256\n", "acquire 1 s 256\nacquire 2 x 512\n", "residency 2 comes where 2 is due, of 2"},
    {"prefetch 1 user on 1\n", "", "prologue: at its end s is resident in version -1 instead of 0"},
    {"prefetch 1 user on 1\n", "prefetch 1 0 on 1\n", "in the prologue copies come from the user only"},
    {"record 0 on 1\n", "record 0 on 1\nexec f1 use 0\n", "exec f1: must not stand in the prologue"},
    {"record 0 on 1\n", "record 0 on 1\nrelease 0\n", "prologue: at its end w is not resident"},
    {"offload 1 user on 2\n", "", "epilogue: s is never offloaded to the user"},
    {"offload 1 user on 2\n", "offload 1 0 on 2\n", "in the epilogue copies go to the user only"},
    {"offload 1 user on 2\n", "offload 1 user on 2\noffload 1 user on 2\n", "offload s: leaves twice"},
    {"release 1\n", "", "epilogue: it does not release residency 1 of s"},
    {"release 1\n", "release 1\nacquire 1 s 256\n", "acquire s: residency 1 comes where 2 is due, of 2"},
    {"offload 0 user on 2\noff", "prefetch 0 user on 1\noff",
     "prefetch w: nothing comes from the user in the epilogue"},
    {"release 2\n", "release 2\noffload 0 user on 2\n", "offload w: is not a result that leaves for the user"},
};

START_TEST(a_broken_rule_is_named) {
  char *text = judge_edited(script, broken[_i].find, broken[_i].replace);
  planc_plan *plan = make(text);
  judge_expect(plan, PLANC_INVALID_PLAN, broken[_i].message, broken[_i].find);
  planc_plan_free(plan);
  free(text);
}
END_TEST

START_TEST(budgets_are_checked_last_and_with_numbers) {
  planc_plan *plan = make(script);
  plan->device.reserved_bytes = 100;
  plan->predicted.peak_bytes = ARENA + 100;
  judge_expect(plan, PLANC_INFEASIBLE,
               "needs 4196 bytes on the device (arena 4096, reserved 100), the budget is 4096, 100 too few", "budget");
  planc_check_options options = {.budget_bytes = 4196, .host_budget_bytes = -1};
  ok(planc_check(plan, &options, NULL));
  options.host_budget_bytes = 255;
  planc_status status = planc_check(plan, &options, NULL);
  ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
  ck_assert_str_eq(planc_status_message(status),
                   "needs 256 bytes of pinned host memory, the host budget is 255, 1 too few");
  planc_status_free(status);
  planc_plan_free(plan);

  char *text = judge_edited(script, "release 9\n", "");
  plan = make(text);
  plan->budget_bytes = 1;
  judge_expect(plan, PLANC_INVALID_PLAN, "residency 9", "an invalid plan over budget is invalid");
  planc_plan_free(plan);
  free(text);
}
END_TEST

/* --- The header --------------------------------------------------------------------------------------------------- */

static void break_hash(planc_plan *plan) {
  plan->graph_hash ^= 1;
}
static void break_arena(planc_plan *plan) {
  plan->predicted.peak_bytes = plan->arena_bytes = 3072;
}
static void break_negative_arena(planc_plan *plan) {
  plan->arena_bytes = -1;
}
static void break_peak(planc_plan *plan) {
  plan->predicted.peak_bytes -= 1;
}
static void break_reserved(planc_plan *plan) {
  plan->device.reserved_bytes = 1;
}
static void break_host_peak(planc_plan *plan) {
  plan->predicted.host_peak_bytes = 0;
}
static void break_residencies(planc_plan *plan) {
  plan->n_residencies += 1;
}
static void break_residencies_short(planc_plan *plan) {
  plan->n_residencies -= 1;
}
static void break_events(planc_plan *plan) {
  plan->n_events -= 1;
}
static void break_events_long(planc_plan *plan) {
  plan->n_events = 1 << 30;
}
static void break_gpus(planc_plan *plan) {
  plan->gpus = 0;
}
static void break_jobs(planc_plan *plan) {
  plan->n_jobs = 0;
}
static void break_algorithms(planc_plan *plan) {
  plan->n_algorithms = 0;
}
/* A recompute with another algorithm restores other bits. */
static void break_recompute(planc_plan *plan) {
  static const char *const algorithms[] = {"one", "other"};
  plan->algorithms = algorithms;
  plan->n_algorithms = 2;
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].recompute) ((planc_instr *)plan->body.instrs)[i].aux = 1;
}
static void break_streams(planc_plan *plan) {
  static const planc_stream streams[] = {{.kind = PLANC_STREAM_KIND_compute}, {.job = 3}, {0}};
  plan->streams = streams;
}
static void break_batch(planc_plan *plan) {
  static planc_job job;
  job = plan->jobs[0];
  job.batch = 3;
  plan->jobs = &job;
}
static void break_rounds(planc_plan *plan) {
  static planc_job job;
  job = plan->jobs[0];
  job.n_rounds = 2;
  job.rounds = two_rounds;
  job.batch = 4;
  plan->jobs = &job;
}
/* A trace far beyond any memory must be refused before it is made. */
static void break_iterations(planc_plan *plan) {
  static planc_job job;
  job = plan->jobs[0];
  job.iterations = INT32_MAX;
  plan->jobs = &job;
}

static const struct {
  void (*change)(planc_plan *plan);
  const char *message;
} headers[] = {
    {break_hash, "the plan was made for a graph with hash"},
    {break_arena, "512 bytes from workspace address 3072 on are not inside the arena of 3072 bytes"},
    {break_peak, "line 3: predictions: a peak of 4095 bytes, but arena and reserved memory are 4096"},
    {break_reserved, "line 3: predictions: a peak of 4096 bytes, but arena and reserved memory are 4097"},
    {break_host_peak, "line 3: predictions: a host peak of 0 bytes, but the host arena has 256"},
    {break_negative_arena, "an arena or the reserved memory of -1 bytes"},
    {break_residencies, "body: it opens residencies up to 11, the header counts 12"},
    {break_residencies_short, "residency 10 comes where 10 is due, of 10"},
    {break_events, "there are 8 events"},
    {break_events_long, "the number of events is out of range"},
    {break_gpus, "the number of GPUs is out of range"},
    {break_jobs, "the number of jobs is out of range"},
    {break_algorithms, "exec f1: there is no algorithm 0"},
    {break_recompute, "exec f1: recomputes with algorithm other what ran with one"},
    {break_streams, "stream 1: no such job or GPU"},
    {break_batch, "jobs: the rounds have 2 samples, the batch 3"},
    {break_rounds, "the jobs have at least 11 instances and 28 accesses, the body has 47 instructions and 19 uses"},
    {break_iterations, "the jobs have at least 12884901882 instances"},
};

START_TEST(a_wrong_header_is_named) {
  planc_plan *plan = make(script);
  headers[_i].change(plan);
  judge_expect(plan, PLANC_INVALID_PLAN, headers[_i].message, headers[_i].message);
  planc_plan_free(plan);
}
END_TEST

/* --- Virtual memory ----------------------------------------------------------------------------------------------- */

enum { CHUNK = 256, CHUNKS = ARENA / CHUNK };

/* The plan with its chunks in another order in the arena. */
static planc_plan *make_mapped(planc_mapping mappings[CHUNKS]) {
  planc_plan *plan = make(script);
  for (int k = 0; k < CHUNKS; k++) mappings[k] = (planc_mapping){CHUNKS - 1 - k, 1};
  plan->chunk_bytes = CHUNK;
  plan->n_mappings = CHUNKS;
  plan->mappings = mappings;
  return plan;
}

START_TEST(chunks_may_lie_anywhere) {
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  judge_expect(plan, PLANC_OK, "ok", "backwards");
  /* What no instruction touches may be a second name of anything, and the arena smaller for it. */
  for (int k = 0; k < CHUNKS; k++) mappings[k] = (planc_mapping){k < 14 ? k : 0, 1};
  plan->arena_bytes = plan->predicted.peak_bytes = INT64_C(14) * CHUNK;
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.peak_bytes, INT64_C(14) * CHUNK);
  ck_assert_int_eq(report.touched_bytes, INT64_C(14) * CHUNK);
  planc_plan_free(plan);
}
END_TEST

/* Chunk `chunk` of the addresses, or (-1) all of them, is mapped to where `as` is. */
static const struct {
  int chunk, as;
  const char *message;
} broken_maps[] = {
    {3, 2, "acquire y: overlaps x in residency 2, which is open at 512"},
    {0, 1, "acquire s: overlaps w in residency 0, which is open at 0"},
    {13, 12, "exec f1: lies twice on the same bytes of the arena"},
    {12, 0, "exec f1: overlaps w in residency 0"},
    {8, 5, "move y: writes y, whose bytes offload at line 69"}, /* the loss is released, but nobody has waited for its
                                                                   copy to the user */
    {4, 14, "valid"},
};

START_TEST(what_is_mapped_to_the_same_bytes_conflicts) {
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  mappings[broken_maps[_i].chunk].first = mappings[broken_maps[_i].as].first;
  bool valid = strcmp(broken_maps[_i].message, "valid") == 0;
  judge_expect(plan, valid ? PLANC_OK : PLANC_INVALID_PLAN, valid ? "ok" : broken_maps[_i].message, "alias");
  planc_plan_free(plan);
}
END_TEST

START_TEST(mappings_are_whole_chunks_of_the_arena) {
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  mappings[7].first = CHUNKS;
  judge_expect(plan, PLANC_INVALID_PLAN, "mapping 7: 1 chunks from 16 on, of 16 in the arena", "beyond the arena");
  mappings[7] = (planc_mapping){CHUNKS - 1, 2};
  judge_expect(plan, PLANC_INVALID_PLAN, "mapping 7", "its end beyond the arena");
  mappings[7] = (planc_mapping){8, 1};
  plan->n_mappings = 13;
  judge_expect(plan, PLANC_INVALID_PLAN, "workspace address 3072 on are not inside", "addresses that are not mapped");
  plan->chunk_bytes = 2048 + 256;
  judge_expect(plan, PLANC_INVALID_PLAN, "chunks of 2304 bytes", "no whole chunks");
  plan->chunk_bytes = 128;
  judge_expect(plan, PLANC_INVALID_PLAN, "chunks of 128 bytes", "chunks that are not aligned");
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_test(cases, the_plan_is_valid);
  tcase_add_loop_test(cases, a_broken_rule_is_named, 0, sizeof broken / sizeof *broken);
  tcase_add_test(cases, budgets_are_checked_last_and_with_numbers);
  tcase_add_test(cases, chunks_may_lie_anywhere);
  tcase_add_loop_test(cases, what_is_mapped_to_the_same_bytes_conflicts, 0, sizeof broken_maps / sizeof *broken_maps);
  tcase_add_test(cases, mappings_are_whole_chunks_of_the_arena);
  tcase_add_loop_test(cases, a_wrong_header_is_named, 0, sizeof headers / sizeof *headers);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
