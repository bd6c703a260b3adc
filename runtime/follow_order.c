/* Who has to wait for whom (follower.h), where calls and copies run on streams while the host goes on.
 *
 * Each stream has a clock: how much of each stream it comes after. An event keeps the clock of its record, a wait takes
 * the later of both. What is read and written, buffers of the framework and places on the host, has the times of its
 * last write and of its last read on each stream. So a stream that misses a time waits, where the plan's own waits,
 * which are made like any other, have not seen to that: after a plan was left or data were brought there are none.
 *
 * Without streams the host does all at once and nothing here has anything to do. */
#include <stdlib.h>
#include <string.h>

#include "runtime/follower.h"

planc_status rt_order_prepare(planrt_follow *f) {
  const planc_plan *plan = f->plan;
  int64_t n_resources = (int64_t)f->trace->n_buffers + plan->n_residencies;
  f->n_streams = plan->n_streams;
  int64_t n_clocks = 2 * (int64_t)f->n_streams + plan->n_events;
  PLANC_TRY(PL_NEW(&f->memory, &f->clocks, n_clocks * f->n_streams));
  PLANC_TRY(PL_NEW(&f->memory, &f->writes, n_resources));
  PLANC_TRY(PL_NEW(&f->memory, &f->reads, n_resources * f->n_streams));
  return NULL;
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static planc_status failed(const char *what);

/* Of a stream or, from n_streams on, of an event. */
static int64_t *clock_of(planrt_follow *f, int32_t stream) {
  return &f->clocks[(int64_t)stream * f->n_streams];
}

static bool has_streams(const planrt_follow *f) {
  return f->framework.streams && f->n_streams > 1;
}

planc_status rt_order_record(planrt_follow *f, int32_t event, int32_t stream) {
  if (!has_streams(f)) return NULL;
  if (f->framework.streams->record(f->framework.user, event, stream)) return failed("record an event");
  memcpy(clock_of(f, f->n_streams + event), clock_of(f, stream), (size_t)f->n_streams * sizeof(int64_t));
  return NULL;
}

planc_status rt_order_wait(planrt_follow *f, int32_t event, int32_t stream) {
  if (!has_streams(f)) return NULL;
  int64_t *clock = clock_of(f, stream);
  const int64_t *then = clock_of(f, f->n_streams + event);
  bool is_later = false;
  for (int32_t s = 0; s < f->n_streams; s++) is_later = is_later || then[s] > clock[s];
  if (!is_later) return NULL;
  if (f->framework.streams->wait(f->framework.user, event, stream)) return failed("wait for an event");
  for (int32_t s = 0; s < f->n_streams; s++)
    if (then[s] > clock[s]) clock[s] = then[s];
  return NULL;
}

static planc_status failed(const char *what) {
  return planc_error(PLANC_DEVICE, "the framework could not %s", what);
}

/* The event of a stream's own, after those of the plan. */
static planc_status catch_up(planrt_follow *f, int32_t stream, int32_t other, int64_t time) {
  int32_t event = f->plan->n_events + other;
  if (stream == other || clock_of(f, stream)[other] >= time) return NULL;
  if (clock_of(f, f->n_streams + event)[other] < time) PLANC_TRY(rt_order_record(f, event, other));
  return rt_order_wait(f, event, stream);
}

planc_status rt_order_fence(planrt_follow *f) {
  if (!has_streams(f)) return NULL;
  for (int32_t s = 0; s < f->n_streams; s++)
    for (int32_t other = 0; other < f->n_streams; other++) PLANC_TRY(catch_up(f, s, other, clock_of(f, other)[other]));
  return NULL;
}

planc_status rt_order_finish(planrt_follow *f) {
  if (!has_streams(f)) return NULL;
  if (f->framework.streams->finish(f->framework.user)) return failed("wait for its streams");
  for (int32_t s = 0; s < f->n_streams; s++)
    for (int32_t other = 0; other < f->n_streams; other++) clock_of(f, s)[other] = clock_of(f, other)[other];
  return NULL;
}

void rt_order_advance(planrt_follow *f) {
  if (has_streams(f)) clock_of(f, PLANRT_CALLS)[PLANRT_CALLS]++;
}

planc_status rt_order_after_calls(planrt_follow *f, int32_t stream) {
  if (!has_streams(f)) return NULL;
  rt_order_advance(f);
  return catch_up(f, stream, PLANRT_CALLS, clock_of(f, PLANRT_CALLS)[PLANRT_CALLS]);
}

/* --- What is read and written ------------------------------------------------------------------------------------- */

/* A resource is a buffer or, from n_buffers on, a residency. */
static int64_t *reads_of(planrt_follow *f, int32_t resource) {
  return &f->reads[(int64_t)resource * f->n_streams];
}

planc_status rt_order_before(planrt_follow *f, int32_t stream, int32_t resource, bool writes) {
  if (!has_streams(f)) return NULL;
  const rt_moment *written = &f->writes[resource];
  PLANC_TRY(catch_up(f, stream, written->stream, written->time));
  for (int32_t s = 0; writes && s < f->n_streams; s++) PLANC_TRY(catch_up(f, stream, s, reads_of(f, resource)[s]));
  return NULL;
}

void rt_order_after(planrt_follow *f, int32_t stream, int32_t resource, bool writes) {
  if (!has_streams(f)) return;
  int64_t now = ++clock_of(f, stream)[stream];
  if (writes)
    f->writes[resource] = (rt_moment){stream, now};
  else
    reads_of(f, resource)[stream] = now;
}

bool rt_order_is_quiet(planrt_follow *f, int32_t resource) {
  if (!has_streams(f)) return true;
  const int64_t *clock = clock_of(f, PLANRT_CALLS), *reads = reads_of(f, resource);
  bool quiet = f->writes[resource].time <= clock[f->writes[resource].stream];
  for (int32_t s = 0; s < f->n_streams; s++) quiet = quiet && reads[s] <= clock[s];
  return quiet;
}

planc_status rt_follow_failed(const planrt_follow *f, int32_t buffer, const char *what) {
  return planc_error(PLANC_DEVICE, "%s: the framework could not %s", rt_follow_name(f, buffer), what);
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

planc_status rt_order_copy(planrt_follow *f, int32_t stream, int32_t buffer, void *host, bool out) {
  size_t bytes = (size_t)f->trace->buffers[buffer].bytes;
  void *data = rt_follow_address(f, buffer);
  if (!data) return rt_follow_failed(f, buffer, "say where it is");
  if (out)
    f->counts.out_bytes += f->trace->buffers[buffer].bytes;
  else
    f->counts.in_bytes += f->trace->buffers[buffer].bytes;
  if (!f->framework.streams) {
    memcpy(out ? host : data, out ? data : host, bytes);
    return NULL;
  }
  bool fails = f->framework.streams->copy(f->framework.user, stream, buffer, host, out);
  return fails ? rt_follow_failed(f, buffer, "copy it") : NULL;
}

planc_status rt_order_host_alloc(planrt_follow *f, int64_t bytes, void *out_pointer) {
  const planrt_streams *streams = f->framework.streams;
  if (bytes < 1) bytes = 1;
  void *memory = streams ? streams->host_alloc(f->framework.user, bytes) : malloc((size_t)bytes);
  *(void **)out_pointer = memory;
  return memory ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "%lld bytes of host memory", (long long)bytes);
}

void rt_order_host_free(planrt_follow *f, void *memory) {
  if (!memory) return;
  if (f->framework.streams)
    f->framework.streams->host_free(f->framework.user, memory);
  else
    free(memory);
}
