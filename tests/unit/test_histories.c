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

static bool is_free(const plain *p, pl_extent extent, bool writes, int32_t stream, int32_t n_streams,
                    const pl_seen *seen) {
  for (int32_t r = extent.lo; r < extent.hi; r++) {
    const pl_mark *write = &p->write[r];
    if (write->epoch > 0 && !pl_seen_end(seen, stream, write->stream, write->epoch)) return false;
    for (int32_t s = 0; writes && s < n_streams; s++)
      if (p->reads[r][s] > 0 && !pl_seen_end(seen, stream, s, p->reads[r][s])) return false;
  }
  return true;
}

static void note(plain *p, pl_extent extent, bool writes, pl_mark mark) {
  for (int32_t r = extent.lo; r < extent.hi; r++) {
    if (!writes) {
      p->reads[r][mark.stream] = mark.epoch;
      continue;
    }
    p->write[r] = mark;
    memset(p->reads[r], 0, sizeof p->reads[r]);
  }
}

/* Waits for all streams, or for all but one, now and then, let writes come through; reads of many streams pile up
 * between them. */
START_TEST(accesses_conflict_as_for_every_byte_alone) {
  int32_t n_streams = 1 + _i % MOST_STREAMS, n_writes = 0, n_conflicts = 0;
  planc_job job = {.replicas = 1};
  planc_plan plan = {.n_jobs = 1, .jobs = &job, .n_streams = n_streams, .n_events = n_streams};
  static plain p;
  pl_arena arena = {0};
  pl_seen seen;
  pl_histories histories;
  seed = (uint64_t)_i;
  memset(&p, 0, sizeof p);
  ok(pl_seen_make(&arena, &plan, &seen));
  ok(pl_histories_make(&arena, RANKS, n_streams, &histories));
  for (int32_t step = 0; step < STEPS; step++) {
    int32_t stream = draw(n_streams), lo = draw(RANKS);
    pl_extent extent = {lo, lo + 1 + draw(RANKS - lo)};
    bool writes = draw(12) == 0;
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
    bool expected = is_free(&p, extent, writes, stream, n_streams, &seen);
    pl_conflict conflict;
    ok((writes ? pl_histories_write : pl_histories_read)(&histories, extent, mark, &seen, &conflict));
    ck_assert_msg(conflict.found != expected, "step %d", step);
    if (expected) note(&p, extent, writes, mark);
    n_writes += expected && writes;
    n_conflicts += !expected;
  }
  ck_assert_int_gt(n_writes, 0);
  ck_assert(n_conflicts > 0 || n_streams == 1);
  pl_histories_free(&histories);
  pl_seen_free(&seen);
  pl_arena_free(&arena);
}
END_TEST

/* Streams that read the same bytes over and over keep at most so many readers of them. */
START_TEST(readers_are_thinned) {
  enum { READS = 20000 };
  planc_job job = {.replicas = 1};
  planc_plan plan = {.n_jobs = 1, .jobs = &job, .n_streams = MOST_STREAMS, .n_events = 1};
  pl_arena arena = {0};
  pl_seen seen;
  pl_histories histories;
  pl_conflict conflict;
  ok(pl_seen_make(&arena, &plan, &seen));
  ok(pl_histories_make(&arena, RANKS, MOST_STREAMS, &histories));
  for (int32_t k = 0; k < READS; k++) {
    int32_t stream = k % MOST_STREAMS;
    pl_mark mark = {.instr = k, .epoch = ++seen.epochs[stream], .stream = stream};
    ok(pl_histories_read(&histories, (pl_extent){0, 1}, mark, &seen, &conflict));
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
