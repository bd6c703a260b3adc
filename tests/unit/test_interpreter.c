/* The interpreter: plans in file order and interleaved against the reference, by stand-ins for ops; wrong plans are
 * found out. The plans are woven (tests/support/weave.h) or written out here, not planned. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/plan_tables.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"

/* --- Any graph, by stand-ins -------------------------------------------------------------------------------------- */

typedef struct random_plan {
  planc_graph *graph;
  woven w;
} random_plan;

static void make_random(random_plan *r, uint64_t seed) {
  ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24}, &r->graph));
  int64_t rounds[3], batch = 0;
  int32_t n_rounds = (int32_t)(seed % 3) + 1;
  for (int32_t k = 0; k < n_rounds; k++) batch += rounds[k] = (int64_t)(seed / 3 % 4) + 1 + k;
  planc_job job = {
      .graph = r->graph, .batch = batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = (int32_t)(seed % 2) + 1};
  ok(weave(&job, seed % 5 ? WEAVE_SWAP : WEAVE_RESIDENT, (int64_t)(seed % 3) * 256, &r->w));
}

static void free_random(random_plan *r) {
  woven_free(&r->w);
  planc_graph_free(r->graph);
}

static planc_status run_synthetic(const planc_plan *plan, bool unchecked, int64_t seed, int64_t periods) {
  planrt_options options = {.synthetic = true, .verify = true, .poison = seed < 0, .unchecked = unchecked};
  planrt_session *session;
  PLANC_TRY(planrt_session_new(plan, &options, &session));
  planc_status status = planrt_init(session);
  if (!status)
    status = seed < 0 ? planrt_run(session, periods) : planrt_run_interleaved(session, periods, (uint64_t)seed);
  planrt_session_free(session);
  return status;
}

START_TEST(random_graphs) {
  for (uint64_t seed = (uint64_t)_i * 20; seed < (uint64_t)_i * 20 + 20; seed++) {
    random_plan r;
    make_random(&r, seed);
    ok(run_synthetic(&r.w.plan, false, -1, 3));
    ok(run_synthetic(&r.w.plan, false, (int64_t)seed, 3));
    free_random(&r);
  }
}
END_TEST

/* An instruction that does nothing, on the same stream: a residency copied onto itself. */
static planc_instr nothing(const planc_plan *plan, int16_t stream) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *acquire = &plan->body.instrs[i];
    if (acquire->op == PLANC_INSTR_acquire)
      return (planc_instr){
          .op = PLANC_INSTR_copy, .stream = stream, .id = acquire->id, .aux = acquire->id, .bytes = acquire->bytes};
  }
  ck_abort_msg("the body acquires nothing");
  return (planc_instr){0};
}

/* needed[i * n_buffers + b]: before instance i runs (after the last one, for i = n_instances), b's content matters to
 * what leaves, what persists, or what any op puts out: all of it is compared. */
static bool *find_needed(const planc_trace *trace) {
  ptrdiff_t n = trace->n_buffers;
  bool *needed = calloc((size_t)(trace->n_instances + 1) * (size_t)n, sizeof *needed);
  ck_assert(needed);
  for (int32_t b = 0; b < n; b++)
    needed[trace->n_instances * n + b] = trace->buffers[b].flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_RESULT);
  for (int32_t i = trace->n_instances - 1; i >= 0; i--) {
    const planc_instance *instance = &trace->instances[i];
    const planc_access *accesses = &trace->accesses[instance->first_access];
    bool *before = &needed[i * n], *after = before + n, live = false;
    memcpy(before, after, (size_t)n * sizeof *before);
    for (int32_t k = 0; k < instance->n_accesses; k++)
      live = live || (accesses[k].write >= 0 && (!accesses[k].effect || after[accesses[k].buffer]));
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      if (accesses[k].write >= 0) before[accesses[k].buffer] = false;
      if (accesses[k].read >= 0 && live) before[accesses[k].buffer] = true;
    }
  }
  return needed;
}

static bool copies_in(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_copy && instr->stream == WEAVE_H2D;
}

/* Whether a woven body computes something else without its instruction `at`. */
static bool matters(const woven *w, int64_t at, const bool *needed) {
  const planc_trace *trace = w->trace;
  const planc_instr *instrs = w->sections[1].data, *instr = &instrs[at];
  int32_t on_device = copies_in(instr) ? instr->id : instr->aux; /* of a copy the residency there */
  int64_t exec = at;                                             /* the one it serves */
  while (instrs[exec].op != PLANC_INSTR_exec) exec += copies_in(instr) ? 1 : -1;
  const planc_instance *instance = &trace->instances[instrs[exec].id];
  const bool *before = &needed[(ptrdiff_t)instrs[exec].id * trace->n_buffers], *after = before + trace->n_buffers;
  bool live = false;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &trace->accesses[instance->first_access + k];
    live = live || (access->write >= 0 && after[access->buffer]);
    if (instr->op == PLANC_INSTR_exec || w->uses.data[instrs[exec].first_use + k] != on_device) continue;
    return copies_in(instr) ? before[access->buffer] : instr->id == PLANC_USER || after[access->buffer];
  }
  return live;
}

/* Without one of its copies or execs a plan is found wrong exactly if that one matters. */
START_TEST(dropped_instructions) {
  int dropped[2] = {0};
  for (uint64_t seed = 0; seed < 16; seed++) {
    random_plan r;
    make_random(&r, seed);
    bool *needed = find_needed(r.w.trace);
    for (int64_t i = 0; i < r.w.sections[1].len; i++) {
      planc_instr *instr = &r.w.sections[1].data[i], kept = *instr;
      if (kept.op != PLANC_INSTR_exec && kept.op != PLANC_INSTR_copy) continue;
      bool wrong = matters(&r.w, i, needed);
      *instr = nothing(&r.w.plan, kept.stream);
      planc_status status = run_synthetic(&r.w.plan, true, -1, 2);
      *instr = kept;
      dropped[wrong]++;
      ck_assert_msg(planc_status_code(status) == (wrong ? PLANC_INVALID_PLAN : PLANC_OK), "seed %lu, body[%ld]: %s",
                    (unsigned long)seed, (long)i, planc_status_message(status));
      planc_status_free(status);
    }
    free(needed);
    free_random(&r);
  }
  ck_assert(dropped[0] > 100 && dropped[1] > 1000);
}
END_TEST

/* Whatever stands in an unchecked plan, a session stays inside its memory (which sanitizers see) and ends. */
START_TEST(garbled_plans) {
  uint64_t state = 77;
  int loaded = 0, refused = 0;
  for (uint64_t seed = 0; seed < 8; seed++) {
    random_plan r;
    make_random(&r, seed);
    for (int k = 0; k < 250; k++) {
      int32_t section = (int32_t)rand_below(&state, 3);
      planc_instr *instr = &r.w.sections[section].data[rand_below(&state, r.w.sections[section].len)], kept = *instr;
      int64_t values[] = {-1, 0, 1, 256, INT32_MAX, INT32_MIN, rand_below(&state, 4096), rand_below(&state, 64)};
      int64_t value = values[rand_below(&state, 8)];
      switch (rand_below(&state, 9)) {
        case 0:
          instr->op = (uint8_t)(value & 15);
          break;
        case 1:
          instr->stream = (int16_t)value;
          break;
        case 2:
          instr->id = (int32_t)value;
          break;
        case 3:
          instr->aux = (int32_t)value;
          break;
        case 4:
          instr->memory = (int16_t)value;
          break;
        case 5:
          instr->first_use = (int32_t)value;
          break;
        case 6:
          instr->address = value == INT32_MAX ? INT64_MAX : value;
          break;
        case 7:
          instr->bytes = value == INT32_MAX ? INT64_MAX : value;
          break;
        default:
          instr->recompute = 1;
          instr->lag = (uint8_t)value;
          break;
      }
      planc_status status = run_synthetic(&r.w.plan, true, k % 2 ? -1 : k, 2);
      loaded += !status;
      refused += status != NULL;
      ck_assert_msg(!status || planc_status_code(status) == PLANC_INVALID_PLAN, "%s", planc_status_message(status));
      planc_status_free(status);
      *instr = kept;
    }
    free_random(&r);
  }
  ck_assert_int_gt(loaded, 100);
  ck_assert_int_gt(refused, 100);
}
END_TEST

/* --- Interleaving ------------------------------------------------------------------------------------------------- */

/* Three streams that overlap across bodies: the next samples come while ops still run, results leave meanwhile. */
static const char pipeline_text[] =
    "planc-graph: 1\nname: pipeline\nloss: z\ntensors:\n"
    "  x: input u8[N,64]\n  w: param u8[64]\n  y: u8[N,64]\n  z: u8[N,64]\nops:\n"
    "  - {op: a, type: t.t, in: [x, w], out: [y]}\n"
    "  - {op: b, type: t.t, in: [y], out: [z]}\n"
    "  - {op: u, type: t.t, phase: optimizer, in: [w, y], out: [w]}\n";

enum { X, W, Y, Z };                        /* buffers, as they are first accessed */
enum { IN_W, IN_X, IN_Y, IN_Z };            /* residencies */
enum { USED_X, FED, MADE_Z, LEFT_Z, DONE }; /* events */
enum { C = WEAVE_COMPUTE, I = WEAVE_H2D, O = WEAVE_D2H };

#define ACQUIRE(r, b, a) \
  { .op = PLANC_INSTR_acquire, .id = (r), .aux = (b), .address = (a), .bytes = 64 }
#define RELEASE(r) \
  { .op = PLANC_INSTR_release, .id = (r) }
#define FEED(r) \
  { .op = PLANC_INSTR_copy, .stream = I, .id = (r), .aux = PLANC_USER, .bytes = 64 }
#define DELIVER(r) \
  { .op = PLANC_INSTR_copy, .stream = O, .id = PLANC_USER, .aux = (r), .bytes = 64 }
#define EXEC(i, u) \
  { .op = PLANC_INSTR_exec, .stream = C, .id = (i), .first_use = (u) }
#define RECORD(s, e) \
  { .op = PLANC_INSTR_record, .stream = (s), .id = (e) }
#define WAIT(s, e, l) \
  { .op = PLANC_INSTR_wait, .stream = (s), .id = (e), .lag = (l) }

/* What the body waits for tells the epilogue that w is there, too: compute knows it when it records DONE. */
static const planc_instr pipeline_prologue[] = {
    ACQUIRE(IN_W, W, 0), FEED(IN_W),        RECORD(I, FED),  WAIT(C, FED, 0),
    RECORD(C, USED_X),   RECORD(O, LEFT_Z), RECORD(C, DONE),
};
static const planc_instr pipeline_body[] = {
    WAIT(I, USED_X, 1), ACQUIRE(IN_X, X, 256), FEED(IN_X),
    RECORD(I, FED),     WAIT(C, FED, 0),       ACQUIRE(IN_Y, Y, 512),
    EXEC(0, 0),         RECORD(C, USED_X),     RELEASE(IN_X),
    WAIT(C, LEFT_Z, 1), ACQUIRE(IN_Z, Z, 768), EXEC(1, 3),
    RECORD(C, MADE_Z),  WAIT(O, MADE_Z, 0),    DELIVER(IN_Z),
    RECORD(O, LEFT_Z),  RELEASE(IN_Z),         EXEC(2, 5),
    RECORD(C, DONE),    RELEASE(IN_Y),
};
static const planc_instr pipeline_epilogue[] = {WAIT(O, DONE, 1), DELIVER(IN_W), RELEASE(IN_W)};
static const int32_t pipeline_uses[] = {IN_X, IN_W, IN_Y, IN_Y, IN_Z, IN_W, IN_Y};
enum { PROLOGUE_LENGTH = 7, BODY_LENGTH = 20, EPILOGUE_LENGTH = 3 };

typedef struct pipeline {
  planc_graph *graph;
  planc_instr prologue[PROLOGUE_LENGTH], body[BODY_LENGTH], epilogue[EPILOGUE_LENGTH];
  planc_plan plan;
  planc_job job;
  int64_t rounds[1];
  planc_boundary boundary;
  pl_arena arena;
} pipeline;

static const char *const pipeline_algorithms[] = {"default"};

static void make_pipeline(pipeline *p) {
  *p = (pipeline){.graph = graph_of(pipeline_text), .rounds = {1}, .boundary = {.buffer = W}};
  memcpy(p->prologue, pipeline_prologue, sizeof p->prologue);
  memcpy(p->body, pipeline_body, sizeof p->body);
  memcpy(p->epilogue, pipeline_epilogue, sizeof p->epilogue);
  p->job = (planc_job){.graph = p->graph, .batch = 1, .n_rounds = 1, .rounds = p->rounds, .iterations = 1};
  p->plan = (planc_plan){.name = "pipeline",
                         .policy = "none",
                         .device = {.name = "host"},
                         .n_jobs = 1,
                         .jobs = &p->job,
                         .n_events = DONE + 1,
                         .n_algorithms = 1,
                         .algorithms = pipeline_algorithms,
                         .n_boundary = 1,
                         .boundary = &p->boundary,
                         .n_residencies = IN_Z + 1,
                         .prologue = {PROLOGUE_LENGTH, p->prologue},
                         .body = {BODY_LENGTH, p->body},
                         .epilogue = {EPILOGUE_LENGTH, p->epilogue},
                         .n_uses = sizeof pipeline_uses / sizeof *pipeline_uses,
                         .uses = pipeline_uses};
  ok(tables_make(&p->plan, &p->arena, NULL, false));
  tables_arenas(&p->plan, 768 + 64, 0);
}

static void free_pipeline(pipeline *p) {
  pl_arena_free(&p->arena);
  planc_graph_free(p->graph);
}

enum { SEEDS = 200 };

START_TEST(overlapping_bodies) {
  pipeline p;
  make_pipeline(&p);
  ok(run_synthetic(&p.plan, false, -1, 5));
  for (int64_t seed = 0; seed < SEEDS; seed++) ok(run_synthetic(&p.plan, false, seed, 5));
  free_pipeline(&p);
}
END_TEST

typedef struct progress {
  int64_t fed, lead; /* iterations fed; most of them beyond an iteration whose result had not left */
} progress;

static planc_status feed_and_count(void *user, const planrt_feed_request *request) {
  progress *p = user;
  p->fed = request->iteration > p->fed ? request->iteration : p->fed;
  memset(request->out, (int)request->iteration, (size_t)request->bytes);
  return NULL;
}

static planc_status sink_and_count(void *user, const planrt_result *result) {
  progress *p = user;
  p->lead = p->fed - result->iteration > p->lead ? p->fed - result->iteration : p->lead;
  return NULL;
}

static int64_t largest_lead(const planc_plan *plan, int64_t seed) {
  progress p = {0};
  planrt_options options = {.synthetic = true, .feed = feed_and_count, .sink = sink_and_count, .user = &p};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  ok(seed < 0 ? planrt_run(session, 6) : planrt_run_interleaved(session, 6, (uint64_t)seed));
  planrt_session_free(session);
  return p.lead;
}

/* In file order no body starts before the last has ended; interleaved, samples come one body early in this plan, and no
 * earlier, as their place is taken. */
START_TEST(streams_run_ahead) {
  pipeline p;
  make_pipeline(&p);
  ck_assert_int_eq(largest_lead(&p.plan, -1), 0);
  int64_t lead = 0;
  for (int64_t seed = 0; seed < SEEDS; seed++) {
    int64_t now = largest_lead(&p.plan, seed);
    lead = now > lead ? now : lead;
  }
  ck_assert_int_ge(lead, 1);
  ck_assert_int_le(lead, 2);
  free_pipeline(&p);
}
END_TEST

/* Every wait is needed: without it the checker refuses the plan and some interleaving computes other bits, of some
 * bodies or of none. */
START_TEST(missing_waits) {
  pipeline p;
  make_pipeline(&p);
  struct {
    planc_instr *instrs;
    int32_t n;
  } sections[] = {{p.prologue, PROLOGUE_LENGTH}, {p.body, BODY_LENGTH}, {p.epilogue, EPILOGUE_LENGTH}};
  int waits = 0;
  for (int s = 0; s < 3; s++)
    for (int32_t i = 0; i < sections[s].n; i++) {
      planc_instr *instr = &sections[s].instrs[i], kept = *instr;
      if (kept.op != PLANC_INSTR_wait) continue;
      waits++;
      /* A record of an event that nobody waits for. */
      *instr = (planc_instr){.op = PLANC_INSTR_record, .stream = kept.stream, .id = DONE + 1};
      p.plan.n_events = DONE + 2;
      planc_status refused = run_synthetic(&p.plan, false, -1, 3);
      ck_assert_msg(planc_status_code(refused) == PLANC_INVALID_PLAN, "section %d, instruction %d", s, i);
      planc_status_free(refused);
      ok(run_synthetic(&p.plan, true, -1, 3));
      planc_status status = NULL;
      for (int64_t seed = 0; seed < SEEDS && !status; seed++)
        status = run_synthetic(&p.plan, true, seed, seed % 2 ? 3 : 0);
      ck_assert_msg(status != NULL, "section %d, instruction %d", s, i);
      ck_assert_int_eq(planc_status_code(status), PLANC_INVALID_PLAN);
      planc_status_free(status);
      *instr = kept;
    }
  ck_assert_int_eq(waits, 6);
  free_pipeline(&p);
}
END_TEST

START_TEST(missing_records) {
  pipeline p;
  make_pipeline(&p);
  for (int32_t i = 0; i < BODY_LENGTH; i++) {
    planc_instr kept = p.body[i];
    if (kept.op != PLANC_INSTR_record || kept.id != FED) continue;
    p.body[i].id = DONE + 1;
    p.plan.n_events = DONE + 2;
    assert_fails(run_synthetic(&p.plan, true, -1, 3), PLANC_INVALID_PLAN, "before it is recorded");
    assert_fails(run_synthetic(&p.plan, true, 3, 3), PLANC_INVALID_PLAN, "deadlock");
    p.body[i] = kept;
  }
  free_pipeline(&p);
}
END_TEST

START_TEST(no_kernel) {
  random_plan r;
  make_random(&r, 4);
  planrt_session *session;
  assert_fails(planrt_session_new(&r.w.plan, &(planrt_options){0}, &session), PLANC_DEVICE, "no kernel for rand.");
  free_random(&r);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("interpreter");
  TCase *c = tcase_create("interpreter");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, random_graphs, 0, 10);
  tcase_add_test(c, dropped_instructions);
  tcase_add_test(c, garbled_plans);
  tcase_add_test(c, overlapping_bodies);
  tcase_add_test(c, streams_run_ahead);
  tcase_add_test(c, missing_waits);
  tcase_add_test(c, missing_records);
  tcase_add_test(c, no_kernel);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
