/* Memory of several streams (Waterwave): chunks never overlap, one that another stream has given back is taken only
 * behind a synchronisation, and nothing is refused while a long enough stretch is free. */
#include <check.h>

#include "planc/schedule.h"
#include "planner/colocate/memory/stream_chunks.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { STREAMS = 3, CHUNKS = 100, STEPS = 4000, UNITS = 256 };
#define CAPACITY ((int64_t)UNITS * PLANC_ALIGNMENT)

enum { SYNCED = -1, TAKEN = -2 };

typedef struct chunk {
  int32_t stream;
  int64_t address, bytes;
} chunk;

typedef struct play {
  uint64_t seed;
  pl_stream_chunks chunks;
  int32_t of_unit[UNITS]; /* TAKEN, SYNCED or the stream that has given it back */
  int32_t n, n_syncs, n_refused;
  chunk live[CHUNKS];
} play;

static int64_t units(int64_t bytes) {
  return (bytes + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT;
}

static void set_units(play *p, const chunk *c, int32_t to) {
  for (int64_t k = 0; k < units(c->bytes); k++) p->of_unit[c->address / PLANC_ALIGNMENT + k] = to;
}

static void note_sync(play *p) {
  for (int32_t k = 0; k < UNITS; k++)
    if (p->of_unit[k] != TAKEN) p->of_unit[k] = SYNCED;
  p->n_syncs++;
}

/* The lowest stretch of units of a kind, or -1. */
static int64_t find_stretch(const play *p, int32_t kind, int64_t bytes) {
  int64_t n = 0;
  for (int64_t k = 0; k < UNITS; k++) {
    n = p->of_unit[k] == kind ? n + 1 : 0;
    if (n == units(bytes)) return (k + 1 - n) * PLANC_ALIGNMENT;
  }
  return -1;
}

static void take(play *p) {
  chunk c = {.stream = (int32_t)rand_below(&p->seed, STREAMS)};
  bool synced;
  c.bytes = 1 + rand_below(&p->seed, rand_chance(&p->seed, 10) ? CAPACITY / 4 : CAPACITY / 40);
  int64_t own = find_stretch(p, c.stream, c.bytes), common = find_stretch(p, SYNCED, c.bytes);
  ok(pl_stream_chunks_take(&p->chunks, c.stream, c.bytes, &c.address, &synced));
  ck_assert_int_eq(synced, own < 0 && common < 0);
  if (synced) note_sync(p);
  int64_t expected = own >= 0 ? own : find_stretch(p, SYNCED, c.bytes);
  ck_assert_int_eq(c.address, expected);
  p->n_refused += c.address < 0;
  if (c.address < 0) return;
  set_units(p, &c, TAKEN);
  p->live[p->n++] = c;
}

/* Whoever used it last gives it back, which need not be who took it. */
static void give(play *p) {
  int32_t k = (int32_t)rand_below(&p->seed, p->n), stream = (int32_t)rand_below(&p->seed, STREAMS);
  ok(pl_stream_chunks_give(&p->chunks, stream, p->live[k].address, p->live[k].bytes));
  set_units(p, &p->live[k], stream);
  p->live[k] = p->live[--p->n];
}

START_TEST(chunks_are_taken_by_kind) {
  static play p;
  p = (play){.seed = (uint64_t)_i + 1};
  for (int32_t k = 0; k < UNITS; k++) p.of_unit[k] = SYNCED;
  ok(pl_stream_chunks_init(&p.chunks, STREAMS, CAPACITY + PLANC_ALIGNMENT - 1));
  for (int step = 0; step < STEPS; step++) {
    bool full = p.n == CHUNKS || (p.n > 0 && rand_chance(&p.seed, 48));
    if (rand_chance(&p.seed, 1)) {
      ok(pl_stream_chunks_sync(&p.chunks));
      note_sync(&p);
    } else if (full) {
      give(&p);
    } else {
      take(&p);
    }
  }
  ck_assert_int_gt(p.n_syncs, STEPS / 200);
  ck_assert_int_gt(p.n_refused, 0);
  pl_stream_chunks_free(&p.chunks);
}
END_TEST

START_TEST(no_memory_is_no_place) {
  pl_stream_chunks chunks;
  int64_t address;
  bool synced;
  ok(pl_stream_chunks_init(&chunks, 1, -5));
  ok(pl_stream_chunks_take(&chunks, 0, 1, &address, &synced));
  ck_assert_int_eq(address, -1);
  pl_stream_chunks_free(&chunks);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stream_chunks");
  TCase *chunks = tcase_create("chunks");
  tcase_add_loop_test(chunks, chunks_are_taken_by_kind, 0, 20);
  tcase_add_test(chunks, no_memory_is_no_place);
  suite_add_tcase(suite, chunks);
  return run_suite(suite);
}
