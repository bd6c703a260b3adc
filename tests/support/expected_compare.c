/* Comparing what a session called with what it had to (expected_calls.h). libcheck writes to a file whenever something
 * is asserted, and calls are many: only failures are. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/expected_parts.h"
#include "tests/support/unit.h"

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

/* Whether a piece of the user's memory is where it was before, in pinned memory. */
static bool same_place(expected_calls *e, int32_t place, const char *at, int64_t bytes) {
  piece *known = &e->places[place];
  if (!known->at) *known = (piece){at, bytes};
  if (bytes > known->bytes) known->bytes = bytes;
  return at == known->at && at >= e->pinned && at + bytes <= e->pinned + e->pinned_bytes;
}

static bool same_options(const rt_device_options *a, const rt_device_options *b) {
  return a->arena_bytes == b->arena_bytes && a->host_arena_bytes == b->host_arena_bytes &&
         a->n_streams == b->n_streams && a->n_events == b->n_events && a->concurrent == b->concurrent &&
         a->synthetic == b->synthetic && a->deterministic == b->deterministic && a->properties == b->properties &&
         a->link_bytes_per_s == b->link_bytes_per_s && a->jitter == b->jitter;
}

static bool same_launch(const rt_launch *a, const rt_launch *b, bool kept) {
  bool rate =
      a->step.learning_rate == b->step.learning_rate || (isnan(a->step.learning_rate) && isnan(b->step.learning_rate));
  return kept || (rate && a->step.period == b->step.period && a->seed == b->seed && a->inference == b->inference);
}

/* The addresses of a call; NULL, or which of them differs. */
static const char *other_address(expected_calls *e, const expected_call *want, const recorded_call *got) {
  bool into = got->kind == RECORDED_ASKED || (got->kind == RECORDED_COPY && !want->call.to);
  bool users = want->place >= 0; /* one side is the user's memory */
  if (users && into ? !same_place(e, want->place, got->to, got->bytes) : got->to != want->call.to) return "to";
  if (users && !into ? !same_place(e, want->place, got->from, got->bytes) : got->from != want->call.from) return "from";
  return NULL;
}

/* What differs between two calls of one kind; NULL if nothing does. */
static const char *difference(expected_calls *e, const expected_call *want, const recorded_call *got) {
  const recorded_call *w = &want->call;
  const char *differs = NULL;
  if (w->stream != got->stream) return "stream";
  if (w->id != got->id) return "instance, event or direction";
  if (w->kept != got->kept) return "captured";
  if (want->timed != (got->span != NULL)) return "span";
  switch (got->kind) {
    case RECORDED_OPEN:
      return same_options(&w->options, &got->options) ? NULL : "options";
    case RECORDED_PIN:
      e->pinned = got->to;
      e->pinned_bytes = got->bytes;
      return NULL;
    case RECORDED_HOST:
      return w->kept || w->number == got->number ? NULL : "period";
    case RECORDED_REPLAY:
      return w->number != got->number ? "period" : same_launch(&w->launch, &got->launch, false) ? NULL : "launch";
    case RECORDED_RECORD:
    case RECORDED_WAIT:
      return w->number == got->number ? NULL : "generation";
    case RECORDED_DIGEST:
      return got->call == e->prepared[want->exec] ? NULL : "call";
    case RECORDED_PREPARE:
    case RECORDED_LAUNCH:
      if (got->kind == RECORDED_PREPARE) e->prepared[want->exec] = got->call;
      if (got->call != e->prepared[want->exec]) return "call";
      if (strcmp(got->algorithm, w->algorithm) != 0) return "algorithm";
      if (!same_launch(&w->launch, &got->launch, w->kept)) return "launch";
      differs = expected_call_difference(e, e->execs[want->exec], got->call);
      break;
    case RECORDED_COPY:
      if (w->pinned != got->pinned) return "pinned";
      break;
    case RECORDED_ASKED:
    case RECORDED_GIVEN:
      if (w->job != got->job || w->storage != got->storage || w->round != got->round) return "job, storage or round";
      if (w->iteration != got->iteration || w->offset != got->offset || w->count != got->count)
        return "iteration, offset or count";
      break;
    default:
      break;
  }
  if (w->bytes != got->bytes) return "bytes";
  return differs ? differs : other_address(e, want, got);
}

enum { ALL = -2 };

/* Compares the calls of one stream (-1: of none), or all. */
static void compare_stream(expected_calls *e, int32_t stream, const char *what) {
  int64_t at = e->compared;
  for (int64_t i = 0;; i++, at++) {
    while (i < e->calls.len && stream != ALL && e->calls.data[i].call.stream != stream) i++;
    while (at < recording_length() &&
           (recording_at(at)->device != 0 || (stream != ALL && recording_at(at)->stream != stream)))
      at++;
    const expected_call *want = i < e->calls.len ? &e->calls.data[i] : NULL;
    const recorded_call *got = at < recording_length() ? recording_at(at) : NULL;
    if (!want && !got) return;
    bool same_kind = want && got && want->call.kind == got->kind;
    if (!same_kind)
      ck_abort_msg("%s: call %lld is %s, not %s", what, (long long)at, got ? recorded_kind_name(got->kind) : "missing",
                   want ? recorded_kind_name(want->call.kind) : "none");
    const char *differs = difference(e, want, got);
    if (differs)
      ck_abort_msg("%s: call %lld, %s, stream %d: other %s", what, (long long)at, recorded_kind_name(got->kind),
                   got->stream, differs);
  }
}

void expected_compare(expected_calls *e, const char *what) {
  if (!e->interleaved) compare_stream(e, ALL, what);
  for (int32_t s = -1; e->interleaved && s < e->plan->n_streams + N_LANES; s++) compare_stream(e, s, what);
  e->calls.len = 0;
  e->interleaved = false;
  expected_skip(e);
}

void expected_skip(expected_calls *e) {
  e->compared = recording_length();
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b) {
  const piece *x = a, *y = b;
  if (x->at != y->at) return x->at > y->at ? 1 : -1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void assert_apart(const expected_calls *e) {
  piece *pieces = malloc((size_t)e->n_places * sizeof *pieces);
  ck_assert(pieces);
  memcpy(pieces, e->places, (size_t)e->n_places * sizeof *pieces);
  qsort(pieces, (size_t)e->n_places, sizeof *pieces, by_address);
  for (int32_t i = 0; i + 1 < e->n_places; i++)
    if (pieces[i].at && pieces[i].at + pieces[i].bytes > pieces[i + 1].at) ck_abort_msg("user memory overlaps");
  free(pieces);
}

void expected_places(const expected_calls *e, const planrt_session *session) {
  assert_apart(e);
  for (int32_t b = 0; b < e->trace->n_buffers; b++) {
    const planc_buffer *buffer = &e->trace->buffers[b];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || !e->places[b].at) continue;
    char *value = malloc((size_t)buffer->bytes + 1);
    ck_assert(value);
    ok(planrt_read(session, 0, buffer->job, buffer->storage, value, buffer->bytes));
    ck_assert_mem_eq(value, e->places[b].at, (size_t)buffer->bytes);
    free(value);
  }
}
