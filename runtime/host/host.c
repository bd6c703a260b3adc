/* The host backend: arenas of exactly the plan's sizes between guard pages; streams as threads, or work done as it is
 * enqueued. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/host/digest.h"
#include "runtime/host/host_memory.h"
#include "runtime/host/host_prepare.h"
#include "runtime/host/host_storage.h"
#include "runtime/host/work.h"
#include "runtime/random.h"
#include "util/clock.h"

enum { UNRECORDED = -2 };

struct rt_device {
  rt_device_options options;
  rt_block arena, host_arena;
  rt_storage storage;
  rt_preparer preparer;
  pthread_mutex_t user_lock; /* held during host work */
  rt_streams *streams;       /* NULL: one thread */
  int64_t *generations;      /* one thread: by event, of its last record */
  uint64_t *draws;           /* by stream: delays drawn so far */
};

/* --- Time --------------------------------------------------------------------------------------------------------- */

static void sleep_until(int64_t when_ns) {
  struct timespec when = {.tv_sec = when_ns / 1000000000, .tv_nsec = when_ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) {
  }
}

/* A delay before one piece of work in four, up to a quarter of a millisecond. */
static void jitter(rt_device *device, int32_t stream) {
  uint64_t draw = rt_random(device->options.jitter + (uint64_t)stream, device->draws[stream]++);
  if ((draw & 3) == 0) sleep_until(pl_now_ns() + (int64_t)((draw >> 8) % 250000));
}

/* --- Work --------------------------------------------------------------------------------------------------------- */

static planc_status copy_now(const rt_device *device, const rt_work *work, int64_t start_ns);
static planc_status poison_now(const rt_device *device, const rt_work *work);

static planc_status perform(void *user, int32_t stream, const rt_work *work) {
  rt_device *device = user;
  planc_status status = NULL;
  if (device->options.jitter) jitter(device, stream);
  int64_t begin = work->span || work->kind == RT_WORK_COPY ? pl_now_ns() : 0;
  switch ((rt_work_kind)work->kind) {
    case RT_WORK_CALL:
      status = planc_context(rt_prepared_run(work->call, &work->launch), "op %s", work->call->op->name);
      break;
    case RT_WORK_COPY:
      status = copy_now(device, work, begin);
      break;
    case RT_WORK_HOST:
      pthread_mutex_lock(&device->user_lock);
      status = work->host(work->user, work->from, work->generation);
      pthread_mutex_unlock(&device->user_lock);
      break;
    case RT_WORK_DIGEST:
      *(uint64_t *)work->to = rt_digest_of(work->call);
      break;
    case RT_WORK_POISON:
      status = poison_now(device, work);
      break;
    case RT_WORK_RECORD:
    case RT_WORK_WAIT:
      break;
  }
  if (work->span) *work->span = (rt_span){begin, pl_now_ns()};
  return status;
}

/* Storage has a pace of its own. */
static planc_status copy_now(const rt_device *device, const rt_work *work, int64_t start_ns) {
  if (work->direction == RT_H2S) return rt_storage_write(&device->storage, work->to, work->from, work->bytes);
  if (work->direction == RT_S2H) return rt_storage_read(&device->storage, work->to, work->from, work->bytes);
  if (work->bytes > 0) memmove(work->to, work->from, (size_t)work->bytes);
  int64_t rate = device->options.link_bytes_per_s;
  if (rate > 0 && (work->direction == RT_H2D || work->direction == RT_D2H))
    sleep_until(start_ns + (int64_t)((double)work->bytes * 1e9 / (double)rate));
  return NULL;
}

static planc_status poison_now(const rt_device *device, const rt_work *work) {
  enum { POISON = 0xff };
  if (rt_storage_has(&device->storage, work->to))
    return rt_storage_fill(&device->storage, work->to, POISON, work->bytes);
  if (work->bytes > 0) memset(work->to, POISON, (size_t)work->bytes);
  return NULL;
}

static planc_status enqueue(rt_device *device, int32_t stream, const rt_work *work) {
  if (device->streams) return rt_streams_enqueue(device->streams, stream, work);
  return perform(device, stream, work);
}

static planc_status launch(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *how,
                           rt_span *span) {
  rt_work work = {.kind = RT_WORK_CALL, .call = call, .launch = *how, .span = span};
  return enqueue(device, stream, &work);
}

static planc_status copy(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                         int64_t bytes, rt_span *span) {
  rt_work work = {
      .kind = RT_WORK_COPY, .direction = (uint8_t)direction, .to = to, .from = from, .bytes = bytes, .span = span};
  return enqueue(device, stream, &work);
}

static planc_status host(rt_device *device, int32_t stream, rt_host_work what_to_do, void *user, const void *what,
                         int64_t period) {
  rt_work work = {.kind = RT_WORK_HOST, .host = what_to_do, .user = user, .from = what, .generation = period};
  return enqueue(device, stream, &work);
}

static planc_status digest(rt_device *device, int32_t stream, const rt_call *call, uint64_t *out) {
  rt_work work = {.kind = RT_WORK_DIGEST, .call = call, .to = out};
  return enqueue(device, stream, &work);
}

static planc_status poison(rt_device *device, int32_t stream, void *to, int64_t bytes) {
  rt_work work = {.kind = RT_WORK_POISON, .to = to, .bytes = bytes};
  return enqueue(device, stream, &work);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static planc_status record(rt_device *device, int32_t stream, int32_t event, int64_t generation) {
  if (!device->streams) {
    device->generations[event] = generation;
    return NULL;
  }
  rt_work work = {.kind = RT_WORK_RECORD, .event = event, .generation = generation};
  return rt_streams_enqueue(device->streams, stream, &work);
}

static bool reached(const rt_device *device, int32_t event, int64_t generation) {
  if (device->streams) return rt_streams_reached(device->streams, event, generation);
  return device->generations[event] >= generation;
}

static planc_status await(rt_device *device, int32_t stream, int32_t event, int64_t generation) {
  if (device->streams) {
    rt_work work = {.kind = RT_WORK_WAIT, .event = event, .generation = generation};
    return rt_streams_enqueue(device->streams, stream, &work);
  }
  if (reached(device, event, generation)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "stream %d waits for event %d before it is recorded", stream, event);
}

static void forget(rt_device *device) {
  if (device->streams) rt_streams_forget(device->streams);
  for (int32_t e = 0; e < device->options.n_events; e++) device->generations[e] = UNRECORDED;
}

static planc_status end_lap(rt_device *device) {
  if (device->streams) rt_streams_end_lap(device->streams);
  return NULL;
}

static planc_status synchronize(rt_device *device) {
  if (device->streams) PLANC_TRY(rt_streams_synchronize(device->streams));
  PLANC_TRY(rt_block_check(&device->arena, "the arena"));
  return rt_block_check(&device->host_arena, "the host arena");
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static planc_status fill_device(rt_device *device) {
  const rt_device_options *options = &device->options;
  PLANC_TRY(rt_preparer_open(options->synthetic, &device->preparer));
  if (options->chunk_bytes > 0) {
    PLANC_TRY(rt_block_map(options->arena_bytes, options->chunk_bytes, options->mappings, options->n_mappings,
                           "an arena", &device->arena));
  } else {
    PLANC_TRY(rt_block_new(options->arena_bytes, "an arena", &device->arena));
  }
  PLANC_TRY(rt_block_new(options->host_arena_bytes, "a host arena", &device->host_arena));
  if (options->storage_bytes > 0)
    PLANC_TRY(rt_storage_new(options->storage_bytes, options->storage_path, &device->storage));
  device->generations = calloc((size_t)options->n_events + 1, sizeof *device->generations);
  device->draws = calloc((size_t)options->n_streams + 1, sizeof *device->draws);
  if (!device->generations || !device->draws) return planc_error(PLANC_OUT_OF_MEMORY, "events");
  if (options->concurrent)
    PLANC_TRY(rt_streams_new(options->n_streams, options->n_events, perform, device, &device->streams));
  forget(device);
  return NULL;
}

static void close_device(rt_device *device) {
  rt_streams_free(device->streams);
  rt_preparer_close(&device->preparer);
  rt_block_free(&device->arena);
  rt_block_free(&device->host_arena);
  rt_storage_free(&device->storage);
  pthread_mutex_destroy(&device->user_lock);
  free(device->generations);
  free(device->draws);
  free(device);
}

static planc_status open_device(const rt_device_options *options, rt_device **out) {
  rt_device *device = calloc(1, sizeof *device);
  if (!device) return planc_error(PLANC_OUT_OF_MEMORY, "host device");
  device->options = *options;
  pthread_mutex_init(&device->user_lock, NULL);
  planc_status status = fill_device(device);
  if (status)
    close_device(device);
  else
    *out = device;
  return status;
}

/* --- Memory and calls --------------------------------------------------------------------------------------------- */

static char *arena(const rt_device *device) {
  return device->arena.data;
}

static char *host_arena(const rt_device *device) {
  return device->host_arena.data;
}

static char *storage(const rt_device *device) {
  return device->storage.data;
}

static planc_status variants(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count) {
  return rt_host_variants(&device->preparer, call, out, out_count);
}

static planc_status workspace(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  rt_variant found[RT_MAX_VARIANTS];
  int32_t count;
  *out_bytes = -1;
  PLANC_TRY(rt_host_variants(&device->preparer, call, found, &count));
  for (int32_t i = 0; i < count; i++)
    if (strcmp(found[i].algorithm, call->algorithm) == 0) *out_bytes = found[i].workspace_bytes;
  return NULL;
}

static planc_status prepare(rt_device *device, rt_call *call) {
  return rt_host_prepare(&device->preparer, call);
}

/* --- The machine -------------------------------------------------------------------------------------------------- */

static planc_status info(rt_device_info *out) {
  char line[512];
  *out = (rt_device_info){.dtypes = "f32, bf16",
                          .memory_bytes = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE),
                          .processors = (int32_t)sysconf(_SC_NPROCESSORS_ONLN)};
  snprintf(out->device, sizeof out->device, "unknown processor");
  snprintf(out->versions, sizeof out->versions, "%s", planrt_host_library());
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (!file && errno == ENOMEM) return planc_error(PLANC_OUT_OF_MEMORY, "the processor's name");
  while (file && fgets(line, sizeof line, file)) {
    const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    if (!value) continue;
    snprintf(out->device, sizeof out->device, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    break;
  }
  if (file) fclose(file);
  return NULL;
}

/* Copies of the host are its own: they wait for no pages. */
static planc_status pin(rt_device *device, void *memory, int64_t bytes) {
  (void)device, (void)memory, (void)bytes;
  return NULL;
}

static planc_status taken(const rt_device *device, int64_t *out_bytes) {
  (void)device;
  *out_bytes = 0;
  return NULL;
}

const planrt_backend rt_host_backend = {
    .name = "host",
    .info = info,
    .open = open_device,
    .close = close_device,
    .takes_one = true,
    .maps = true,
    .parts = true,
    .arena = arena,
    .host_arena = host_arena,
    .storage = storage,
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
    .end_lap = end_lap,
    .synchronize = synchronize,
};
