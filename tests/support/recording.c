/* The recording backend (recording.h). */
#include "tests/support/recording.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/random.h"
#include "tests/support/unit.h"
#include "util/math.h"
#include "util/vec.h"

enum { UNRECORDED = -2, MAX_DEVICES = 8 };

/* What was last launched on a stream. */
typedef struct launched {
  const rt_call *call;
  uint64_t mark;
  int64_t period;
} launched;

struct rt_device {
  int32_t index;
  bool closed;
  rt_device_options options;
  char *arena, *host_arena;
  const char *pinned;
  int64_t pinned_bytes;
  int64_t *generations; /* by event */
  launched *launched;   /* by stream */
  bool capturing, has_capture;
  VEC(recorded_call) kept;
  int64_t replays;      /* since the events were forgotten */
  planc_status failure; /* of work; nothing runs until it was given */
};

static struct recording {
  recording_options options;
  VEC(recorded_call) calls;
  int64_t fallible;
  rt_device *devices[MAX_DEVICES]; /* closed ones too */
  int32_t n_devices;
  const recorded_call *host_work; /* being run */
} recording;

const char *recorded_kind_name(recorded_kind kind) {
  static const char *const names[] = {"open",   "close",   "pin",      "taken",  "prepare",    "launch", "copy",
                                      "host",   "asked",   "given",    "digest", "poison",     "record", "wait",
                                      "forget", "capture", "captured", "replay", "synchronize"};
  return names[kind];
}

/* --- The record --------------------------------------------------------------------------------------------------- */

static planc_status push(const recorded_call *call) {
  VEC_PUSH(&recording.calls, *call);
  return NULL;
}

/* libcheck writes to a file whenever something is asserted: only failures are. */
static void note(const recorded_call *call) {
  planc_status status = push(call);
  if (status) ok(status);
}

static planc_status broken(const rt_device *device, const char *rule) {
  return planc_error(PLANC_INTERNAL, "device %d, call %lld: %s", device->index, (long long)recording.calls.len, rule);
}

/* Notes a call that gives a status, and says whether it is the one to fail. */
static planc_status enter(const rt_device *device, const recorded_call *call) {
  note(call);
  if (device && device->closed) return broken(device, "the device is closed");
  if (++recording.fallible != recording.options.fail_at) return NULL;
  return planc_error(PLANC_DEVICE, "call %lld, %s, fails", (long long)recording.fallible,
                     recorded_kind_name(call->kind));
}

void recording_start(const recording_options *options) {
  recording = (struct recording){0};
  if (options) recording.options = *options;
}

void recording_end(void) {
  for (int32_t d = 0; d < recording.n_devices; d++) {
    ck_assert_msg(recording.devices[d]->closed, "device %d is open", d);
    free(recording.devices[d]);
  }
  VEC_FREE(&recording.calls);
}

const rt_device *recording_device(int32_t index) {
  ck_assert_int_lt(index, recording.n_devices);
  return recording.devices[index];
}
int64_t recording_length(void) {
  return recording.calls.len;
}
const recorded_call *recording_at(int64_t index) {
  return &recording.calls.data[index];
}
int64_t recording_fallible(void) {
  return recording.fallible;
}

/* --- The user's side ---------------------------------------------------------------------------------------------- */

static recorded_call of_user(recorded_kind kind) {
  const recorded_call *by = recording.host_work;
  return (recorded_call){.kind = kind, .device = by ? by->device : -1, .stream = by ? by->stream : -1};
}

planc_status recording_feed(void *user, const planrt_feed_request *request) {
  (void)user;
  recorded_call call = of_user(RECORDED_ASKED);
  call.to = request->out;
  call.bytes = request->bytes;
  call.job = request->job;
  call.storage = request->storage;
  call.round = -1;
  call.iteration = request->iteration;
  call.offset = request->offset;
  call.count = request->count;
  note(&call);
  uint64_t key = rt_mix((uint64_t)request->iteration * 1000 + (uint64_t)request->offset * 10 +
                        (uint64_t)request->storage * 100000 + (uint64_t)request->job);
  for (int64_t i = 0; i < request->bytes; i++) ((char *)request->out)[i] = (char)rt_random(key, (uint64_t)i);
  return NULL;
}

planc_status recording_sink(void *user, const planrt_result *result) {
  (void)user;
  recorded_call call = of_user(RECORDED_GIVEN);
  call.from = result->data;
  call.bytes = result->bytes;
  call.job = result->job;
  call.storage = result->storage;
  call.round = result->round;
  call.iteration = result->iteration;
  note(&call);
  return NULL;
}

/* --- Work --------------------------------------------------------------------------------------------------------- */

static bool is_wrong(const rt_device *device, int64_t wrong, int64_t period) {
  return device->index == 0 && wrong > 0 && period + 1 == wrong;
}

static uint64_t mark_of(const rt_call *call, const rt_launch *launch) {
  uint64_t rate;
  memcpy(&rate, &launch->step.learning_rate, sizeof rate);
  uint64_t mark = rt_mix(launch->seed + launch->inference);
  mark = rt_mix(mark + (uint64_t)launch->step.period);
  return rt_mix(rt_mix(mark + rate) + (uint64_t)call->instance);
}

static void fill(const rt_operand *operand, uint64_t key) {
  if (operand->data)
    for (int64_t i = 0; i < operand->bytes; i++) ((char *)operand->data)[i] = (char)rt_random(key, (uint64_t)i);
}

static void run_launch(rt_device *device, const recorded_call *work) {
  const rt_call *call = work->call;
  uint64_t mark = mark_of(call, &work->launch);
  device->launched[work->stream] = (launched){call, mark, work->launch.step.period};
  if (is_wrong(device, recording.options.wrong_results, work->launch.step.period)) mark++;
  for (int32_t i = 0; i < call->n_out; i++) fill(&call->out[i], mark + (uint64_t)i);
  for (int32_t i = 0; i < call->n_effects; i++) fill(&call->effects[i], ~mark + (uint64_t)i);
}

static planc_status run_digest(rt_device *device, const recorded_call *work) {
  const launched *last = &device->launched[work->stream];
  if (last->call != work->call) return broken(device, "a digest of another call than the last on the stream");
  *work->digest = last->mark + is_wrong(device, recording.options.wrong_digests, last->period);
  return NULL;
}

static planc_status run_host(const recorded_call *work) {
  recording.host_work = work;
  planc_status status = work->work(work->user, work->what, work->number);
  recording.host_work = NULL;
  return status;
}

static planc_status run_work(rt_device *device, const recorded_call *work) {
  if (work->span) *work->span = (rt_span){recording.calls.len, recording.calls.len + 1};
  switch (work->kind) {
    case RECORDED_LAUNCH:
      run_launch(device, work);
      return NULL;
    case RECORDED_COPY:
      if (work->bytes > 0) memmove((void *)work->to, work->from, (size_t)work->bytes);
      return NULL;
    case RECORDED_HOST:
      return run_host(work);
    case RECORDED_DIGEST:
      return run_digest(device, work);
    case RECORDED_POISON:
      if (work->bytes > 0) memset((void *)work->to, 0xff, (size_t)work->bytes);
      return NULL;
    case RECORDED_RECORD:
      device->generations[work->id] = work->number;
      return NULL;
    default:
      if (device->generations[work->id] >= work->number) return NULL;
      return planc_error(PLANC_INVALID_PLAN, "stream %d waits for event %d before it is recorded", work->stream,
                         work->id);
  }
}

/* What failed as it ran is given by `synchronize`. */
static planc_status run_or_drop(rt_device *device, const recorded_call *work) {
  if (!device->failure) device->failure = run_work(device, work);
  if (device->options.concurrent) return NULL;
  planc_status failure = device->failure;
  device->failure = NULL;
  return failure;
}

static planc_status keep(rt_device *device, const recorded_call *work) {
  VEC_PUSH(&device->kept, *work);
  return NULL;
}

/* Work that is to fail does so here, or, on a device whose work runs later, then. */
static planc_status fail_late(rt_device *device, planc_status fails) {
  bool late = recording.options.fail_late && device->options.concurrent && !device->closed && !device->capturing;
  if (!late) return fails;
  if (device->failure)
    planc_status_free(fails);
  else
    device->failure = fails;
  return NULL;
}

static planc_status enqueue(rt_device *device, recorded_call *work) {
  bool streamless = work->kind == RECORDED_POISON && !device->options.concurrent && work->stream == -1;
  work->device = device->index;
  work->kept = device->capturing;
  planc_status fails = enter(device, work);
  if (fails) return fail_late(device, fails);
  if (!streamless && (work->stream < 0 || work->stream >= device->options.n_streams))
    return broken(device, "no such stream");
  return work->kept ? keep(device, work) : run_or_drop(device, work);
}

static planc_status launch(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *how,
                           rt_span *span) {
  recorded_call work = {.kind = RECORDED_LAUNCH,
                        .stream = stream,
                        .id = call->instance,
                        .call = call,
                        .to = call->workspace,
                        .bytes = call->workspace_bytes,
                        .algorithm = call->algorithm,
                        .launch = *how,
                        .span = span};
  if (call->handle != device) return broken(device, "a call that was not prepared here");
  return enqueue(device, &work);
}

static bool inside(const void *at, int64_t bytes, const char *memory, int64_t size) {
  uintptr_t begin = (uintptr_t)at, first = (uintptr_t)memory;
  return begin >= first && bytes <= size && begin - first <= (uintptr_t)(size - bytes);
}

static bool in_arena(const rt_device *device, const void *at, int64_t bytes) {
  return inside(at, bytes, device->arena, device->options.arena_bytes);
}

static bool in_host_arena(const rt_device *device, const void *at, int64_t bytes) {
  return inside(at, bytes, device->host_arena, device->options.host_arena_bytes);
}

static bool is_pinned(const rt_device *device, const void *at, int64_t bytes) {
  return inside(at, bytes, device->pinned, device->pinned_bytes) || in_host_arena(device, at, bytes);
}

static planc_status copy(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                         int64_t bytes, rt_span *span) {
  bool from_host = direction == RT_H2D || direction == RT_H2H;
  bool to_host = direction == RT_D2H || direction == RT_H2H;
  recorded_call work = {.kind = RECORDED_COPY,
                        .stream = stream,
                        .id = (int32_t)direction,
                        .to = to,
                        .from = from,
                        .bytes = bytes,
                        .span = span};
  work.pinned = (from_host || to_host) && (!from_host || is_pinned(device, from, bytes)) &&
                (!to_host || is_pinned(device, to, bytes));
  if (!to_host && !in_arena(device, to, bytes)) return broken(device, "a copy to outside the arena");
  if (!from_host && !in_arena(device, from, bytes)) return broken(device, "a copy from outside the arena");
  return enqueue(device, &work);
}

static planc_status host(rt_device *device, int32_t stream, rt_host_work work, void *user, const void *what,
                         int64_t period) {
  return enqueue(
      device, &(recorded_call){
                  .kind = RECORDED_HOST, .stream = stream, .work = work, .user = user, .what = what, .number = period});
}

static planc_status digest(rt_device *device, int32_t stream, const rt_call *call, uint64_t *out) {
  return enqueue(
      device,
      &(recorded_call){.kind = RECORDED_DIGEST, .stream = stream, .id = call->instance, .call = call, .digest = out});
}

static planc_status poison(rt_device *device, int32_t stream, void *to, int64_t bytes) {
  if (!in_arena(device, to, bytes) && !in_host_arena(device, to, bytes))
    return broken(device, "poison outside the arenas");
  return enqueue(device, &(recorded_call){.kind = RECORDED_POISON, .stream = stream, .to = to, .bytes = bytes});
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static planc_status event(rt_device *device, recorded_kind kind, int32_t stream, int32_t id, int64_t generation) {
  if (id < 0 || id >= device->options.n_events) return broken(device, "no such event");
  return enqueue(device, &(recorded_call){.kind = kind, .stream = stream, .id = id, .number = generation});
}
static planc_status record(rt_device *device, int32_t stream, int32_t id, int64_t generation) {
  return event(device, RECORDED_RECORD, stream, id, generation);
}
static planc_status await(rt_device *device, int32_t stream, int32_t id, int64_t generation) {
  return event(device, RECORDED_WAIT, stream, id, generation);
}

static bool reached(const rt_device *device, int32_t id, int64_t generation) {
  return device->generations[id] >= generation;
}

static void forget(rt_device *device) {
  note(&(recorded_call){.kind = RECORDED_FORGET, .device = device->index, .stream = -1});
  ck_assert(!device->capturing && !device->closed);
  for (int32_t e = 0; e < device->options.n_events; e++) device->generations[e] = UNRECORDED;
  device->replays = 0;
}

/* --- Capturing ---------------------------------------------------------------------------------------------------- */

/* A call without a stream. */
static planc_status plain(rt_device *device, recorded_kind kind) {
  return enter(device, &(recorded_call){.kind = kind, .device = device->index, .stream = -1});
}

static planc_status capture(rt_device *device) {
  PLANC_TRY(plain(device, RECORDED_CAPTURE));
  if (!device->options.concurrent) return broken(device, "a capture without streams");
  if (device->has_capture) return broken(device, "a device keeps one capture");
  device->capturing = device->has_capture = true;
  return NULL;
}

static planc_status captured(rt_device *device) {
  bool capturing = device->capturing;
  device->capturing = false;
  PLANC_TRY(plain(device, RECORDED_CAPTURED));
  return capturing ? NULL : broken(device, "nothing is being captured");
}

/* Of a run the r-th replay is body r; the capture was body 0. */
static planc_status replay(rt_device *device, const rt_launch *how, int64_t period) {
  recorded_call call = {
      .kind = RECORDED_REPLAY, .device = device->index, .stream = -1, .launch = *how, .number = period};
  planc_status fails = enter(device, &call);
  if (fails) return fail_late(device, fails);
  if (!device->has_capture || device->capturing) return broken(device, "there is nothing to replay");
  for (int64_t i = 0; i < device->kept.len; i++) {
    recorded_call work = device->kept.data[i];
    work.launch = *how;
    if (work.kind == RECORDED_HOST) work.number = period;
    if (work.kind == RECORDED_RECORD || work.kind == RECORDED_WAIT) work.number += device->replays;
    PLANC_TRY(run_or_drop(device, &work));
  }
  device->replays++;
  return NULL;
}

static planc_status synchronize(rt_device *device) {
  planc_status failure = device->failure, status = plain(device, RECORDED_SYNCHRONIZE);
  device->failure = NULL;
  if (!status && device->capturing) status = broken(device, "synchronised while it captures");
  if (!failure) return status;
  planc_status_free(status);
  return failure;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static char *allocate(int64_t bytes) {
  int64_t size = pl_align_up(bytes + 1, RT_ALIGNMENT);
  char *memory = aligned_alloc(RT_ALIGNMENT, (size_t)size);
  ck_assert(memory);
  memset(memory, 0xee, (size_t)size);
  return memory;
}

static planc_status open_device(const rt_device_options *options, rt_device **out) {
  recorded_call call = {.kind = RECORDED_OPEN, .device = recording.n_devices, .stream = -1, .options = *options};
  PLANC_TRY(enter(NULL, &call));
  ck_assert_int_lt(recording.n_devices, MAX_DEVICES);
  rt_device *device = calloc(1, sizeof *device);
  ck_assert(device);
  device->index = recording.n_devices;
  device->options = *options;
  device->arena = allocate(options->arena_bytes);
  device->host_arena = allocate(options->host_arena_bytes);
  device->generations = calloc((size_t)options->n_events + 1, sizeof *device->generations);
  device->launched = calloc((size_t)options->n_streams + 1, sizeof *device->launched);
  ck_assert(device->generations && device->launched);
  for (int32_t e = 0; e < options->n_events; e++) device->generations[e] = UNRECORDED;
  recording.devices[recording.n_devices++] = device;
  *out = device;
  return NULL;
}

static void close_device(rt_device *device) {
  note(&(recorded_call){.kind = RECORDED_CLOSE, .device = device->index, .stream = -1});
  ck_assert_msg(!device->closed, "device %d is closed twice", device->index);
  ck_assert_msg(!device->capturing, "device %d is closed while it captures", device->index);
  device->closed = true;
  planc_status_free(device->failure);
  VEC_FREE(&device->kept);
  free(device->arena);
  free(device->host_arena);
  free(device->generations);
  free(device->launched);
}

static char *arena(const rt_device *device) {
  return device->arena;
}
static char *host_arena(const rt_device *device) {
  return device->host_arena;
}

static planc_status pin(rt_device *device, void *memory, int64_t bytes) {
  enum { PAGE = 4096 };
  recorded_call call = {.kind = RECORDED_PIN, .device = device->index, .stream = -1, .to = memory, .bytes = bytes};
  PLANC_TRY(enter(device, &call));
  if (device->pinned) return broken(device, "pinned twice");
  if ((uintptr_t)memory % PAGE != 0 || bytes % PAGE != 0) return broken(device, "pinned memory is whole pages");
  device->pinned = memory;
  device->pinned_bytes = bytes;
  return NULL;
}

static planc_status taken(const rt_device *device, int64_t *out_bytes) {
  *out_bytes = recording.options.taken_bytes;
  return enter(device,
               &(recorded_call){.kind = RECORDED_TAKEN, .device = device->index, .stream = -1, .number = *out_bytes});
}

static planc_status memory(int64_t *out_total, int64_t *out_free) {
  *out_total = recording.options.device_bytes;
  *out_free = recording.options.device_bytes - recording.options.before_bytes;
  return NULL;
}

static planc_status context_bytes(int64_t *out_bytes) {
  if (recording.options.context_bytes == 0) return planc_error(PLANC_DEVICE, "no room for a context");
  *out_bytes = recording.options.context_bytes;
  return NULL;
}

static planc_status prepare(rt_device *device, rt_call *call) {
  recorded_call prepared = {.kind = RECORDED_PREPARE,
                            .device = device->index,
                            .stream = -1,
                            .id = call->instance,
                            .call = call,
                            .to = call->workspace,
                            .bytes = call->workspace_bytes,
                            .algorithm = call->algorithm};
  PLANC_TRY(enter(device, &prepared));
  if (call->handle) return broken(device, "prepared twice");
  call->handle = device;
  return NULL;
}

static planc_status info(rt_device_info *out) {
  *out = (rt_device_info){.device = "recorder", .dtypes = "f32"};
  return NULL;
}

static planc_status variants(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count) {
  (void)call, (void)out, (void)out_count;
  return broken(device, "a plan's algorithms are not looked for");
}

static planc_status workspace(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  (void)call, (void)out_bytes;
  return broken(device, "a plan's workspaces are not looked for");
}

const planrt_backend recording_backend = {
    .name = "recording",
    .info = info,
    .open = open_device,
    .close = close_device,
    .arena = arena,
    .host_arena = host_arena,
    .memory = memory,
    .context_bytes = context_bytes,
    .pin = pin,
    .taken = taken,
    .variants = variants,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .copy = copy,
    .host = host,
    .digest = digest,
    .poison = poison,
    .record = record,
    .wait = await,
    .reached = reached,
    .forget = forget,
    .capture = capture,
    .captured = captured,
    .replay = replay,
    .synchronize = synchronize,
};
