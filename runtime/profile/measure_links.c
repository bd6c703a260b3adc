/* Times of copies (measure.h). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/profile/measure.h"
#include "runtime/random.h"
#include "runtime/stop.h"
#include "util/size.h"

const int64_t rt_link_sizes[RT_LINK_SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
                                              4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30};

enum { COMPUTE, COPY, N_STREAMS, READY = 0, COPIED, N_EVENTS };
enum { REPETITIONS = 9, MAX_NS = 2000000000 };

typedef struct link_bench {
  const planrt_backend *backend;
  const volatile sig_atomic_t *stop; /* or NULL */
  rt_device *device;
  int64_t generation;
  int64_t memory_bytes; /* the device's or the host's, whichever is less */
  int32_t n_sizes;
  int64_t largest; /* of them: a block */
  int64_t stored;  /* bytes of storage */
  int64_t place;   /* in it, of the next copy */
} link_bench;

static planc_status look_up(link_bench *b);
static planc_status open_device(link_bench *b, int32_t host_blocks, int64_t link_bytes_per_s);
static planc_status measure(link_bench *b, int64_t link_bytes_per_s, rt_link_times *out);
static planc_status time_direction(link_bench *b, rt_direction direction, int64_t link_bytes_per_s, rt_link_times *out);
static planc_status time_memory(link_bench *b, int64_t *out_bytes_per_s);

planc_status rt_measure_links(const planrt_backend *backend, int64_t link_bytes_per_s,
                              const volatile sig_atomic_t *stop, rt_link_times *out) {
  link_bench b = {.backend = backend, .stop = stop};
  planc_status status = look_up(&b);
  if (!status) status = open_device(&b, 1, link_bytes_per_s);
  if (!status) status = measure(&b, link_bytes_per_s, out);
  if (b.device) backend->close(b.device);
  return planc_context(status, "links");
}

static planc_status measure(link_bench *b, int64_t link_bytes_per_s, rt_link_times *out) {
  out->n_sizes = b->n_sizes;
  PLANC_TRY(time_direction(b, RT_H2D, link_bytes_per_s, out));
  PLANC_TRY(time_direction(b, RT_D2H, link_bytes_per_s, out));
  if (rt_is_stopped(b->stop)) return NULL;
  return time_memory(b, &out->memory_bytes_per_s);
}

/* A block so many times as large as a cache leaves next to nothing of itself there for the block behind it. It must be
 * a small part of the device's memory, which holds two, and of the host's; up to the size that blocks usually have, a
 * smaller one still. The host as a device tells of no cache: its copies are its processor's, which larger blocks would
 * only keep busy for longer. */
static void choose_sizes(link_bench *b, int64_t cache_bytes) {
  enum { CACHES = 16, LEAST = 4, USUAL = 8, USUAL_PART = 64, PART = 16 };
  b->n_sizes = LEAST;
  while (b->n_sizes < USUAL && rt_link_sizes[b->n_sizes] <= b->memory_bytes / USUAL_PART) b->n_sizes++;
  while (b->n_sizes >= USUAL && b->n_sizes < RT_LINK_SIZES && rt_link_sizes[b->n_sizes - 1] / CACHES < cache_bytes &&
         rt_link_sizes[b->n_sizes] <= b->memory_bytes / PART)
    b->n_sizes++;
  b->largest = rt_link_sizes[b->n_sizes - 1];
}

static planc_status look_up(link_bench *b) {
  rt_device_info info;
  PLANC_TRY(b->backend->info(&info));
  int64_t host = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  b->memory_bytes = info.memory_bytes < host ? info.memory_bytes : host;
  choose_sizes(b, info.cache_bytes);
  return NULL;
}

/* With two blocks of the device's memory, and as many of the host's as copies use at once. */
static planc_status open_device(link_bench *b, int32_t host_blocks, int64_t link_bytes_per_s) {
  rt_device_options options = {.arena_bytes = 2 * b->largest,
                               .host_arena_bytes = host_blocks * b->largest,
                               .n_streams = N_STREAMS,
                               .n_events = N_EVENTS,
                               .concurrent = true,
                               .link_bytes_per_s = link_bytes_per_s};
  return b->backend->open(&options, &b->device);
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

typedef struct ends {
  void *to;
  const void *from;
} ends;

/* Each copy has another place in storage than the one before, which the disk may still have at hand. */
static char *next_place(link_bench *b, int64_t bytes) {
  if (b->place + bytes > b->stored) b->place = 0;
  char *place = b->backend->storage(b->device) + b->place;
  b->place += bytes;
  return place;
}

static ends ends_of(link_bench *b, rt_direction direction, int64_t bytes) {
  char *arena = b->backend->arena(b->device), *slot = b->backend->host_arena(b->device);
  if (direction == RT_H2S) return (ends){next_place(b, bytes), slot};
  if (direction == RT_S2H) return (ends){slot, next_place(b, bytes)};
  return direction == RT_H2D ? (ends){arena, slot} : (ends){slot, arena};
}

/* A copy as a plan has it: behind work on the compute stream, and awaited there. The empty copies on the compute stream
 * are those two pieces of work. */
static planc_status hand_over(link_bench *b, rt_direction direction, int64_t bytes, int64_t *out_ns) {
  const planrt_backend *on = b->backend;
  char *arena = on->arena(b->device);
  rt_span before, after;
  ends copied = ends_of(b, direction, bytes);
  PLANC_TRY(on->copy(b->device, COMPUTE, RT_D2D, arena, arena, 0, &before));
  PLANC_TRY(on->record(b->device, COMPUTE, READY, b->generation));
  PLANC_TRY(on->wait(b->device, COPY, READY, b->generation));
  PLANC_TRY(on->copy(b->device, COPY, direction, copied.to, copied.from, bytes, NULL));
  PLANC_TRY(on->record(b->device, COPY, COPIED, b->generation));
  PLANC_TRY(on->wait(b->device, COMPUTE, COPIED, b->generation));
  PLANC_TRY(on->copy(b->device, COMPUTE, RT_D2D, arena, arena, 0, &after));
  PLANC_TRY(on->synchronize(b->device));
  b->generation++;
  *out_ns = after.start_ns - before.end_ns;
  return NULL;
}

/* The median of several, the first left out; of few where one takes long. 0 when it is stopped before. */
static planc_status time_copy(link_bench *b, rt_direction direction, int64_t bytes, int64_t *out_ns) {
  int64_t times[REPETITIONS], unused, sum = 0;
  int32_t n = 0;
  if (!rt_is_stopped(b->stop)) PLANC_TRY(hand_over(b, direction, bytes, &unused));
  while (n < REPETITIONS && sum < MAX_NS && !rt_is_stopped(b->stop)) {
    PLANC_TRY(hand_over(b, direction, bytes, &times[n]));
    sum += times[n++];
  }
  *out_ns = n > 0 ? rt_statistic_of(times, n).median_ns : 0;
  return NULL;
}

static planc_status time_beside(link_bench *b, rt_direction direction, planc_status started, rt_background *background,
                                int64_t *out_ns) {
  PLANC_TRY(started);
  planc_status status = time_copy(b, direction, b->largest, out_ns);
  planc_status stopped = rt_background_stop(background);
  if (!status) return stopped;
  planc_status_free(stopped);
  return status;
}

static planc_status time_direction(link_bench *b, rt_direction direction, int64_t link_bytes_per_s,
                                   rt_link_times *out) {
  for (int32_t s = 0; s < b->n_sizes; s++)
    PLANC_TRY(time_copy(b, direction, rt_link_sizes[s], &out->alone_ns[direction][s]));
  if (rt_is_stopped(b->stop)) return NULL;
  rt_background *background = NULL;
  rt_direction other = direction == RT_H2D ? RT_D2H : RT_H2D;
  planc_status started = rt_background_copy(b->backend, other, link_bytes_per_s, &background);
  PLANC_TRY(time_beside(b, direction, started, background, &out->both_ns[direction]));
  if (rt_is_stopped(b->stop)) return NULL;
  started = rt_background_load(b->backend, 1000000, &background);
  return time_beside(b, direction, started, background, &out->under_load_ns[direction]);
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static planc_status time_memory(link_bench *b, int64_t *out_bytes_per_s) {
  int64_t times[REPETITIONS];
  char *arena = b->backend->arena(b->device);
  for (int32_t i = 0; i < REPETITIONS; i++) {
    rt_span span;
    PLANC_TRY(b->backend->copy(b->device, COMPUTE, RT_D2D, arena, arena + b->largest, b->largest, &span));
    PLANC_TRY(b->backend->synchronize(b->device));
    times[i] = span.end_ns - span.start_ns;
  }
  int64_t median = rt_statistic_of(times, REPETITIONS).median_ns;
  *out_bytes_per_s = (int64_t)(2e9 * (double)b->largest / (double)(median > 0 ? median : 1));
  return NULL;
}

/* --- Storage ------------------------------------------------------------------------------------------------------ */

static planc_status find_room(link_bench *b, const char *directory);
static planc_status measure_storage(link_bench *b, rt_storage_times *out);

planc_status rt_measure_storage(const planrt_backend *backend, const char *directory, const volatile sig_atomic_t *stop,
                                rt_storage_times *out) {
  link_bench b = {.backend = backend, .stop = stop};
  if (!backend->storage) return planc_error(PLANC_DEVICE, "backend %s has no storage", backend->name);
  planc_status status = look_up(&b);
  if (!status) status = find_room(&b, directory);
  if (!status) status = measure_storage(&b, out);
  if (b.device) backend->close(b.device);
  return planc_context(status, "storage");
}

enum { PLACES = 4, LEAST_STORED_SIZES = 2 };

static planc_status open_storage(link_bench *b, const char *directory) {
  b->largest = rt_link_sizes[RT_FIRST_STORED + b->n_sizes - 1];
  b->stored = PLACES * b->largest;
  rt_device_options options = {.host_arena_bytes = b->largest,
                               .storage_bytes = b->stored,
                               .storage_path = directory,
                               .n_streams = N_STREAMS,
                               .n_events = N_EVENTS,
                               .concurrent = true};
  return b->backend->open(&options, &b->device);
}

int64_t rt_least_stored(void) {
  return PLACES * rt_link_sizes[RT_FIRST_STORED + LEAST_STORED_SIZES - 1];
}

/* With less in a directory that has no room for all. */
static planc_status find_room(link_bench *b, const char *directory) {
  enum { PART = 16 };
  b->n_sizes = RT_STORED_SIZES;
  while (b->n_sizes > LEAST_STORED_SIZES && rt_link_sizes[RT_FIRST_STORED + b->n_sizes - 1] > b->memory_bytes / PART)
    b->n_sizes--;
  planc_status status = open_storage(b, directory);
  while (planc_status_code(status) == PLANC_DEVICE && b->n_sizes > LEAST_STORED_SIZES) {
    planc_status_free(status);
    b->n_sizes--;
    status = open_storage(b, directory);
  }
  return status;
}

/* Bytes that no disk makes short work of, and in all of the file: what was never written is not read from the disk. */
static planc_status fill_storage(link_bench *b) {
  char *slot = b->backend->host_arena(b->device);
  int64_t unused;
  for (int64_t i = 0; i < b->largest / (int64_t)sizeof(uint64_t); i++) {
    uint64_t draw = rt_random(0, (uint64_t)i);
    memcpy(slot + i * (int64_t)sizeof draw, &draw, sizeof draw);
  }
  for (int k = 0; k < PLACES && !rt_is_stopped(b->stop); k++) PLANC_TRY(hand_over(b, RT_H2S, b->largest, &unused));
  return NULL;
}

static planc_status measure_storage(link_bench *b, rt_storage_times *out) {
  static const rt_direction directions[] = {[RT_STORE] = RT_H2S, [RT_LOAD] = RT_S2H};
  out->n_sizes = b->n_sizes;
  PLANC_TRY(fill_storage(b));
  for (int d = 0; d < 2; d++)
    for (int32_t s = 0; s < b->n_sizes; s++)
      PLANC_TRY(time_copy(b, directions[d], rt_link_sizes[RT_FIRST_STORED + s], &out->ns[d][s]));
  return NULL;
}

/* --- Rates -------------------------------------------------------------------------------------------------------- */

static planc_status check_bytes(const link_bench *b, int64_t bytes);
static planc_status measure_rates(link_bench *b, int64_t bytes, rt_link_rates *out);

planc_status rt_measure_rates(const planrt_backend *backend, int64_t link_bytes_per_s, int64_t bytes,
                              rt_link_rates *out) {
  link_bench b = {.backend = backend};
  planc_status status = look_up(&b);
  if (!status) status = check_bytes(&b, bytes);
  if (!status) status = open_device(&b, 2, link_bytes_per_s);
  if (!status) status = measure_rates(&b, bytes, out);
  if (b.device) backend->close(b.device);
  return planc_context(status, "links");
}

/* Enqueues blocks in the directions of `which`, a stream each, which begin together, and gives from when to when each
 * direction copied. */
static planc_status copy_blocks(link_bench *b, const bool which[2], int64_t blocks, rt_span out[2]) {
  rt_span first[2] = {{0}}, last[2] = {{0}}, gate;
  char *arena = b->backend->arena(b->device), *slots = b->backend->host_arena(b->device);
  PLANC_TRY(b->backend->copy(b->device, COMPUTE, RT_D2D, arena, arena, 0, &gate));
  PLANC_TRY(b->backend->record(b->device, COMPUTE, READY, b->generation));
  PLANC_TRY(b->backend->wait(b->device, COPY, READY, b->generation++));
  for (int64_t i = 0; i <= blocks; i++)
    for (int d = 0; d < 2; d++) {
      /* The first brings the link up, and what is timed begins behind it. */
      rt_span *span = i == 1 ? &first[d] : i == blocks ? &last[d] : NULL;
      char *device = arena + d * b->largest, *host = slots + d * b->largest;
      bool in = d == RT_H2D;
      if (!which[d]) continue;
      PLANC_TRY(
          b->backend->copy(b->device, d, (rt_direction)d, in ? device : host, in ? host : device, b->largest, span));
    }
  PLANC_TRY(b->backend->synchronize(b->device));
  for (int d = 0; d < 2; d++) out[d] = (rt_span){first[d].start_ns, (blocks > 1 ? last[d] : first[d]).end_ns};
  return NULL;
}

static int64_t rate_of(int64_t bytes, int64_t start_ns, int64_t end_ns) {
  return (int64_t)(1e9 * (double)bytes / (double)(end_ns > start_ns ? end_ns - start_ns : 1));
}

/* A copy of all that there is tells what any more would. */
static planc_status check_bytes(const link_bench *b, int64_t bytes) {
  char given[PL_SIZE_TEXT], most[PL_SIZE_TEXT];
  if (bytes > 0 && bytes <= b->memory_bytes) return NULL;
  return planc_error(PLANC_USAGE,
                     "%s cannot be copied: it must be at least 1 byte and at most %s, the memory that both "
                     "device and host have",
                     pl_size_format(bytes, given), pl_size_format(b->memory_bytes, most));
}

static planc_status measure_rates(link_bench *b, int64_t bytes, rt_link_rates *out) {
  int64_t blocks = bytes / b->largest + (bytes % b->largest > 0);
  rt_span spans[2];
  out->bytes = blocks * b->largest;
  out->memory_bytes = b->largest;
  for (int d = 0; d < 2; d++) {
    PLANC_TRY(copy_blocks(b, (bool[]){d == 0, d == 1}, blocks, spans));
    out->alone_bytes_per_s[d] = rate_of(out->bytes, spans[d].start_ns, spans[d].end_ns);
  }
  PLANC_TRY(copy_blocks(b, (bool[]){true, true}, blocks, spans));
  bool later = spans[1].start_ns > spans[0].start_ns, longer = spans[1].end_ns > spans[0].end_ns;
  out->both_bytes_per_s = rate_of(2 * out->bytes, spans[!later].start_ns, spans[longer].end_ns);
  return time_memory(b, &out->memory_bytes_per_s);
}

/* --- The line through them ---------------------------------------------------------------------------------------- */

planc_link rt_fit_link(int32_t n, const int64_t *sizes, const int64_t *times_ns, int64_t *out_misfit_ppm) {
  /* t = a + c x with weights 1 / t^2. */
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (int32_t s = 0; s < n; s++) {
    double x = (double)sizes[s], t = times_ns[s] > 0 ? (double)times_ns[s] : 1.0, weight = 1 / (t * t);
    w += weight, wx += weight * x, wxx += weight * x * x, wt += weight * t, wxt += weight * x * t;
  }
  double slope = (w * wxt - wx * wt) / (w * wxx - wx * wx), start = (wt - slope * wx) / w;
  if (start < 0) {
    start = 0;
    slope = wxt / wxx;
  }
  if (slope < 1e-6) slope = 1e-6; /* 10^15 bytes per second */
  planc_link link = {.bytes_per_second = (int64_t)(1e9 / slope), .latency_ns = (int64_t)start};
  *out_misfit_ppm = 0;
  for (int32_t s = 0; s < n; s++) {
    int64_t t = times_ns[s] > 0 ? times_ns[s] : 1, off = llabs(planc_link_ns(&link, sizes[s]) - t);
    int64_t ppm = (int64_t)(1e6 * (double)off / (double)t);
    if (ppm > *out_misfit_ppm) *out_misfit_ppm = ppm;
  }
  return link;
}
