/* Hazards to waits, by vector clocks.
 *
 * A step has to come after the last write of what it reads, and after the last write and all later reads of what it
 * writes. Streams run in order, so of what it needs on another stream only the last step counts. The clock of a stream
 * says up to which step of every other stream its next step is already ordered; a predecessor beyond that becomes a
 * wait, which takes over the clock that the producer had.
 *
 * The body repeats, so it is followed twice, the first time standing for the body before. Two bodies suffice: bytes
 * that a body touches are touched in every body, so no predecessor is further back. The second body's waits suit every
 * body: a clock learns of steps of its own body only by waits of lag 0, and those do not depend on earlier
 * bodies, so the first body finds the same waits of lag 0, and clocks taken over from it are right.
 *
 * Replicas do the same, each with streams and bytes of its own, so one of them is followed. Each of its streams has a
 * second clock: up to which step every stream is known to have come in all the others. Where this replica reads bytes
 * of the others, they read its bytes in the same step. A wait for another replica takes over the two clocks that the
 * other one had, and they change places: its clock of itself tells of one of our others, and its clock of its others
 * tells of us.
 *
 * A wait of lag 1 stands before its producer: were the producer first, it would have touched the same bytes again in
 * this body, and the wait would be of lag 0. */
#include "planner/lower/events.h"

#include <assert.h>
#include <stdlib.h>

#include "util/clocks.h"

/* What somebody knows to have ended: of the streams of the replica that is followed, and of those of all the others. */
typedef struct knowledge {
  int32_t own, others; /* clocks */
} knowledge;

typedef struct hazards {
  const pl_hazards *work;
  pl_arena arena;
  pl_access_map map;
  pl_clocks clocks;
  knowledge *now;  /* by stream; of itself it need not say anything */
  int32_t *last;   /* by stream: its last step of the body */
  knowledge *ends; /* by step of two bodies: what its stream knew when it ran */
  /* Of the present step: streams of this replica, and from n_streams on those of the others. */
  pl_predecessors predecessors;
  pl_predecessors theirs; /* what the others need, as they count streams */
} hazards;

static planc_status follow_bodies(hazards *h, pl_waits *out);
static planc_status follow_step(hazards *h, int32_t step, pl_waits *out);
static int32_t index_of(const hazards *h, int32_t step);
static int32_t body_of(const hazards *h, int32_t step);
static bool is_of_others(const hazards *h, pl_stream_step predecessor);

planc_status pl_find_waits(const pl_hazards *work, pl_waits *out) {
  hazards h = {.work = work};
  planc_status status = follow_bodies(&h, out);
  pl_access_map_free(&h.map);
  pl_clocks_free(&h.clocks);
  pl_arena_free(&h.arena);
  return status;
}

static planc_status follow_bodies(hazards *h, pl_waits *out) {
  const pl_hazards *work = h->work;
  int64_t n_steps = (int64_t)work->n_body + work->n_steps;
  if (n_steps > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many instructions");
  h->clocks = pl_clocks_of(work->n_streams);
  PLANC_TRY(pl_access_map_make(&h->arena, work->ranges, work->n_ranges, &h->map));
  PLANC_TRY(pl_predecessors_make(&h->arena, 2 * work->n_streams, &h->predecessors));
  PLANC_TRY(pl_predecessors_make(&h->arena, 2 * work->n_streams, &h->theirs));
  PLANC_TRY(PL_NEW(&h->arena, &h->ends, n_steps));
  PLANC_TRY(PL_NEW(&h->arena, &h->now, work->n_streams));
  PLANC_TRY(PL_NEW(&h->arena, &h->last, work->n_streams));
  for (int32_t step = 0; step < work->n_body; step++) h->last[work->steps[step].stream] = step;
  for (int32_t t = 0; t < work->n_streams; t++) h->now[t] = (knowledge){PL_CLOCK_NONE, PL_CLOCK_NONE};
  for (int32_t step = 0; step < n_steps; step++) PLANC_TRY(follow_step(h, step, out));
  return NULL;
}

static void await_step(hazards *h, int32_t step, int32_t await);
static planc_status touch_others(hazards *h, pl_range_touch touch, pl_stream_step by);
static planc_status wait_for(hazards *h, int32_t step, pl_waits *out);

static planc_status follow_step(hazards *h, int32_t step, pl_waits *out) {
  const pl_step *it = &h->work->steps[index_of(h, step)];
  pl_stream_step by = {it->stream, step};
  pl_predecessors_clear(&h->predecessors);
  if (it->await >= 0) await_step(h, step, it->await);
  for (int32_t k = 0; k < it->n_touches; k++) {
    pl_range_touch touch = h->work->touches[it->first_touch + k];
    if (touch.peers) {
      PLANC_TRY(touch_others(h, touch, by));
    } else {
      PLANC_TRY(pl_access_map_touch(&h->map, touch, by, &h->predecessors));
    }
  }
  PLANC_TRY(wait_for(h, step, out));
  h->ends[step] = h->now[it->stream];
  return NULL;
}

/* --- What a step comes after -------------------------------------------------------------------------------------- */

/* The awaited step is a predecessor, in this body or in the one before. Nothing is before the first body. */
static void await_step(hazards *h, int32_t step, int32_t await) {
  int32_t index = index_of(h, step), producer = step - index + await;
  if (await > index) producer -= h->work->n_body;
  if (producer >= 0) pl_predecessors_raise(&h->predecessors, (pl_stream_step){h->work->steps[await].stream, producer});
}

/* A step that reads bytes of the others. In that step the others read this replica's bytes as well. The map has this
 * replica's accesses, so it tells which steps of this replica the others must come after; as all replicas do the same,
 * this one must come after these steps of the others. */
static planc_status touch_others(hazards *h, pl_range_touch touch, pl_stream_step by) {
  int32_t n = h->work->n_streams;
  by.stream += n;
  pl_predecessors_clear(&h->theirs);
  PLANC_TRY(pl_access_map_touch(&h->map, touch, by, &h->theirs));
  for (int32_t k = 0; k < h->theirs.n; k++) {
    pl_stream_step predecessor = h->theirs.list[k];
    if (is_of_others(h, predecessor)) continue;
    predecessor.stream += n;
    pl_predecessors_raise(&h->predecessors, predecessor);
  }
  return NULL;
}

/* --- Waits -------------------------------------------------------------------------------------------------------- */

static int compare_predecessors(const void *left, const void *right);
static bool knows(const hazards *h, const knowledge *who, pl_stream_step predecessor);
static int32_t as_far_as_own(const hazards *h, const knowledge *own, pl_stream_step predecessor, int32_t step);
static planc_status learn_others(hazards *h, knowledge *who, pl_stream_step predecessor);
static planc_status learn_own(hazards *h, knowledge *who, pl_stream_step predecessor);

/* Turns the predecessors of a step into waits, the latest first: it may cover the others. */
static planc_status wait_for(hazards *h, int32_t step, pl_waits *out) {
  int32_t index = index_of(h, step), body = body_of(h, step), stream = h->work->steps[index].stream;
  knowledge *own = &h->now[stream];
  if (h->predecessors.n > 1)
    qsort(h->predecessors.list, (size_t)h->predecessors.n, sizeof *h->predecessors.list, compare_predecessors);
  for (int32_t k = 0; k < h->predecessors.n; k++) {
    pl_stream_step predecessor = h->predecessors.list[k];
    if (predecessor.stream == stream || knows(h, own, predecessor)) continue; /* its stream runs in order */
    bool peers = is_of_others(h, predecessor);
    if (peers) predecessor.step = as_far_as_own(h, own, predecessor, step);
    PLANC_TRY((peers ? learn_others : learn_own)(h, own, predecessor));
    if (body == 0) continue;
    int32_t lag = body - body_of(h, predecessor.step);
    assert(lag == 0 || lag == 1);
    VEC_PUSH(out, ((pl_wait){.step = index, .producer = index_of(h, predecessor.step), .peers = peers, .lag = lag}));
  }
  return NULL;
}

/* The latest first. Where a step is a predecessor in this replica and in the others, this replica's comes first. */
static int compare_predecessors(const void *left, const void *right) {
  const pl_stream_step *a = left, *b = right;
  if (a->step != b->step) return a->step > b->step ? -1 : 1;
  return (a->stream > b->stream) - (a->stream < b->stream);
}

/* The step of the others' stream that is awaited: the predecessor, or where that is in the body before perhaps a later
 * step. Then this replica learns more of the others, and fewer waits follow.
 *
 * For example, replicas A and B both run step 3 on stream 0, and steps 5 and 8 on stream 1. A's step 3 must come after
 * B's step 5 of the body before. A's stream 0 knows already that A's own step 8 of the body before has ended. Then it
 * waits for B's step 8 instead of B's step 5, and steps behind A's step 3 need not wait for B's step 8 again.
 *
 * A and B cannot wait for each other for ever: what B's step 8 needs of A, A's step 8 needed of B, and A's step 8 has
 * ended. In the body the awaited step stands behind the one that waits, as it must for a wait of lag 1. */
static int32_t as_far_as_own(const hazards *h, const knowledge *own, pl_stream_step predecessor, int32_t step) {
  int32_t body = body_of(h, step), stream = predecessor.stream - h->work->n_streams;
  int32_t known = pl_clock_at(&h->clocks, own->own, stream), last = (body - 1) * h->work->n_body + h->last[stream];
  if (known > last) known = last;
  return known > predecessor.step && index_of(h, known) > index_of(h, step) ? known : predecessor.step;
}

/* --- Clocks ------------------------------------------------------------------------------------------------------- */

static bool knows(const hazards *h, const knowledge *who, pl_stream_step predecessor) {
  if (is_of_others(h, predecessor))
    return pl_clock_at(&h->clocks, who->others, predecessor.stream - h->work->n_streams) >= predecessor.step;
  return pl_clock_at(&h->clocks, who->own, predecessor.stream) >= predecessor.step;
}

/* Learns what this replica's stream knew when the step ended that is waited for. */
static planc_status learn_own(hazards *h, knowledge *who, pl_stream_step predecessor) {
  knowledge from = h->ends[predecessor.step];
  PLANC_TRY(pl_clock_join(&h->clocks, &who->own, from.own));
  if (h->work->replicas > 1) PLANC_TRY(pl_clock_join(&h->clocks, &who->others, from.others));
  return pl_clock_set(&h->clocks, &who->own, predecessor.stream, predecessor.step);
}

/* Takes over what each other replica's stream knew. Replicas are alike, so its own clock becomes our clock of the
 * others, and its clock of the others becomes ours. Of more than two replicas, its others are also others of ours. */
static planc_status learn_others(hazards *h, knowledge *who, pl_stream_step predecessor) {
  knowledge from = h->ends[predecessor.step];
  PLANC_TRY(pl_clock_join(&h->clocks, &who->own, from.others));
  PLANC_TRY(pl_clock_join(&h->clocks, &who->others, from.own));
  if (h->work->replicas > 2) PLANC_TRY(pl_clock_join(&h->clocks, &who->others, from.others));
  return pl_clock_set(&h->clocks, &who->others, predecessor.stream - h->work->n_streams, predecessor.step);
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static int32_t index_of(const hazards *h, int32_t step) {
  return step >= 2 * h->work->n_body ? step - h->work->n_body : step % h->work->n_body;
}

/* Steps are followed in two bodies, 0 and 1, and then once what comes after them, as body 2. */
static int32_t body_of(const hazards *h, int32_t step) {
  return step >= 2 * h->work->n_body ? 2 : step / h->work->n_body;
}

static bool is_of_others(const hazards *h, pl_stream_step predecessor) {
  return predecessor.stream >= h->work->n_streams;
}
