/* Who touched which bytes when (histories.h). */
#include "check/histories.h"

#include <assert.h>

enum { FEW_READERS = 16, RECENT = 4 };

static const pl_history untouched = {.write = {.stream = -1}, .readers = -1, .most_readers = FEW_READERS};

planc_status pl_histories_make(pl_arena *arena, int32_t n_ranks, int32_t n_streams, pl_histories *out) {
  *out = (pl_histories){.n_ranks = n_ranks, .free_readers = -1};
  PLANC_TRY(pl_number_set_make(arena, n_ranks + 1, &out->starts));
  PLANC_TRY(PL_NEW(arena, &out->of, (int64_t)n_ranks + 1));
  PLANC_TRY(PL_NEW(arena, &out->kept, 2 * (int64_t)n_streams));
  for (int32_t s = 0; s < 2 * n_streams; s++) out->kept[s] = -1;
  /* An interval from the start to the end, and one behind the end, so that every interval has a next one. */
  out->of[0] = out->of[n_ranks] = untouched;
  pl_number_set_add(&out->starts, 0);
  pl_number_set_add(&out->starts, n_ranks);
  return NULL;
}

void pl_histories_free(pl_histories *histories) {
  VEC_FREE(&histories->readers);
}

static planc_status split(pl_histories *histories, int32_t rank);
static bool conflicts(const pl_histories *histories, pl_extent extent, bool writes, pl_mark mark, const pl_seen *seen,
                      pl_conflict *out);
static int32_t next_start(const pl_histories *histories, int32_t rank);
static pl_read_mark *recent_of(pl_histories *histories, const pl_history *history, int32_t stream);
static planc_status add_reader(pl_histories *histories, int32_t *list, pl_mark mark);
static void thin_readers(pl_histories *histories, pl_history *history);
static void drop_readers(pl_histories *histories, pl_history *history);

planc_status pl_histories_read(pl_histories *histories, pl_extent extent, pl_mark mark, const pl_seen *seen,
                               pl_conflict *out) {
  PLANC_TRY(split(histories, extent.lo));
  PLANC_TRY(split(histories, extent.hi));
  if (conflicts(histories, extent, false, mark, seen, out)) return NULL;
  for (int32_t start = extent.lo; start < extent.hi; start = next_start(histories, start)) {
    pl_history *history = &histories->of[start];
    pl_read_mark *own = recent_of(histories, history, mark.stream);
    if (own) {
      own->mark = mark;
      continue;
    }
    PLANC_TRY(add_reader(histories, &history->readers, mark));
    if (++history->n_readers > history->most_readers) thin_readers(histories, history);
  }
  return NULL;
}

planc_status pl_histories_write(pl_histories *histories, pl_extent extent, pl_mark mark, const pl_seen *seen,
                                pl_conflict *out) {
  PLANC_TRY(split(histories, extent.lo));
  PLANC_TRY(split(histories, extent.hi));
  if (conflicts(histories, extent, true, mark, seen, out)) return NULL;
  int32_t start = extent.lo;
  while (start < extent.hi) {
    int32_t next = next_start(histories, start);
    drop_readers(histories, &histories->of[start]);
    if (start > extent.lo) pl_number_set_remove(&histories->starts, start);
    start = next;
  }
  histories->of[extent.lo] = untouched;
  histories->of[extent.lo].write = mark;
  return NULL;
}

/* --- Readers -------------------------------------------------------------------------------------------------- */

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

static void drop_readers(pl_histories *histories, pl_history *history) {
  int32_t node = history->readers;
  while (node >= 0) {
    int32_t next = histories->readers.data[node].next;
    histories->readers.data[node].next = histories->free_readers;
    histories->free_readers = node;
    node = next;
  }
  history->readers = -1;
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

/* A reader of the stream, looked for among the first few. */
static pl_read_mark *recent_of(pl_histories *histories, const pl_history *history, int32_t stream) {
  int32_t node = history->readers;
  for (int32_t k = 0; k < RECENT && node >= 0; k++, node = histories->readers.data[node].next)
    if (histories->readers.data[node].mark.stream == stream) return &histories->readers.data[node];
  return NULL;
}

/* --- Intervals ------------------------------------------------------------------------------------------------ */

/* Makes an interval start at `rank`: the upper part of the one that holds it. */
static planc_status split(pl_histories *histories, int32_t rank) {
  int32_t start = pl_number_set_below(&histories->starts, rank);
  if (start == rank) return NULL;
  pl_history copy = histories->of[start];
  copy.readers = -1;
  for (int32_t node = histories->of[start].readers; node >= 0; node = histories->readers.data[node].next) {
    PLANC_TRY(add_reader(histories, &copy.readers, histories->readers.data[node].mark));
  }
  histories->of[rank] = copy;
  pl_number_set_add(&histories->starts, rank);
  return NULL;
}

static int32_t next_start(const pl_histories *histories, int32_t rank) {
  int32_t next = pl_number_set_above(&histories->starts, rank + 1);
  assert(next > rank); /* there is one behind the end */
  return next;
}

/* Whether the access `earlier`, if there is one, has ended before the present one begins. */
static bool ordered(pl_mark earlier, pl_mark present, const pl_seen *seen) {
  return earlier.stream < 0 || pl_seen_end(seen, present.stream, earlier.stream, earlier.epoch);
}

/* Looks for an access in `extent`, whose ends are starts, that is not ordered before the present one. */
static bool conflicts(const pl_histories *histories, pl_extent extent, bool writes, pl_mark mark, const pl_seen *seen,
                      pl_conflict *out) {
  *out = (pl_conflict){0};
  for (int32_t start = extent.lo; start < extent.hi; start = next_start(histories, start)) {
    const pl_history *history = &histories->of[start];
    if (!ordered(history->write, mark, seen)) {
      *out = (pl_conflict){.found = true, .with_write = true, .with = history->write};
      return true;
    }
    for (int32_t node = writes ? history->readers : -1; node >= 0; node = histories->readers.data[node].next) {
      if (ordered(histories->readers.data[node].mark, mark, seen)) continue;
      *out = (pl_conflict){.found = true, .with = histories->readers.data[node].mark};
      return true;
    }
  }
  return false;
}
