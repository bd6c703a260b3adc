/* Times of copies and launches (measure.h). */
#include <stdlib.h>

#include "runtime/measure.h"

const int64_t planrt_link_sizes[PLANRT_LINK_SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                                      1 << 20, 4 << 20,  16 << 20, 64 << 20};

enum { COMPUTE, COPY, N_STREAMS, READY = 0, COPIED, N_EVENTS };
enum { REPETITIONS = 9, LAUNCHES = 20000, MOST_NS = 2000000000 };

typedef struct bench {
  const planrt_backend *backend;
  planrt_device *device;
  int64_t generation;
} bench;

static planc_status open_bench(bench *b, int64_t link_bytes_per_s) {
  int64_t largest = planrt_link_sizes[PLANRT_LINK_SIZES - 1];
  planrt_device_options options = {.arena_bytes = 2 * largest,
                                   .host_arena_bytes = largest,
                                   .n_streams = N_STREAMS,
                                   .n_events = N_EVENTS,
                                   .concurrent = true,
                                   .link_bytes_per_s = link_bytes_per_s};
  return b->backend->open(&options, &b->device);
}

/* --- Copies ----------------------------------------------------------------------------------------------------- */

/* A copy as a plan has it: behind work on the compute stream, and awaited there. The empty copies on the compute stream
 * are those two pieces of work. */
static planc_status hand_over(bench *b, planrt_direction direction, int64_t bytes, int64_t *out_ns) {
  const planrt_backend *on = b->backend;
  char *arena = on->arena(b->device), *slot = on->host_arena(b->device);
  planrt_span before, after;
  bool in = direction == PLANRT_H2D;
  PLANC_TRY(on->copy(b->device, COMPUTE, PLANRT_D2D, arena, arena, 0, &before));
  PLANC_TRY(on->record(b->device, COMPUTE, READY, b->generation));
  PLANC_TRY(on->wait(b->device, COPY, READY, b->generation));
  PLANC_TRY(on->copy(b->device, COPY, direction, in ? arena : slot, in ? slot : arena, bytes, NULL));
  PLANC_TRY(on->record(b->device, COPY, COPIED, b->generation));
  PLANC_TRY(on->wait(b->device, COMPUTE, COPIED, b->generation));
  PLANC_TRY(on->copy(b->device, COMPUTE, PLANRT_D2D, arena, arena, 0, &after));
  PLANC_TRY(on->synchronize(b->device));
  b->generation++;
  *out_ns = after.begin_ns - before.end_ns;
  return NULL;
}

/* The median of several, the first left out; of few where one takes long. */
static planc_status time_copy(bench *b, planrt_direction direction, int64_t bytes, int64_t *out_ns) {
  int64_t times[REPETITIONS], unused, sum = 0;
  PLANC_TRY(hand_over(b, direction, bytes, &unused));
  int32_t n = 0;
  while (n < REPETITIONS && sum < MOST_NS) {
    PLANC_TRY(hand_over(b, direction, bytes, &times[n]));
    sum += times[n++];
  }
  *out_ns = planrt_statistic_of(times, n).median_ns;
  return NULL;
}

static planc_status time_beside(bench *b, planrt_direction direction, planc_status started,
                                planrt_background *background, int64_t *out_ns) {
  PLANC_TRY(started);
  planc_status status = time_copy(b, direction, planrt_link_sizes[PLANRT_LINK_SIZES - 1], out_ns);
  planc_status stopped = planrt_background_stop(background);
  if (!status) return stopped;
  planc_status_free(stopped);
  return status;
}

static planc_status time_direction(bench *b, planrt_direction direction, int64_t link_bytes_per_s,
                                   planrt_link_times *out) {
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++)
    PLANC_TRY(time_copy(b, direction, planrt_link_sizes[s], &out->alone_ns[direction][s]));
  planrt_background *background = NULL;
  planrt_direction other = direction == PLANRT_H2D ? PLANRT_D2H : PLANRT_H2D;
  planc_status started = planrt_background_copy(b->backend, other, link_bytes_per_s, &background);
  PLANC_TRY(time_beside(b, direction, started, background, &out->both_ns[direction]));
  started = planrt_background_load(b->backend, 1000000, &background);
  return time_beside(b, direction, started, background, &out->under_load_ns[direction]);
}

/* --- Launches and memory ---------------------------------------------------------------------------------------- */

/* The least work there is, enqueued and done. */
static planc_status time_launches(bench *b, planrt_link_times *out) {
  const planrt_backend *on = b->backend;
  char *arena = on->arena(b->device);
  planrt_span first, last;
  PLANC_TRY(on->copy(b->device, COMPUTE, PLANRT_D2D, arena, arena, 0, &first));
  for (int32_t i = 0; i < LAUNCHES; i++) PLANC_TRY(on->poison(b->device, COMPUTE, arena, sizeof(float)));
  PLANC_TRY(on->copy(b->device, COMPUTE, PLANRT_D2D, arena, arena, 0, &last));
  PLANC_TRY(on->synchronize(b->device));
  out->launch_ns = (last.end_ns - first.end_ns) / LAUNCHES;
  return NULL;
}

static planc_status time_memory(bench *b, planrt_link_times *out) {
  int64_t bytes = planrt_link_sizes[PLANRT_LINK_SIZES - 1], times[REPETITIONS];
  char *arena = b->backend->arena(b->device);
  for (int32_t i = 0; i < REPETITIONS; i++) {
    planrt_span span;
    PLANC_TRY(b->backend->copy(b->device, COMPUTE, PLANRT_D2D, arena, arena + bytes, bytes, &span));
    PLANC_TRY(b->backend->synchronize(b->device));
    times[i] = span.end_ns - span.begin_ns;
  }
  int64_t median = planrt_statistic_of(times, REPETITIONS).median_ns;
  out->memory_bytes_per_s = (int64_t)(2e9 * (double)bytes / (double)(median > 0 ? median : 1));
  return NULL;
}

static planc_status measure(bench *b, int64_t link_bytes_per_s, planrt_link_times *out) {
  PLANC_TRY(time_direction(b, PLANRT_H2D, link_bytes_per_s, out));
  PLANC_TRY(time_direction(b, PLANRT_D2H, link_bytes_per_s, out));
  PLANC_TRY(time_launches(b, out));
  return time_memory(b, out);
}

planc_status planrt_measure_links(const planrt_backend *backend, int64_t link_bytes_per_s, planrt_link_times *out) {
  bench b = {.backend = backend};
  PLANC_TRY(open_bench(&b, link_bytes_per_s));
  planc_status status = measure(&b, link_bytes_per_s, out);
  backend->close(b.device);
  return planc_context(status, "links");
}

/* --- The line through them -------------------------------------------------------------------------------------- */

planc_link planrt_fit_link(const int64_t *times_ns, int64_t *out_misfit_ppm) {
  /* t = a + c x with weights 1 / t^2. */
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) {
    double x = (double)planrt_link_sizes[s], t = times_ns[s] > 0 ? (double)times_ns[s] : 1.0, weight = 1 / (t * t);
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
  for (int32_t s = 0; s < PLANRT_LINK_SIZES; s++) {
    int64_t t = times_ns[s] > 0 ? times_ns[s] : 1, off = llabs(planc_link_ns(&link, planrt_link_sizes[s]) - t);
    int64_t ppm = (int64_t)(1e6 * (double)off / (double)t);
    if (ppm > *out_misfit_ppm) *out_misfit_ppm = ppm;
  }
  return link;
}
