/* Who touched which bytes (check/histories.h), beside a list of accesses for every byte. */
#include <check.h>
#include <string.h>

#include "check/histories.h"
#include "tests/support/unit.h"

enum { MOST_STREAMS = 40, RANKS = 24, STEPS = 3000 };

static uint64_t seed;
static int32_t draw(int32_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)((seed >> 33) % (uint32_t)below);
}

/* Of every rank the last write, and the last read of each stream since; epoch 0: none. */
typedef struct plain {
  pl_mark write[RANKS];
  int32_t reads[RANKS][MOST_STREAMS];
} plain;

static bool is_free(const plain *p, const pl_interval_place *place, bool writes, int32_t stream, int32_t n_streams,
                    const pl_seen *seen) {
  for (int64_t k = 0; k < place->n; k++) {
    pl_extent extent = pl_place_extent(place, k);
    for (int32_t r = extent.lo; r < extent.hi; r++) {
      const pl_mark *write = &p->write[r];
      if (write->epoch > 0 && !pl_seen_end(seen, stream, write->stream, write->epoch)) return false;
      for (int32_t s = 0; writes && s < n_streams; s++)
        if (p->reads[r][s] > 0 && !pl_seen_end(seen, stream, s, p->reads[r][s])) return false;
    }
  }
  return true;
}

static void note(plain *p, const pl_interval_place *place, bool writes, pl_mark mark) {
  for (int64_t k = 0; k < place->n; k++) {
    pl_extent extent = pl_place_extent(place, k);
    for (int32_t r = extent.lo; r < extent.hi; r++) {
      if (!writes) {
        p->reads[r][mark.stream] = mark.epoch;
        continue;
      }
      p->write[r] = mark;
      memset(p->reads[r], 0, sizeof p->reads[r]);
    }
  }
}

/* A place of several extents, which is open or not. */
typedef struct opened {
  pl_extent ends[2], inner[RANKS];
  pl_interval_place place;
  bool open;
  int32_t history; /* -1: nothing was written yet */
} opened;

static bool is_taken(const opened *all, int32_t n, int32_t rank) {
  for (int32_t i = 0; i < n; i++)
    for (int64_t k = 0; k < (all[i].open ? all[i].place.n : 0); k++) {
      pl_extent extent = pl_place_extent(&all[i].place, k);
      if (extent.lo <= rank && rank < extent.hi) return true;
    }
  return false;
}

static bool is_among(const pl_extent *extents, int32_t n, int32_t rank) {
  for (int32_t k = 0; k < n; k++)
    if (extents[k].lo <= rank && rank < extents[k].hi) return true;
  return false;
}

/* Opens the place `at` of `all` somewhere where nothing is open, in any order of its extents. */
static void open_somewhere(opened *all, int32_t n, opened *at) {
  pl_extent extents[RANKS];
  int32_t n_extents = 0, wanted = 1 + draw(5);
  for (int32_t try = 0; try < 4 * RANKS && n_extents < wanted; try++) {
    int32_t lo = draw(RANKS), most = lo + 1 + draw(RANKS - lo), hi = lo;
    while (hi < most && !is_taken(all, n, hi) && !is_among(extents, n_extents, hi)) hi++;
    if (hi > lo) extents[n_extents++] = (pl_extent){lo, hi};
  }
  *at = (opened){.open = n_extents > 0, .history = -1};
  if (!at->open) return;
  at->ends[0] = extents[0];
  at->ends[1] = extents[n_extents - 1];
  for (int32_t k = 1; k + 1 < n_extents; k++) at->inner[k - 1] = extents[k];
  at->place = (pl_interval_place){.ends = at->ends, .inner = at->inner, .n = n_extents};
}

static void access_place(pl_histories *histories, opened *at, bool writes, pl_mark mark, const pl_seen *seen,
                         pl_conflict *out) {
  if (at->history < 0)
    ok(pl_histories_write_first(histories, &at->place, mark, seen, &at->history, out));
  else if (writes)
    pl_histories_write(histories, at->history, mark, seen, out);
  else
    ok(pl_histories_read(histories, at->history, mark, seen, out));
}

/* Places come and go on the same bytes. Waits for all streams, or for all but one, now and then, let writes come
 * through; reads of many streams pile up between them. */
START_TEST(accesses_conflict_as_for_every_byte_alone) {
  enum { PLACES = 5 };
  int32_t n_streams = 1 + _i % MOST_STREAMS, n_first = 0, n_further = 0, n_conflicts = 0;
  planc_job job = {.replicas = 1};
  planc_plan plan = {.n_jobs = 1, .jobs = &job, .n_streams = n_streams, .n_events = n_streams};
  static plain p;
  opened places[PLACES] = {{.open = false}};
  pl_arena arena = {0};
  pl_seen seen;
  pl_histories histories;
  seed = (uint64_t)_i;
  memset(&p, 0, sizeof p);
  ok(pl_seen_make(&arena, &plan, &seen));
  ok(pl_histories_make(&arena, RANKS, n_streams, &histories));
  for (int32_t step = 0; step < STEPS; step++) {
    opened *at = &places[draw(PLACES)];
    int32_t stream = draw(n_streams);
    if (at->open && draw(30) == 0) at->open = false;
    if (!at->open) open_somewhere(places, PLACES, at);
    if (!at->open) continue;
    bool first = at->history < 0, writes = first || draw(12) == 0;
    for (int32_t s = 0; s < n_streams && draw(4) == 0; s++) {
      int32_t of = draw(3) ? s : draw(n_streams);
      pl_seen_record(&seen, of, of, 0);
      ok(pl_seen_wait(&seen, &(planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)stream, .id = of}));
    }
    bool waits = writes && draw(2);
    int32_t left_out = draw(2) ? draw(n_streams) : -1;
    for (int32_t s = 0; s < n_streams && waits; s++) {
      if (s == left_out) continue;
      pl_seen_record(&seen, s, s, 0);
      ok(pl_seen_wait(&seen, &(planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)stream, .id = s}));
    }
    pl_mark mark = {.instr = step, .epoch = ++seen.epochs[stream], .stream = stream};
    bool expected = is_free(&p, &at->place, writes, stream, n_streams, &seen);
    pl_conflict conflict;
    access_place(&histories, at, writes, mark, &seen, &conflict);
    ck_assert_msg(conflict.found != expected, "step %d", step);
    if (expected) note(&p, &at->place, writes, mark);
    n_first += expected && first;
    n_further += expected && writes && !first;
    n_conflicts += !expected;
  }
  ck_assert_int_gt(n_first, 0);
  ck_assert_int_gt(n_further, 0);
  ck_assert(n_conflicts > 0 || n_streams == 1);
  ck_assert_int_le(histories.of.len, RANKS + 2); /* those that no byte has are used again */
  pl_histories_free(&histories);
  pl_seen_free(&seen);
  pl_arena_free(&arena);
}
END_TEST

/* Streams that read the same bytes over and over keep at most so many readers of them, however many pieces they are. */
START_TEST(readers_are_thinned) {
  enum { READS = 20000 };
  planc_job job = {.replicas = 1};
  planc_plan plan = {.n_jobs = 1, .jobs = &job, .n_streams = MOST_STREAMS, .n_events = 1};
  opened at = {.ends = {{0, 1}, {2 * RANKS - 2, 2 * RANKS - 1}}, .history = -1};
  pl_arena arena = {0};
  pl_seen seen;
  pl_histories histories;
  pl_conflict conflict;
  for (int32_t k = 1; k < RANKS - 1; k++) at.inner[k - 1] = (pl_extent){2 * k, 2 * k + 1};
  at.place = (pl_interval_place){.ends = at.ends, .inner = at.inner, .n = RANKS};
  ok(pl_seen_make(&arena, &plan, &seen));
  ok(pl_histories_make(&arena, 2 * RANKS, MOST_STREAMS, &histories));
  access_place(&histories, &at, true, (pl_mark){.epoch = ++seen.epochs[0]}, &seen, &conflict);
  for (int32_t s = 0; s < MOST_STREAMS; s++) {
    pl_seen_record(&seen, 0, 0, 0);
    ok(pl_seen_wait(&seen, &(planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)s, .id = 0}));
  }
  for (int32_t k = 0; k < READS; k++) {
    int32_t stream = k % MOST_STREAMS;
    pl_mark mark = {.instr = k, .epoch = ++seen.epochs[stream], .stream = stream};
    access_place(&histories, &at, false, mark, &seen, &conflict);
    ck_assert(!conflict.found);
  }
  ck_assert_int_le(histories.readers.len, 4 * MOST_STREAMS);
  pl_histories_free(&histories);
  pl_seen_free(&seen);
  pl_arena_free(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("histories");
  TCase *cases = tcase_create("all");
  tcase_add_loop_test(cases, accesses_conflict_as_for_every_byte_alone, 0, 120);
  tcase_add_test(cases, readers_are_thinned);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
