/* Hazards to waits, by vector clocks.
 *
 * A step has to come after the last write of what it reads, and after the last write and all later reads of what it
 * writes. Streams run in order, so of what it needs on another stream only the last step counts. The clock of a stream
 * says up to which step of every other stream its next step is already ordered; a need beyond that becomes a wait,
 * which takes over the clock that the producer had.
 *
 * The body repeats, so it is followed twice, the first time standing for the body before. Two bodies suffice: bytes
 * that a body touches are touched in every body, so a need never goes back further. The second body's waits suit every
 * body: a clock learns of steps of its own body only by waits of lag 0, and those needs do not depend on earlier
 * bodies, so the first body finds the same waits of lag 0, and clocks taken over from it are right.
 *
 * Replicas do the same, each with streams and bytes of its own, so one of them is followed. Its clocks have a second
 * half: what is known of that stream of all the others. Where it reads bytes of the others, they read its own, each by
 * a stream of theirs; and what one of them knows of itself and the others is what this one knows of the others and, as
 * one of theirs, of itself: the halves change places.
 *
 * A wait of lag 1 stands before its producer: were the producer first, it would have touched the same bytes again in
 * this body, and the need would be of lag 0. */
#include "planner/lower/events.h"

#include <string.h>

/* A clock: by stream, the last step known to have ended; -1 = none. With replicas first by own stream, then by stream
 * of all the others. */
typedef struct hazards {
  const planc_hazards *work;
  planc_arena arena;
  planc_access_map map;
  int32_t n_clock; /* entries of a clock */
  int32_t *now;    /* the clock of every stream */
  int32_t *ends;   /* of every step of two bodies: the clock of whoever waits for its end */
  int32_t *needs;  /* of the present step, as a clock */
  int32_t *theirs; /* scratch: a clock as the others see it */
} hazards;

static int32_t *clock_at(const hazards *h, int32_t *clocks, int32_t index) {
  return &clocks[(int64_t)index * h->n_clock];
}

static void raise(int32_t *value, int32_t to) {
  if (to > *value) *value = to;
}

static void join_clock(const hazards *h, int32_t *into, const int32_t *from) {
  for (int32_t t = 0; t < h->n_clock; t++) raise(&into[t], from[t]);
}

/* Joins what every other replica knows where this one would know `from`. Of two, the other one's others are this one.
 */
static void join_others(const hazards *h, int32_t *into, const int32_t *from) {
  int32_t n = h->work->n_streams;
  for (int32_t t = 0; t < n; t++) {
    raise(&into[t], from[n + t]);
    raise(&into[n + t], from[t]);
    if (h->work->replicas > 2) raise(&into[n + t], from[n + t]);
  }
}

/* Steps are followed in two bodies, 0 and 1, and then once what comes after them, as body 2. */
static int32_t body_of(const hazards *h, int32_t step) {
  return step >= 2 * h->work->n_body ? 2 : step / h->work->n_body;
}

static int32_t index_of(const hazards *h, int32_t step) {
  return step >= 2 * h->work->n_body ? step - h->work->n_body : step % h->work->n_body;
}

/* Turns the needs of a step into waits, the latest first: it may cover the others. */
static planc_status wait_for(hazards *h, int32_t step, planc_waits *out) {
  int32_t index = index_of(h, step), body = body_of(h, step), n = h->work->n_streams;
  int32_t *own = clock_at(h, h->now, h->work->steps[index].stream);
  for (;;) {
    int32_t latest = -1;
    bool peers = false;
    for (int32_t t = 0; t < h->n_clock; t++) {
      if (h->needs[t] <= own[t] || h->needs[t] <= latest) continue;
      latest = h->needs[t];
      peers = t >= n;
    }
    if (latest < 0) return NULL;
    (peers ? join_others : join_clock)(h, own, clock_at(h, h->ends, latest));
    if (body == 0) continue;
    int32_t lag = body - body_of(h, latest);
    VEC_PUSH(out, ((planc_wait){.step = index, .producer = index_of(h, latest), .peers = peers, .lag = lag}));
  }
}

/* The others read this one's bytes where this one reads theirs: what they need of their others, this one needs of them.
 */
static void touch_others(hazards *h, planc_range_touch touch, int32_t stream, int32_t step) {
  int32_t n = h->work->n_streams;
  memset(h->theirs, -1, (size_t)h->n_clock * sizeof *h->theirs);
  planc_access_map_touch(&h->map, touch, n + stream, step, h->theirs);
  for (int32_t t = 0; t < n; t++) raise(&h->needs[n + t], h->theirs[t]);
}

static planc_status follow_step(hazards *h, int32_t step, planc_waits *out) {
  const planc_step *it = &h->work->steps[index_of(h, step)];
  size_t clock_bytes = (size_t)h->n_clock * sizeof *h->needs;
  memset(h->needs, -1, clock_bytes);
  if (it->await >= 0) {
    h->needs[h->work->steps[it->await].stream] = step - index_of(h, step) + it->await;
  }
  for (int32_t k = 0; k < it->n_touches; k++) {
    planc_range_touch touch = h->work->touches[it->first_touch + k];
    if (touch.peers) {
      touch_others(h, touch, it->stream, step);
    } else {
      planc_access_map_touch(&h->map, touch, it->stream, step, h->needs);
    }
  }
  h->needs[it->stream] = -1; /* its stream runs in order */
  PLANC_TRY(wait_for(h, step, out));
  int32_t *own = clock_at(h, h->now, it->stream);
  own[it->stream] = step;
  memcpy(clock_at(h, h->ends, step), own, clock_bytes);
  return NULL;
}

static planc_status follow_bodies(hazards *h, planc_waits *out) {
  const planc_hazards *work = h->work;
  int64_t n_steps = (int64_t)work->n_body + work->n_steps;
  if (n_steps > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many instructions");
  h->n_clock = work->replicas > 1 ? 2 * work->n_streams : work->n_streams;
  PLANC_TRY(planc_access_map_make(&h->arena, work->ranges, work->n_ranges, h->n_clock, &h->map));
  PLANC_TRY(PLANC_NEW(&h->arena, &h->ends, n_steps * h->n_clock));
  PLANC_TRY(PLANC_NEW(&h->arena, &h->now, (int64_t)work->n_streams * h->n_clock));
  PLANC_TRY(PLANC_NEW(&h->arena, &h->needs, h->n_clock));
  PLANC_TRY(PLANC_NEW(&h->arena, &h->theirs, h->n_clock));
  memset(h->now, -1, (size_t)work->n_streams * (size_t)h->n_clock * sizeof *h->now);
  for (int32_t step = 0; step < n_steps; step++) PLANC_TRY(follow_step(h, step, out));
  return NULL;
}

planc_status planc_find_waits(const planc_hazards *work, planc_waits *out) {
  hazards h = {.work = work};
  planc_status status = follow_bodies(&h, out);
  planc_arena_free(&h.arena);
  return status;
}
