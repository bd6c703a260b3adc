/* Sessions: plans run, in file order and interleaved, against the reference; wrong plans are found out; what goes in
 * and comes out of a session. The plans are woven (tests/support/weave.h) or written out here, not planned. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planrt/planrt.h"
#include "tests/support/randgraph.h"
#include "tests/support/weave.h"

static void ok(planc_status status) {
  ck_assert_msg(!status, "%s", planc_status_message(status));
}

static void assert_fails(planc_status status, planc_code code, const char *part) {
  ck_assert_msg(status && planc_status_code(status) == code, "%s", planc_status_message(status));
  ck_assert_msg(strstr(planc_status_message(status), part) != NULL, "%s", planc_status_message(status));
  planc_status_free(status);
}

static planc_graph *parse(const char *text) {
  planc_graph *graph;
  ok(planc_graph_parse(text, strlen(text), "test", &graph));
  return graph;
}

static planc_graph *train(const char *text, planc_optimizer optimizer) {
  planc_graph *forward = parse(text), *trained;
  ok(planc_graph_train(forward, optimizer, &trained));
  planc_graph_free(forward);
  return trained;
}

static int32_t storage(const planc_graph *graph, const char *name) {
  for (int32_t t = 0; t < graph->n_tensors; t++)
    if (strcmp(graph->tensors[t].name, name) == 0) return graph->tensors[t].storage;
  ck_abort_msg("no tensor %s", name);
  return -1;
}

/* --- Real numerics ---------------------------------------------------------------------------------------------- */

static const char convnet[] =
    "planc-graph: 1\nname: convnet\nloss: loss\noutputs: [probs]\ntensors:\n"
    "  x: input f32[N,1,6,6]\n  labels: input i64[N]\n"
    "  c.w: param f32[4,1,3,3]\n  c.b: param f32[4]\n  c: f32[N,4,6,6]\n"
    "  gamma: param f32[4]\n  beta: param f32[4]\n  n: f32[N,4,6,6]\n  mean: f32[4]\n  invstd: f32[4]\n"
    "  running.mean: state f32[4]\n  running.var: state f32[4]\n"
    "  r: f32[N,4,6,6] of n\n  p: f32[N,4,3,3]\n  flat: f32[N,36] of p\n  d: f32[N,36]\n"
    "  f.w: param f32[3,36]\n  f.b: param f32[3]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: c, type: conv2d, in: [x, c.w, c.b], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: n, type: batchnorm, in: [c, gamma, beta], out: [n, mean, invstd], effects: [running.mean, running.var]}\n"
    "  - {op: r, type: relu, in: [n], out: [r]}\n"
    "  - {op: p, type: maxpool2d, in: [r], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: d, type: dropout, in: [flat], out: [d], attrs: {p: 0.25, seed: 1}}\n"
    "  - {op: f, type: linear, in: [d, f.w, f.b], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

/* Three classes of pictures: a bright row, column or diagonal in noise. */
static planc_status pictures(void *user, const planrt_feed_request *request) {
  (void)user;
  for (int64_t i = 0; i < request->count; i++) {
    uint64_t state = (uint64_t)(request->iteration * 1000 + request->offset + i);
    int64_t label = rand_below(&state, 3), where = rand_below(&state, 6);
    if (request->bytes == request->count * (int64_t)sizeof label) {
      ((int64_t *)request->out)[i] = label;
      continue;
    }
    float *pixels = (float *)request->out + i * 36;
    for (int64_t k = 0; k < 36; k++) {
      bool bright = label == 0 ? k / 6 == where : label == 1 ? k % 6 == where : k / 6 == k % 6;
      pixels[k] = (bright ? 1.0F : 0.0F) + (float)rand_below(&state, 100) / 400.0F;
    }
  }
  return NULL;
}

enum { MAX_LOSSES = 256 };

typedef struct losses {
  int32_t storage, n;
  float sum[MAX_LOSSES]; /* by iteration */
} losses;

static planc_status collect(void *user, const planrt_result *result) {
  losses *to = user;
  if (result->storage != to->storage) return NULL;
  ck_assert_int_lt(result->iteration, MAX_LOSSES);
  to->sum[result->iteration] += *(const float *)result->data;
  to->n++;
  return NULL;
}

static void run_pictures(planc_graph *graph, const int64_t *rounds, int32_t n_rounds, weave_mode mode, int64_t seed,
                         losses *out, double *accuracy) {
  int64_t batch = 0;
  for (int32_t r = 0; r < n_rounds; r++) batch += rounds[r];
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  woven w;
  ok(weave(&job, mode, 512, &w));
  *out = (losses){.storage = storage(graph, "loss")};
  planrt_options options = {.feed = pictures, .sink = collect, .user = out, .verify = true, .evaluate = true};
  options.poison = seed < 0;
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  planrt_set_step(session, (planrt_step){.learning_rate = 0.02});
  ok(seed < 0 ? planrt_run(session, 40) : planrt_run_interleaved(session, 40, (uint64_t)seed));
  ok(planrt_evaluate(session, pictures, NULL, 500, accuracy));
  planrt_session_free(session);
  woven_free(&w);
}

/* Residency changes no bit, training learns, and the running statistics serve. */
START_TEST(training) {
  static const int64_t rounds[][2] = {{12, 0}, {7, 5}};
  static const planc_optimizer optimizers[] = {PLANC_MOMENTUM, PLANC_ADAM};
  planc_graph *graph = train(convnet, optimizers[_i / 2]);
  int32_t n_rounds = _i % 2 ? 2 : 1;
  losses resident, swapped, interleaved;
  double accuracy[3];
  run_pictures(graph, rounds[_i % 2], n_rounds, WEAVE_RESIDENT, -1, &resident, &accuracy[0]);
  run_pictures(graph, rounds[_i % 2], n_rounds, WEAVE_SWAP, -1, &swapped, &accuracy[1]);
  run_pictures(graph, rounds[_i % 2], n_rounds, WEAVE_SWAP, 5, &interleaved, &accuracy[2]);
  ck_assert_int_eq(resident.n, (int64_t)40 * n_rounds);
  ck_assert_mem_eq(&resident, &swapped, sizeof resident);
  ck_assert_mem_eq(&resident, &interleaved, sizeof resident);
  ck_assert(accuracy[0] == accuracy[1] && accuracy[1] == accuracy[2]);
  float early = 0, late = 0;
  for (int i = 0; i < 10; i++) {
    early += resident.sum[i];
    late += resident.sum[30 + i];
  }
  ck_assert_float_lt(late, 0.6F * early);
  ck_assert_double_gt(accuracy[0], 0.6);
  planc_graph_free(graph);
}
END_TEST

static bool has_accumulate(const planc_graph *graph, const int64_t *rounds, int32_t n_rounds, int64_t batch) {
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  planc_trace *trace;
  bool found = false;
  ok(planc_expand(&job, 1, &trace));
  for (int32_t i = 0; i < trace->n_instances; i++) found = found || trace->instances[i].role == PLANC_ROLE_ACCUMULATE;
  planc_trace_free(trace);
  return found;
}

/* Without what couples a batch, rounds change the sum of the losses and the trained weights only by rounding: 1e-4.
 * Gradients add up in place, and, where two ops share a weight, through a temporary. */
START_TEST(rounds_add_up) {
  static const char text[] =
      "planc-graph: 1\nname: mlp\nloss: loss\ntensors:\n"
      "  x: input f32[N,36]\n  labels: input i64[N]\n  a.w: param f32[8,36]\n  a.b: param f32[8]\n  a: f32[N,8]\n"
      "  d: f32[N,8]\n  s.w: param f32[8,8]\n  s: f32[N,8]\n  t: f32[N,8]\n  f.w: param f32[3,8]\n  z: f32[N,3]\n  "
      "loss: f32[]\n  probs: f32[N,3]\nops:\n"
      "  - {op: a, type: linear, in: [x, a.w, a.b], out: [a]}\n"
      "  - {op: d, type: dropout, in: [a], out: [d], attrs: {p: 0.5, seed: 9}}\n"
      "  - {op: s, type: linear, in: [d, s.w], out: [s]}\n"
      "  - {op: t, type: linear, in: [s, s.w], out: [t]}\n"
      "  - {op: f, type: linear, in: [t, f.w], out: [z]}\n"
      "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";
  static const int64_t whole[] = {12}, cut[] = {5, 5, 2};
  planc_graph *graph = train(text, PLANC_SGD);
  ck_assert(has_accumulate(graph, cut, 3, 12));
  losses one, three;
  double accuracy;
  run_pictures(graph, whole, 1, WEAVE_RESIDENT, -1, &one, &accuracy);
  run_pictures(graph, cut, 3, WEAVE_SWAP, -1, &three, &accuracy);
  for (int i = 0; i < 40; i++) ck_assert_float_eq_tol(one.sum[i], three.sum[i], 1e-4F);
  planc_graph_free(graph);
}
END_TEST

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

/* An instruction that does nothing, on the same stream: a residency moved onto itself. */
static planc_instr nothing(const planc_plan *plan, int16_t stream) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *acquire = &plan->body.instrs[i];
    if (acquire->op == PLANC_INSTR_acquire)
      return (planc_instr){
          .op = PLANC_INSTR_move, .stream = stream, .id = acquire->id, .aux = acquire->id, .bytes = acquire->bytes};
  }
  ck_abort_msg("the body acquires nothing");
  return (planc_instr){0};
}

/* needed[i * n_buffers + b]: before instance i runs (after the last one, for i = n_instances), b's content matters to
 * what leaves or persists. */
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
      live = live || (accesses[k].write >= 0 && after[accesses[k].buffer]);
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      if (accesses[k].write >= 0) before[accesses[k].buffer] = false;
      if (accesses[k].read >= 0 && live) before[accesses[k].buffer] = true;
    }
  }
  return needed;
}

/* Whether a woven body computes something else without its instruction `at`. */
static bool matters(const woven *w, int64_t at, const bool *needed) {
  const planc_trace *trace = w->trace;
  const planc_instr *instrs = w->sections[1].data, *instr = &instrs[at];
  int64_t exec = at; /* the one it serves */
  while (instrs[exec].op != PLANC_INSTR_exec) exec += instr->op == PLANC_INSTR_prefetch ? 1 : -1;
  const planc_instance *instance = &trace->instances[instrs[exec].id];
  const bool *before = &needed[(ptrdiff_t)instrs[exec].id * trace->n_buffers], *after = before + trace->n_buffers;
  bool live = false;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &trace->accesses[instance->first_access + k];
    live = live || (access->write >= 0 && after[access->buffer]);
    if (instr->op == PLANC_INSTR_exec || w->uses.data[instrs[exec].first_use + k] != instr->id) continue;
    if (instr->op == PLANC_INSTR_prefetch) return before[access->buffer];
    /* The copy of the access before serves as well if this one has changed nothing. */
    bool first = trace->by_buffer[trace->buffers[access->buffer].first_access] == instance->first_access + k;
    return instr->address == PLANC_USER || (after[access->buffer] && (first || access->write >= 0));
  }
  return live;
}

/* Without one of its copies or execs a plan is found wrong exactly if that one matters. */
START_TEST(dropped_instructions) {
  int dropped[2] = {0};
  for (uint64_t seed = 0; seed < 12; seed++) {
    random_plan r;
    make_random(&r, seed);
    bool *needed = find_needed(r.w.trace);
    for (int64_t i = 0; i < r.w.sections[1].len; i++) {
      planc_instr *instr = &r.w.sections[1].data[i], kept = *instr;
      if (kept.op != PLANC_INSTR_exec && kept.op != PLANC_INSTR_offload && kept.op != PLANC_INSTR_prefetch) continue;
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
      switch (rand_below(&state, 8)) {
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
          instr->first_use = (int32_t)value;
          break;
        case 5:
          instr->address = value == INT32_MAX ? INT64_MAX : value;
          break;
        case 6:
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

/* --- Interleaving ---------------------------------------------------------------------------------------------------
 */

/* Three streams that overlap across bodies: the next samples come while ops still run, results leave meanwhile. */
static const char pipeline_text[] =
    "planc-graph: 1\nname: pipeline\nloss: z\ntensors:\n"
    "  x: input u8[N,64]\n  w: param u8[64]\n  y: u8[N,64]\n  z: u8[N,64]\nops:\n"
    "  - {op: a, type: t, in: [x, w], out: [y]}\n"
    "  - {op: b, type: t, in: [y], out: [z]}\n"
    "  - {op: u, type: t, phase: optimizer, in: [w, y], out: [w]}\n";

enum { X, W, Y, Z };                        /* buffers, as they are first accessed */
enum { IN_W, IN_X, IN_Y, IN_Z };            /* residencies */
enum { USED_X, FED, MADE_Z, LEFT_Z, DONE }; /* events */
enum { C = WEAVE_COMPUTE, I = WEAVE_H2D, O = WEAVE_D2H };

#define ACQUIRE(r, b, a) \
  { .op = PLANC_INSTR_acquire, .id = (r), .aux = (b), .address = (a), .bytes = 64 }
#define RELEASE(r) \
  { .op = PLANC_INSTR_release, .id = (r) }
#define PREFETCH(r) \
  { .op = PLANC_INSTR_prefetch, .stream = I, .id = (r), .address = PLANC_USER, .bytes = 64 }
#define OFFLOAD(r) \
  { .op = PLANC_INSTR_offload, .stream = O, .id = (r), .address = PLANC_USER, .bytes = 64 }
#define EXEC(i, u) \
  { .op = PLANC_INSTR_exec, .stream = C, .id = (i), .first_use = (u) }
#define RECORD(s, e) \
  { .op = PLANC_INSTR_record, .stream = (s), .id = (e) }
#define WAIT(s, e, l) \
  { .op = PLANC_INSTR_wait, .stream = (s), .id = (e), .lag = (l) }

/* The first body's FED comes after w on the same stream, so that w needs no event of its own. */
static const planc_instr pipeline_prologue[] = {
    ACQUIRE(IN_W, W, 0), PREFETCH(IN_W), RECORD(C, USED_X), RECORD(O, LEFT_Z), RECORD(C, DONE),
};
static const planc_instr pipeline_body[] = {
    WAIT(I, USED_X, 1), ACQUIRE(IN_X, X, 256), PREFETCH(IN_X),
    RECORD(I, FED),     WAIT(C, FED, 0),       ACQUIRE(IN_Y, Y, 512),
    EXEC(0, 0),         RECORD(C, USED_X),     RELEASE(IN_X),
    WAIT(C, LEFT_Z, 1), ACQUIRE(IN_Z, Z, 768), EXEC(1, 3),
    RECORD(C, MADE_Z),  WAIT(O, MADE_Z, 0),    OFFLOAD(IN_Z),
    RECORD(O, LEFT_Z),  RELEASE(IN_Z),         EXEC(2, 5),
    RECORD(C, DONE),    RELEASE(IN_Y),
};
static const planc_instr pipeline_epilogue[] = {WAIT(O, DONE, 1), OFFLOAD(IN_W), RELEASE(IN_W)};
static const int32_t pipeline_uses[] = {IN_X, IN_W, IN_Y, IN_Y, IN_Z, IN_W, IN_Y};
enum { PROLOGUE_LENGTH = 5, BODY_LENGTH = 20, EPILOGUE_LENGTH = 3 };

typedef struct pipeline {
  planc_graph *graph;
  planc_instr prologue[PROLOGUE_LENGTH], body[BODY_LENGTH], epilogue[EPILOGUE_LENGTH];
  planc_plan plan;
  planc_job job;
  int64_t rounds[1];
  planc_boundary boundary;
} pipeline;

static const planc_stream pipeline_streams[] = {
    {PLANC_STREAM_KIND_compute, 0, 0}, {PLANC_STREAM_KIND_h2d, 0, 0}, {PLANC_STREAM_KIND_d2h, 0, 0}};
static const char *const pipeline_algorithms[] = {"default"};

static void make_pipeline(pipeline *p) {
  *p = (pipeline){.graph = parse(pipeline_text), .rounds = {1}, .boundary = {W, 0}};
  memcpy(p->prologue, pipeline_prologue, sizeof p->prologue);
  memcpy(p->body, pipeline_body, sizeof p->body);
  memcpy(p->epilogue, pipeline_epilogue, sizeof p->epilogue);
  p->job = (planc_job){.graph = p->graph, .batch = 1, .n_rounds = 1, .rounds = p->rounds, .iterations = 1};
  p->plan = (planc_plan){.name = "pipeline",
                         .policy = "none",
                         .device = {.name = "host"},
                         .budget_bytes = 1024,
                         .host_budget_bytes = -1,
                         .arena_bytes = 768 + 64,
                         .gpus = 1,
                         .graph_hash = planc_graph_hash(p->graph),
                         .n_jobs = 1,
                         .jobs = &p->job,
                         .n_streams = 3,
                         .streams = pipeline_streams,
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
}

enum { SEEDS = 200 };

START_TEST(overlapping_bodies) {
  pipeline p;
  make_pipeline(&p);
  ok(run_synthetic(&p.plan, false, -1, 5));
  for (int64_t seed = 0; seed < SEEDS; seed++) ok(run_synthetic(&p.plan, false, seed, 5));
  planc_graph_free(p.graph);
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
  planc_graph_free(p.graph);
}
END_TEST

/* Every wait is needed: without it the checker refuses the plan and some interleaving computes other bits. */
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
      for (int64_t seed = 0; seed < SEEDS && !status; seed++) status = run_synthetic(&p.plan, true, seed, 3);
      ck_assert_msg(status != NULL, "section %d, instruction %d", s, i);
      ck_assert_int_eq(planc_status_code(status), PLANC_INVALID_PLAN);
      planc_status_free(status);
      *instr = kept;
    }
  ck_assert_int_eq(waits, 5);
  planc_graph_free(p.graph);
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
  planc_graph_free(p.graph);
}
END_TEST

/* --- Recompute ------------------------------------------------------------------------------------------------------
 */

/* Runs the batch norm again right after its first run, as a recompute or in full. */
static planc_status run_norm_twice(bool recompute) {
  planc_graph *graph = train(convnet, PLANC_SGD);
  int64_t batch = 6;
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  woven w;
  ok(weave(&job, WEAVE_RESIDENT, 0, &w));
  int64_t at = 0;
  while (w.sections[1].data[at].op != PLANC_INSTR_exec ||
         strcmp(planc_trace_op(w.trace, w.sections[1].data[at].id)->name, "n") != 0)
    at++;
  planc_instr again = w.sections[1].data[at];
  const planc_instance *instance = &w.trace->instances[again.id];
  int32_t first_use = (int32_t)w.uses.len;
  ok(VEC_RESERVE(&w.uses, w.uses.len + instance->n_accesses));
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    bool effect = w.trace->accesses[instance->first_access + k].effect;
    w.uses.data[w.uses.len++] = recompute && effect ? -1 : w.uses.data[again.first_use + k];
  }
  again.first_use = first_use;
  again.recompute = recompute;
  ok(VEC_RESERVE(&w.sections[1], w.sections[1].len + 1));
  for (int64_t i = w.sections[1].len++; i > at + 1; i--) w.sections[1].data[i] = w.sections[1].data[i - 1];
  w.sections[1].data[at + 1] = again;
  w.plan.uses = w.uses.data;
  w.plan.n_uses = (int32_t)w.uses.len;
  w.plan.body = (planc_section){(int32_t)w.sections[1].len, w.sections[1].data};

  planrt_options options = {.verify = true, .feed = pictures, .unchecked = true};
  planrt_session *session;
  ok(planrt_session_new(&w.plan, &options, &session));
  ok(planrt_init(session));
  planc_status status = planrt_run(session, 3);
  planrt_session_free(session);
  woven_free(&w);
  planc_graph_free(graph);
  return status;
}

START_TEST(recompute_skips_effects) {
  ok(run_norm_twice(true));
  assert_fails(run_norm_twice(false), PLANC_INVALID_PLAN, "running.mean differs from the reference");
}
END_TEST

/* --- What goes in and comes out -------------------------------------------------------------------------------------
 */

typedef struct fixture {
  planc_graph *graph;
  int64_t batch;
  woven w;
  planrt_session *session;
} fixture;

static void open_fixture(fixture *f, planrt_options options) {
  f->graph = train(convnet, PLANC_ADAM);
  f->batch = 4;
  planc_job job = {.graph = f->graph, .batch = f->batch, .n_rounds = 1, .rounds = &f->batch, .iterations = 1};
  ok(weave(&job, WEAVE_RESIDENT, 0, &f->w));
  ok(planrt_session_new(&f->w.plan, &options, &f->session));
  ok(planrt_init(f->session));
}

static void close_fixture(fixture *f) {
  planrt_session_free(f->session);
  woven_free(&f->w);
  planc_graph_free(f->graph);
}

START_TEST(initial_values) {
  fixture f;
  open_fixture(&f, (planrt_options){.seed = 1});
  float w[108], b[4], gamma[4], variance[4];
  ok(planrt_read(f.session, 0, storage(f.graph, "f.w"), w, sizeof w));
  ok(planrt_read(f.session, 0, storage(f.graph, "c.b"), b, sizeof b));
  ok(planrt_read(f.session, 0, storage(f.graph, "gamma"), gamma, sizeof gamma));
  ok(planrt_read(f.session, 0, storage(f.graph, "running.var"), variance, sizeof variance));
  /* He-uniform over 36 inputs: variance 2 / 36, which 108 draws meet within a third. */
  double bound = sqrt(6.0 / 36.0), squares = 0;
  for (int i = 0; i < 108; i++) {
    ck_assert(fabs((double)w[i]) <= bound);
    squares += (double)w[i] * (double)w[i] / 108;
  }
  ck_assert_double_eq_tol(squares, 2.0 / 36.0, 2.0 / 108.0);
  for (int i = 0; i < 4; i++) ck_assert(b[i] == 0.0F && gamma[i] == 1.0F && variance[i] == 1.0F);
  for (int32_t s = 0; s < f.graph->n_storages; s++) {
    float state[108];
    int64_t bytes = planc_law_at(f.graph->storages[s].bytes, f.batch);
    if (f.graph->storages[s].kind != PLANC_KIND_state || s == storage(f.graph, "running.var")) continue;
    ok(planrt_read(f.session, 0, s, state, bytes));
    for (int64_t i = 0; i < bytes / 4; i++) ck_assert(state[i] == 0.0F);
  }
  fixture other;
  float same[108], different[108];
  open_fixture(&other, (planrt_options){.seed = 1});
  ok(planrt_read(other.session, 0, storage(other.graph, "f.w"), same, sizeof same));
  ck_assert_mem_eq(w, same, sizeof w);
  close_fixture(&other);
  open_fixture(&other, (planrt_options){.seed = 2});
  ok(planrt_read(other.session, 0, storage(other.graph, "f.w"), different, sizeof different));
  ck_assert_mem_ne(w, different, sizeof w);
  close_fixture(&other);
  close_fixture(&f);
}
END_TEST

/* A run in parts, and one taken over by another session with the values read and written, end with the same bits. */
START_TEST(runs_continue) {
  fixture whole, parts, taken;
  planrt_options options = {.feed = pictures, .seed = 3};
  open_fixture(&whole, options);
  open_fixture(&parts, options);
  open_fixture(&taken, options);
  ok(planrt_run(whole.session, 7));
  ok(planrt_run(parts.session, 4));
  planrt_set_step(taken.session, planrt_get_step(parts.session));
  ck_assert_int_eq(planrt_get_step(parts.session).period, 4);
  char value[1024], other[1024];
  for (int32_t s = 0; s < parts.graph->n_storages; s++) {
    int64_t bytes = planc_law_at(parts.graph->storages[s].bytes, parts.batch);
    if (!planc_kind_persists(parts.graph->storages[s].kind)) continue;
    ok(planrt_read(parts.session, 0, s, value, bytes));
    ok(planrt_write(taken.session, 0, s, value, bytes));
  }
  ok(planrt_run(parts.session, 3));
  ok(planrt_run(taken.session, 3));
  for (int32_t s = 0; s < whole.graph->n_storages; s++) {
    int64_t bytes = planc_law_at(whole.graph->storages[s].bytes, whole.batch);
    if (!planc_kind_persists(whole.graph->storages[s].kind)) continue;
    ok(planrt_read(whole.session, 0, s, value, bytes));
    ok(planrt_read(parts.session, 0, s, other, bytes));
    ck_assert_mem_eq(value, other, (size_t)bytes);
    ok(planrt_read(taken.session, 0, s, other, bytes));
    ck_assert_mem_eq(value, other, (size_t)bytes);
  }
  close_fixture(&whole);
  close_fixture(&parts);
  close_fixture(&taken);
}
END_TEST

START_TEST(misuse) {
  fixture f;
  float value[4];
  double accuracy;
  open_fixture(&f, (planrt_options){0});
  assert_fails(planrt_read(f.session, 0, storage(f.graph, "c.b"), value, 12), PLANC_USAGE, "16 bytes, not 12");
  assert_fails(planrt_read(f.session, 0, storage(f.graph, "x"), value, 16), PLANC_USAGE, "x does not persist");
  assert_fails(planrt_read(f.session, 1, 0, value, 16), PLANC_USAGE, "no storage");
  assert_fails(planrt_write(f.session, 0, f.graph->n_storages, value, 16), PLANC_USAGE, "no storage");
  assert_fails(planrt_run(f.session, -1), PLANC_USAGE, "-1 periods");
  assert_fails(planrt_evaluate(f.session, pictures, NULL, 1, &accuracy), PLANC_USAGE, "evaluation");
  ok(planrt_run(f.session, 0));
  close_fixture(&f);
}
END_TEST

static planc_status failing_feed(void *user, const planrt_feed_request *request) {
  (void)user;
  if (request->iteration == 2) return planc_error(PLANC_IO, "no more samples");
  return pictures(NULL, request);
}

static planc_status failing_sink(void *user, const planrt_result *result) {
  (void)user;
  return result->iteration == 1 ? planc_error(PLANC_IO, "no more room") : NULL;
}

START_TEST(failing_callbacks) {
  fixture f;
  open_fixture(&f, (planrt_options){.feed = failing_feed});
  assert_fails(planrt_run(f.session, 3), PLANC_IO, "iteration 2: no more samples");
  close_fixture(&f);
  open_fixture(&f, (planrt_options){.feed = pictures, .sink = failing_sink});
  assert_fails(planrt_run(f.session, 3), PLANC_IO, "no more room");
  close_fixture(&f);
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
  tcase_add_loop_test(c, training, 0, 4);
  tcase_add_test(c, rounds_add_up);
  tcase_add_loop_test(c, random_graphs, 0, 10);
  tcase_add_test(c, dropped_instructions);
  tcase_add_test(c, garbled_plans);
  tcase_add_test(c, overlapping_bodies);
  tcase_add_test(c, streams_run_ahead);
  tcase_add_test(c, missing_waits);
  tcase_add_test(c, missing_records);
  tcase_add_test(c, recompute_skips_effects);
  tcase_add_test(c, initial_values);
  tcase_add_test(c, runs_continue);
  tcase_add_test(c, misuse);
  tcase_add_test(c, failing_callbacks);
  tcase_add_test(c, no_kernel);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
