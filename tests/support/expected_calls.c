/* What a session has to call (expected_calls.h). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/expected_parts.h"
#include "tests/support/unit.h"

/* Pieces of the user's memory; a buffer's home has the buffer's number. */
static int32_t samples_of(const expected_calls *e, int32_t handover) {
  return e->trace->n_buffers + handover;
}
static int32_t result_of(const expected_calls *e, int32_t buffer, int64_t row) {
  return e->trace->n_buffers + e->n_handovers + buffer * ROWS + (int32_t)row;
}

static bool is_handover(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_copy && (instr->id == PLANC_USER || instr->aux == PLANC_USER);
}

static void *allocate(int64_t count, size_t size) {
  void *memory = calloc((size_t)count + 1, size);
  ck_assert(memory);
  return memory;
}

static void read_residencies(expected_calls *e) {
  const planc_plan *plan = e->plan;
  for (int32_t i = 0; i < plan->n_boundary; i++) {
    e->buffer[i] = plan->boundary[i].buffer;
    e->memory[i] = plan->boundary[i].memory;
    e->address[i] = plan->boundary[i].address;
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec) e->execs[e->n_execs++] = instr;
    e->n_handovers += is_handover(instr);
    if (instr->op != PLANC_INSTR_acquire) continue;
    e->buffer[instr->id] = instr->aux;
    e->memory[instr->id] = instr->memory;
    e->address[instr->id] = instr->address;
  }
}

expected_calls *expected_new(const planc_plan *plan, const planrt_options *options) {
  expected_calls *e = allocate(1, sizeof *e);
  e->plan = plan;
  e->options = options;
  ok(planc_expand(plan->jobs, plan->n_jobs, &e->trace));
  e->buffer = allocate(plan->n_residencies, sizeof *e->buffer);
  e->memory = allocate(plan->n_residencies, sizeof *e->memory);
  e->address = allocate(plan->n_residencies, sizeof *e->address);
  e->fresh = allocate(plan->n_residencies, sizeof *e->fresh);
  e->execs = allocate(plan->body.n, sizeof(planc_instr *));
  e->prepared = allocate(plan->body.n, sizeof(rt_call *));
  ck_assert_int_eq(planc_plan_gpus(plan), 1);
  e->arenas[DEVICE] = recording_backend.arena(recording_device(0));
  e->arenas[HOST] = recording_backend.host_arena(recording_device(0));
  read_residencies(e);
  e->n_places = result_of(e, e->trace->n_buffers, 0);
  e->places = allocate(e->n_places, sizeof *e->places);
  return e;
}

void expected_free(expected_calls *e) {
  VEC_FREE(&e->calls);
  free(e->buffer);
  free(e->memory);
  free(e->address);
  free(e->fresh);
  free((void *)e->execs);
  free((void *)e->prepared);
  free(e->places);
  planc_trace_free(e->trace);
  free(e);
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

/* RUN: calls and, within host work, the user's side. KEPT: calls that are captured. REPLAYED: of a body that was kept
 * the user's side alone. */
typedef enum manner { RUN, KEPT, REPLAYED } manner;

/* The body being expanded. */
typedef struct now {
  int64_t body, period; /* body -1: the prologue */
  planrt_step step;
  bool inside; /* it is a body, not the prologue or the epilogue */
  manner how;
} now;

static planc_status push(expected_calls *e, const expected_call *call) {
  VEC_PUSH(&e->calls, *call);
  return NULL;
}

static void expect(expected_calls *e, const now *at, recorded_call call, int32_t place, int32_t exec) {
  bool of_user = call.kind == RECORDED_ASKED || call.kind == RECORDED_GIVEN;
  if (at && at->how == (of_user ? KEPT : REPLAYED)) return;
  call.kept = at && at->how == KEPT;
  bool takes_time = call.kind == RECORDED_LAUNCH || call.kind == RECORDED_COPY;
  bool timed = takes_time && at && at->inside && e->options->timeline > 0 && !e->interleaved;
  planc_status status = push(e, &(expected_call){.call = call, .place = place, .exec = exec, .timed = timed});
  if (status) ok(status);
}

static void expect_plain(expected_calls *e, recorded_kind kind) {
  expect(e, NULL, (recorded_call){.kind = kind, .stream = -1}, -1, -1);
}

static void expect_poison(expected_calls *e, const now *at, int32_t stream, const char *to, int64_t bytes) {
  if (!e->options->poison || (stream < 0 && (e->options->concurrent || e->interleaved))) return;
  expect(e, at, (recorded_call){.kind = RECORDED_POISON, .stream = stream, .to = to, .bytes = bytes}, -1, -1);
}

/* What is acquired is poisoned before its first use. */
static void use(expected_calls *e, const now *at, int32_t stream, int32_t residency) {
  if (residency < 0 || !e->fresh[residency]) return;
  e->fresh[residency] = false;
  expect_poison(e, at, stream, expected_residency(e, residency), e->trace->buffers[e->buffer[residency]].bytes);
}

static void expect_exec(expected_calls *e, const now *at, const planc_instr *instr, int32_t exec) {
  const planc_instance *instance = &e->trace->instances[instr->id];
  for (int32_t k = 0; k < instance->n_accesses; k++) use(e, at, instr->stream, e->plan->uses[instr->first_use + k]);
  const char *workspace = e->arenas[DEVICE] + instr->address;
  recorded_call call = {.kind = RECORDED_LAUNCH,
                        .stream = instr->stream,
                        .id = instr->id,
                        .to = workspace,
                        .bytes = instr->bytes,
                        .algorithm = e->plan->algorithms[instr->aux],
                        .launch = {.step = at->step, .seed = e->options->seed}};
  call.launch.step.period = at->period;
  expect_poison(e, at, instr->stream, workspace, instr->bytes);
  expect(e, at, call, -1, exec);
  if (e->options->verify && at->inside)
    expect(e, at, (recorded_call){.kind = RECORDED_DIGEST, .stream = instr->stream, .id = instr->id}, -1, exec);
  expect_poison(e, at, instr->stream, workspace, instr->bytes);
}

static int64_t iteration_of(const expected_calls *e, const planc_buffer *buffer, int64_t period) {
  return period * e->trace->jobs[buffer->job].iterations + (buffer->iteration > 0 ? buffer->iteration : 0);
}

static int32_t lane_of(const expected_calls *e, int32_t lane) {
  return e->plan->n_streams + lane;
}

static void expect_handover_event(expected_calls *e, const now *at, recorded_kind kind, int32_t stream, int32_t event,
                                  int64_t body) {
  int32_t id = e->plan->n_events + e->handover * N_HANDOVER_EVENTS + event;
  if (event == TAKEN) id += (int32_t)(body % ROWS_IN_TURN);
  expect(e, at, (recorded_call){.kind = kind, .stream = stream, .id = id, .number = body}, -1, -1);
}

/* Samples: asked of the user on his lane, as soon as the last ones have left their place, then copied. */
static void expect_feed(expected_calls *e, const now *at, const planc_buffer *buffer, recorded_call copy) {
  const planc_job *job = &e->trace->jobs[buffer->job];
  int32_t place = samples_of(e, e->handover), lane = lane_of(e, LANE_IN);
  recorded_call asked = {.kind = RECORDED_ASKED,
                         .stream = lane,
                         .bytes = copy.bytes,
                         .job = buffer->job,
                         .storage = buffer->storage,
                         .round = -1,
                         .iteration = iteration_of(e, buffer, at->period),
                         .count = buffer->round < 0 ? job->batch : job->rounds[buffer->round]};
  for (int32_t r = 0; r < buffer->round; r++) asked.offset += job->rounds[r];
  if (at->body > 0) expect_handover_event(e, at, RECORDED_WAIT, lane, TAKEN, at->body - 1);
  expect(e, at, (recorded_call){.kind = RECORDED_HOST, .stream = lane, .number = at->period}, -1, -1);
  expect(e, at, asked, place, -1);
  expect_handover_event(e, at, RECORDED_RECORD, lane, READY, at->body);
  expect_handover_event(e, at, RECORDED_WAIT, copy.stream, READY, at->body);
  expect(e, at, copy, place, -1);
  expect_handover_event(e, at, RECORDED_RECORD, copy.stream, TAKEN, at->body);
}

/* A result: copied to a row that has been taken, then given to the user on his lane. */
static void expect_delivery(expected_calls *e, const now *at, const planc_buffer *buffer, recorded_call copy) {
  int64_t row =
      e->options->replay ? CAPTURED_ROW : at->period % (e->options->verify ? PLANRT_VERIFY_PERIODS : ROWS_IN_TURN);
  int32_t place = result_of(e, (int32_t)(buffer - e->trace->buffers), row), lane = lane_of(e, LANE_OUT);
  recorded_call given = {.kind = RECORDED_GIVEN,
                         .stream = lane,
                         .bytes = copy.bytes,
                         .job = buffer->job,
                         .storage = buffer->storage,
                         .round = buffer->round,
                         .iteration = iteration_of(e, buffer, at->period)};
  if (e->options->sink && at->body >= ROWS_IN_TURN)
    expect_handover_event(e, at, RECORDED_WAIT, copy.stream, TAKEN, at->body - ROWS_IN_TURN);
  expect(e, at, copy, place, -1);
  if (!e->options->sink) return;
  expect_handover_event(e, at, RECORDED_RECORD, copy.stream, READY, at->body);
  expect_handover_event(e, at, RECORDED_WAIT, lane, READY, at->body);
  expect(e, at, (recorded_call){.kind = RECORDED_HOST, .stream = lane, .number = at->period}, -1, -1);
  expect(e, at, given, place, -1);
  expect_handover_event(e, at, RECORDED_RECORD, lane, TAKEN, at->body);
}

static bool on_device(const expected_calls *e, int32_t residency) {
  return residency != PLANC_USER && e->memory[residency] == DEVICE;
}

static void expect_copy(expected_calls *e, const now *at, const planc_instr *instr) {
  static const rt_direction directions[2][2] = {{RT_H2H, RT_H2D}, {RT_D2H, RT_D2D}};
  int32_t to = instr->id, from = instr->aux, buffer = e->buffer[to == PLANC_USER ? from : to];
  const planc_buffer *of = &e->trace->buffers[buffer];
  rt_direction direction = directions[on_device(e, from)][on_device(e, to)];
  recorded_call copy = {.kind = RECORDED_COPY,
                        .stream = instr->stream,
                        .id = (int32_t)direction,
                        .to = to == PLANC_USER ? NULL : expected_residency(e, to),
                        .from = from == PLANC_USER ? NULL : expected_residency(e, from),
                        .bytes = of->bytes,
                        .pinned = direction != RT_D2D};
  use(e, at, instr->stream, from);
  use(e, at, instr->stream, to);
  if (!is_handover(instr))
    expect(e, at, copy, -1, -1);
  else if (!at->inside)
    expect(e, at, copy, buffer, -1);
  else if (to == PLANC_USER)
    expect_delivery(e, at, of, copy);
  else
    expect_feed(e, at, of, copy);
  e->handover += is_handover(instr);
}

static void expect_event(expected_calls *e, const now *at, const planc_instr *instr) {
  bool wait = instr->op == PLANC_INSTR_wait;
  recorded_call call = {.kind = wait ? RECORDED_WAIT : RECORDED_RECORD,
                        .stream = instr->stream,
                        .id = instr->id,
                        .number = wait ? at->body - instr->lag : at->body};
  expect(e, at, call, -1, -1);
}

static void expect_section(expected_calls *e, const now *at, const planc_section *section) {
  int32_t execs = 0;
  e->handover = 0;
  memset(e->fresh, 0, (size_t)e->plan->n_residencies * sizeof *e->fresh);
  for (int32_t i = 0; i < section->n; i++) {
    const planc_instr *instr = &section->instrs[i];
    switch ((planc_instr_op)instr->op) {
      case PLANC_INSTR_exec:
        expect_exec(e, at, instr, execs++);
        break;
      case PLANC_INSTR_acquire:
        e->fresh[instr->id] = true;
        break;
      case PLANC_INSTR_release:
        expect_poison(e, at, -1, expected_residency(e, instr->id), e->trace->buffers[e->buffer[instr->id]].bytes);
        break;
      case PLANC_INSTR_copy:
        expect_copy(e, at, instr);
        break;
      case PLANC_INSTR_record:
      case PLANC_INSTR_wait:
        expect_event(e, at, instr);
        break;
    }
  }
}

/* --- Opening and running ------------------------------------------------------------------------------------------ */

void expected_opening(expected_calls *e) {
  const planrt_options *o = e->options;
  expect(e, NULL,
         (recorded_call){.kind = RECORDED_OPEN,
                         .stream = -1,
                         .options = {.arena_bytes = e->plan->memories[DEVICE].arena_bytes,
                                     .host_arena_bytes = e->plan->memories[HOST].arena_bytes,
                                     .n_streams = e->plan->n_streams + (e->n_handovers > 0 ? N_LANES : 0),
                                     .n_events = e->plan->n_events + e->n_handovers * N_HANDOVER_EVENTS,
                                     .concurrent = o->concurrent,
                                     .synthetic = o->synthetic,
                                     .deterministic = o->deterministic || o->verify,
                                     .link_bytes_per_s = o->link_bytes_per_s,
                                     .jitter = o->jitter}},
         -1, -1);
  expect_plain(e, RECORDED_PIN);
  for (int32_t i = 0; i < e->n_execs; i++) {
    const planc_instr *exec = e->execs[i];
    expect(e, NULL,
           (recorded_call){.kind = RECORDED_PREPARE,
                           .stream = -1,
                           .id = exec->id,
                           .to = e->arenas[DEVICE] + exec->address,
                           .bytes = exec->bytes,
                           .algorithm = e->plan->algorithms[exec->aux]},
           -1, i);
  }
  if (o->replay) {
    expect_plain(e, RECORDED_CAPTURE);
    expect_section(e, &(now){.inside = true, .how = KEPT}, &e->plan->body);
    expect_plain(e, RECORDED_CAPTURED);
  }
  expect_plain(e, RECORDED_TAKEN);
}

static void expect_body(expected_calls *e, now at) {
  at.inside = true;
  at.how = e->options->replay ? REPLAYED : RUN;
  if (at.how == REPLAYED) {
    rt_launch launch = {.step = at.step, .seed = e->options->seed};
    launch.step.period = at.period;
    expect(e, NULL, (recorded_call){.kind = RECORDED_REPLAY, .stream = -1, .launch = launch, .number = at.period}, -1,
           -1);
  }
  expect_section(e, &at, &e->plan->body);
  if (at.how == REPLAYED && e->options->verify) expect_plain(e, RECORDED_SYNCHRONIZE);
}

void expected_run(expected_calls *e, planrt_step step, int64_t asked, int64_t periods) {
  int64_t most = e->options->verify ? PLANRT_VERIFY_PERIODS : periods, warm = asked < 4 ? 1 : asked / 4;
  bool timed = periods > warm && !e->options->verify && e->options->timeline == 0 && !e->interleaved;
  do {
    int64_t part = periods < most ? periods : most;
    expect_plain(e, RECORDED_FORGET);
    expect_section(e, &(now){.body = -1, .period = step.period - 1, .step = step}, &e->plan->prologue);
    for (int64_t b = 0; b < part; b++) {
      expect_body(e, (now){.body = b, .period = step.period + b, .step = step});
      /* Bodies are timed behind the first quarter of those asked for, the first at least, to the end of the last. */
      if (timed && (b + 1 == warm || b + 1 == part)) expect_plain(e, RECORDED_SYNCHRONIZE);
    }
    /* Of several jobs it is known which have failed before any takes home what it has made. */
    if (e->plan->n_jobs > 1 && !e->interleaved) expect_plain(e, RECORDED_SYNCHRONIZE);
    expect_section(e, &(now){.body = part, .period = step.period + part, .step = step}, &e->plan->epilogue);
    expect_plain(e, RECORDED_SYNCHRONIZE);
    step.period += part;
    periods -= part;
  } while (periods > 0);
}

void expected_interleaved(expected_calls *e, planrt_step step, int64_t periods) {
  e->interleaved = true;
  expected_run(e, step, periods, periods);
}
