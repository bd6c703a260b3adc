/* Who touched which bytes when (histories.h). */
#include "check/histories.h"

#include <assert.h>

enum { FEW_READERS = 16, RECENT = 4 };

static const pl_history untouched = {
    .write = {.stream = -1}, .passed = {.stream = -1}, .readers = -1, .most_readers = FEW_READERS};

planc_status pl_histories_make(pl_arena *arena, int32_t n_ranks, int32_t n_streams, pl_histories *out) {
  *out = (pl_histories){.n_ranks = n_ranks, .free_history = -1, .free_readers = -1};
  PLANC_TRY(pl_number_set_make(arena, n_ranks + 1, &out->starts));
  PLANC_TRY(PL_NEW(arena, &out->at, (int64_t)n_ranks + 1));
  PLANC_TRY(PL_NEW(arena, &out->kept, 2 * (int64_t)n_streams));
  for (int32_t s = 0; s < 2 * n_streams; s++) out->kept[s] = -1;
  /* An interval from the start to the end, and one behind the end, so that every interval has a next one. */
  VEC_PUSH(&out->of, untouched);
  out->of.data[0].n_intervals = 2;
  pl_number_set_add(&out->starts, 0);
  pl_number_set_add(&out->starts, n_ranks);
  return NULL;
}

void pl_histories_free(pl_histories *histories) {
  VEC_FREE(&histories->of);
  VEC_FREE(&histories->readers);
}

static bool conflicts_in(pl_histories *histories, pl_extent extent, pl_mark mark, const pl_seen *seen,
                         pl_conflict *out);
static bool conflicts(const pl_histories *histories, int32_t history, bool writes, pl_mark mark, const pl_seen *seen,
                      pl_conflict *out);
static planc_status new_history(pl_histories *histories, pl_mark write, int32_t *out);
static void cover(pl_histories *histories, pl_extent extent, int32_t history);
static pl_read_mark *recent_of(pl_histories *histories, const pl_history *history, int32_t stream);
static planc_status add_reader(pl_histories *histories, int32_t *list, pl_mark mark);
static void thin_readers(pl_histories *histories, pl_history *history);
static void drop_readers(pl_histories *histories, pl_history *history);

planc_status pl_histories_write_first(pl_histories *histories, const pl_interval_place *place, pl_mark mark,
                                      const pl_seen *seen, int32_t *out_history, pl_conflict *out) {
  *out = (pl_conflict){0};
  assert(place->n > 0);
  for (int64_t k = 0; k < place->n; k++)
    if (conflicts_in(histories, pl_place_extent(place, k), mark, seen, out)) return NULL;
  PLANC_TRY(new_history(histories, mark, out_history));
  for (int64_t k = 0; k < place->n; k++) cover(histories, pl_place_extent(place, k), *out_history);
  return NULL;
}

void pl_histories_write(pl_histories *histories, int32_t history, pl_mark mark, const pl_seen *seen, pl_conflict *out) {
  pl_history *own = &histories->of.data[history];
  if (conflicts(histories, history, true, mark, seen, out)) return;
  drop_readers(histories, own);
  own->write = mark;
}

planc_status pl_histories_read(pl_histories *histories, int32_t history, pl_mark mark, const pl_seen *seen,
                               pl_conflict *out) {
  pl_history *read = &histories->of.data[history];
  if (conflicts(histories, history, false, mark, seen, out)) return NULL;
  pl_read_mark *own = recent_of(histories, read, mark.stream);
  if (own) {
    own->mark = mark;
    return NULL;
  }
  PLANC_TRY(add_reader(histories, &read->readers, mark));
  if (++read->n_readers > read->most_readers) thin_readers(histories, read);
  return NULL;
}

/* --- Conflicts ---------------------------------------------------------------------------------------------------- */

static int32_t next_start(const pl_histories *histories, int32_t rank);
static bool ordered(pl_mark earlier, pl_mark present, const pl_seen *seen);

/* Looks for an access to any byte of `extent` that is not ordered before the present one, a write. A history that many
 * of the intervals have is gone through once. */
static bool conflicts_in(pl_histories *histories, pl_extent extent, pl_mark mark, const pl_seen *seen,
                         pl_conflict *out) {
  int32_t start = pl_number_set_below(&histories->starts, extent.lo);
  for (; start < extent.hi; start = next_start(histories, start)) {
    int32_t history = histories->at[start];
    pl_mark *passed = &histories->of.data[history].passed;
    if (passed->stream == mark.stream && passed->epoch == mark.epoch) continue;
    if (conflicts(histories, history, true, mark, seen, out)) return true;
    *passed = mark;
  }
  return false;
}

/* Looks for an access in the history that is not ordered before the present one. */
static bool conflicts(const pl_histories *histories, int32_t history, bool writes, pl_mark mark, const pl_seen *seen,
                      pl_conflict *out) {
  const pl_history *of = &histories->of.data[history];
  *out = (pl_conflict){0};
  if (!ordered(of->write, mark, seen)) {
    *out = (pl_conflict){.found = true, .with_write = true, .with = of->write};
    return true;
  }
  for (int32_t node = writes ? of->readers : -1; node >= 0; node = histories->readers.data[node].next) {
    if (ordered(histories->readers.data[node].mark, mark, seen)) continue;
    *out = (pl_conflict){.found = true, .with = histories->readers.data[node].mark};
    return true;
  }
  return false;
}

/* Whether the access `earlier`, if there is one, has ended before the present one begins. */
static bool ordered(pl_mark earlier, pl_mark present, const pl_seen *seen) {
  return earlier.stream < 0 || pl_seen_end(seen, present.stream, earlier.stream, earlier.epoch);
}

/* --- Intervals ---------------------------------------------------------------------------------------------------- */

static void split(pl_histories *histories, int32_t rank);
static void leave_history(pl_histories *histories, int32_t history);

static planc_status new_history(pl_histories *histories, pl_mark write, int32_t *out) {
  int32_t history = histories->free_history;
  if (history >= 0) {
    histories->free_history = histories->of.data[history].next_free;
  } else {
    assert(histories->of.len <= histories->n_ranks + 1); /* each has an interval */
    history = (int32_t)histories->of.len;
    VEC_PUSH(&histories->of, untouched);
  }
  histories->of.data[history] = untouched;
  histories->of.data[history].write = write;
  *out = history;
  return NULL;
}

/* Makes `extent` one interval, which has `history`. */
static void cover(pl_histories *histories, pl_extent extent, int32_t history) {
  split(histories, extent.lo);
  split(histories, extent.hi);
  for (int32_t start = extent.lo, next; start < extent.hi; start = next) {
    next = next_start(histories, start);
    leave_history(histories, histories->at[start]);
    if (start > extent.lo) pl_number_set_remove(&histories->starts, start);
  }
  histories->at[extent.lo] = history;
  histories->of.data[history].n_intervals++;
}

/* Makes an interval start at `rank`: the upper part of the one that holds it. */
static void split(pl_histories *histories, int32_t rank) {
  int32_t start = pl_number_set_below(&histories->starts, rank);
  if (start == rank) return;
  histories->at[rank] = histories->at[start];
  histories->of.data[histories->at[rank]].n_intervals++;
  pl_number_set_add(&histories->starts, rank);
}

/* One interval less has the history. One that no interval has is free for other accesses. */
static void leave_history(pl_histories *histories, int32_t history) {
  pl_history *of = &histories->of.data[history];
  if (--of->n_intervals > 0) return;
  drop_readers(histories, of);
  of->next_free = histories->free_history;
  histories->free_history = history;
}

static int32_t next_start(const pl_histories *histories, int32_t rank) {
  int32_t next = pl_number_set_above(&histories->starts, rank + 1);
  assert(next > rank); /* there is one behind the end */
  return next;
}

/* --- Readers ------------------------------------------------------------------------------------------------------ */

/* A reader of the stream, looked for among the first few. */
static pl_read_mark *recent_of(pl_histories *histories, const pl_history *history, int32_t stream) {
  int32_t node = history->readers;
  for (int32_t k = 0; k < RECENT && node >= 0; k++, node = histories->readers.data[node].next)
    if (histories->readers.data[node].mark.stream == stream) return &histories->readers.data[node];
  return NULL;
}

static planc_status add_reader(pl_histories *histories, int32_t *list, pl_mark mark) {
  int32_t node = histories->free_readers;
  if (node >= 0) {
    histories->free_readers = histories->readers.data[node].next;
  } else {
    if (histories->readers.len >= INT32_MAX) return planc_error(PLANC_OUT_OF_MEMORY, "who has read which bytes");
    node = (int32_t)histories->readers.len;
    VEC_PUSH(&histories->readers, (pl_read_mark){0});
  }
  histories->readers.data[node] = (pl_read_mark){.mark = mark, .next = *list};
  *list = node;
  return NULL;
}

/* Keeps the latest of each stream: who is ordered after it is ordered after those before it. */
static void thin_readers(pl_histories *histories, pl_history *history) {
  pl_read_mark *all = histories->readers.data;
  history->n_readers = 0;
  for (int32_t *at = &history->readers; *at >= 0;) {
    int32_t node = *at, *kept = &histories->kept[all[node].mark.stream];
    if (*kept < 0) {
      *kept = node;
      history->n_readers++;
      at = &all[node].next;
      continue;
    }
    if (all[*kept].mark.epoch < all[node].mark.epoch) all[*kept].mark = all[node].mark;
    *at = all[node].next;
    all[node].next = histories->free_readers;
    histories->free_readers = node;
  }
  for (int32_t node = history->readers; node >= 0; node = all[node].next) histories->kept[all[node].mark.stream] = -1;
  history->most_readers = FEW_READERS + 2 * history->n_readers;
}

static void drop_readers(pl_histories *histories, pl_history *history) {
  int32_t node = history->readers;
  while (node >= 0) {
    int32_t next = histories->readers.data[node].next;
    histories->readers.data[node].next = histories->free_readers;
    histories->free_readers = node;
    node = next;
  }
  history->readers = -1;
  history->n_readers = 0;
  history->most_readers = FEW_READERS;
}
