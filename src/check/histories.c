/* Who touched which bytes when (histories.h). */
#include "check/histories.h"

static const planc_history untouched = {.write = {.stream = -1}, .readers = -1};

planc_status planc_histories_make(planc_arena *arena, int32_t n_ranks, planc_histories *out) {
  *out = (planc_histories){.n_ranks = n_ranks, .free_readers = -1};
  PLANC_TRY(planc_number_set_make(arena, n_ranks + 1, &out->starts));
  PLANC_TRY(PLANC_NEW(arena, &out->histories, (int64_t)n_ranks + 1));
  /* An interval from the start to the end, and one behind the end, so that every interval has a next one. */
  out->histories[0] = out->histories[n_ranks] = untouched;
  planc_number_set_add(&out->starts, 0);
  planc_number_set_add(&out->starts, n_ranks);
  return NULL;
}

void planc_histories_free(planc_histories *memory) {
  VEC_FREE(&memory->readers);
}

/* --- Readers -------------------------------------------------------------------------------------------------- */

static planc_status add_reader(planc_histories *memory, int32_t *list, planc_mark mark) {
  int32_t node = memory->free_readers;
  if (node >= 0) {
    memory->free_readers = memory->readers.data[node].next;
  } else {
    node = (int32_t)memory->readers.len;
    VEC_PUSH(&memory->readers, (planc_reader){0});
  }
  memory->readers.data[node] = (planc_reader){.mark = mark, .next = *list};
  *list = node;
  return NULL;
}

static void drop_readers(planc_histories *memory, planc_history *history) {
  int32_t node = history->readers;
  while (node >= 0) {
    int32_t next = memory->readers.data[node].next;
    memory->readers.data[node].next = memory->free_readers;
    memory->free_readers = node;
    node = next;
  }
  history->readers = -1;
}

/* --- Intervals ------------------------------------------------------------------------------------------------ */

/* Makes an interval start at `rank`: the upper part of the one that holds it. */
static planc_status split(planc_histories *memory, int32_t rank) {
  int32_t start = planc_number_set_below(&memory->starts, rank);
  if (start == rank) return NULL;
  planc_history copy = memory->histories[start];
  copy.readers = -1;
  for (int32_t node = memory->histories[start].readers; node >= 0; node = memory->readers.data[node].next) {
    PLANC_TRY(add_reader(memory, &copy.readers, memory->readers.data[node].mark));
  }
  memory->histories[rank] = copy;
  planc_number_set_add(&memory->starts, rank);
  return NULL;
}

static int32_t next_start(const planc_histories *memory, int32_t rank) {
  return planc_number_set_above(&memory->starts, rank + 1);
}

/* True when the stream that `clock` belongs to has seen the end of `mark`. */
static bool ordered(planc_mark mark, const int32_t *clock) {
  return mark.stream < 0 || clock[mark.stream] >= mark.epoch;
}

/* Looks for an access in `extent`, whose ends are starts, that is not ordered before the present one. */
static bool conflicts(const planc_histories *memory, planc_extent extent, bool writes, const int32_t *clock,
                      planc_conflict *out) {
  *out = (planc_conflict){0};
  for (int32_t start = extent.lo; start < extent.hi; start = next_start(memory, start)) {
    const planc_history *history = &memory->histories[start];
    if (!ordered(history->write, clock)) {
      *out = (planc_conflict){.found = true, .with_write = true, .with = history->write};
      return true;
    }
    for (int32_t node = writes ? history->readers : -1; node >= 0; node = memory->readers.data[node].next) {
      if (ordered(memory->readers.data[node].mark, clock)) continue;
      *out = (planc_conflict){.found = true, .with = memory->readers.data[node].mark};
      return true;
    }
  }
  return false;
}

planc_status planc_histories_read(planc_histories *memory, planc_extent extent, planc_mark mark, const int32_t *clock,
                                  planc_conflict *out) {
  PLANC_TRY(split(memory, extent.lo));
  PLANC_TRY(split(memory, extent.hi));
  if (conflicts(memory, extent, false, clock, out)) return NULL;
  for (int32_t start = extent.lo; start < extent.hi; start = next_start(memory, start)) {
    planc_history *history = &memory->histories[start];
    int32_t node = history->readers;
    while (node >= 0 && memory->readers.data[node].mark.stream != mark.stream) node = memory->readers.data[node].next;
    if (node >= 0) {
      memory->readers.data[node].mark = mark;
    } else {
      PLANC_TRY(add_reader(memory, &history->readers, mark));
    }
  }
  return NULL;
}

planc_status planc_histories_write(planc_histories *memory, planc_extent extent, planc_mark mark, const int32_t *clock,
                                   planc_conflict *out) {
  PLANC_TRY(split(memory, extent.lo));
  PLANC_TRY(split(memory, extent.hi));
  if (conflicts(memory, extent, true, clock, out)) return NULL;
  int32_t start = extent.lo;
  while (start < extent.hi) {
    int32_t next = next_start(memory, start);
    drop_readers(memory, &memory->histories[start]);
    if (start > extent.lo) planc_number_set_remove(&memory->starts, start);
    start = next;
  }
  memory->histories[extent.lo] = untouched;
  memory->histories[extent.lo].write = mark;
  return NULL;
}
