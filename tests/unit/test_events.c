/* Waits between streams: clocks beside plain arrays; random work, whose waits must order every two accesses of the same
 * bytes and none of which can be left out; and more streams than one clock per step would have memory for. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "planner/lower/events.h"
#include "tests/support/unit.h"
#include "util/clocks.h"

static uint64_t seed;
static int32_t draw(int32_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)((seed >> 33) % (uint32_t)below);
}

/* --- Clocks ------------------------------------------------------------------------------------------------------- */

enum { MOST_STREAMS = 600, N_CLOCKS = 40 };

typedef struct plain_clock {
  int32_t clock, steps[MOST_STREAMS];
} plain_clock;

static void assert_clock(const pl_clocks *clocks, const plain_clock *plain, int32_t n_streams) {
  for (int32_t t = 0; t < n_streams; t++) ck_assert_int_eq(pl_clock_at(clocks, plain->clock, t), plain->steps[t]);
}

/* Clocks that others are made from stay as they are. */
START_TEST(clocks_are_like_arrays) {
  static plain_clock all[N_CLOCKS];
  static const int32_t sizes[] = {1, 3, 8, 9, 64, 65, MOST_STREAMS};
  seed = (uint64_t)_i;
  int32_t n_streams = sizes[_i % 7];
  pl_clocks clocks = pl_clocks_of(n_streams);
  for (int32_t k = 0; k < N_CLOCKS; k++) {
    all[k].clock = PL_CLOCK_NONE;
    memset(all[k].steps, -1, sizeof all[k].steps);
  }
  for (int32_t step = 0; step < 2000; step++) {
    plain_clock *to = &all[draw(N_CLOCKS)], *from = &all[draw(N_CLOCKS)];
    int32_t stream = draw(n_streams);
    switch (draw(3)) {
      case 0:
        ok(pl_clock_set(&clocks, &to->clock, stream, step));
        to->steps[stream] = step;
        break;
      case 1:
        ok(pl_clock_join(&clocks, &to->clock, from->clock));
        for (int32_t t = 0; t < n_streams; t++)
          if (from->steps[t] > to->steps[t]) to->steps[t] = from->steps[t];
        break;
      default:
        *to = *from;
    }
    if (step % 100 == 99)
      for (int32_t k = 0; k < N_CLOCKS; k++) assert_clock(&clocks, &all[k], n_streams);
  }
  pl_clocks_free(&clocks);
}
END_TEST

/* What is known already takes no memory. */
START_TEST(a_join_that_teaches_nothing_makes_no_clock) {
  pl_clocks clocks = pl_clocks_of(MOST_STREAMS);
  int32_t much = PL_CLOCK_NONE, little = PL_CLOCK_NONE;
  for (int32_t t = 0; t < MOST_STREAMS; t += 7) ok(pl_clock_set(&clocks, &much, t, 100 + t));
  for (int32_t t = 0; t < MOST_STREAMS; t += 14) ok(pl_clock_set(&clocks, &little, t, 50 + t));
  int64_t before = clocks.nodes.len;
  int32_t was = much;
  ok(pl_clock_join(&clocks, &much, little));
  ck_assert_int_eq(much, was);
  ok(pl_clock_join(&clocks, &little, much));
  ck_assert_int_eq(little, was);
  ck_assert_int_eq(clocks.nodes.len, before);
  pl_clocks_free(&clocks);
}
END_TEST

/* --- Random work -------------------------------------------------------------------------------------------------- */

enum { BODIES = 3, MOST_STEPS = 24, MOST_RANGES = 8, MOST_NODES = (BODIES + 1) * MOST_STEPS };

typedef struct work {
  pl_hazards hazards;
  pl_range ranges[MOST_RANGES];
  pl_range_touch touches[3 * MOST_STEPS];
  pl_step steps[MOST_STEPS];
} work;

static void make_work(work *w) {
  *w = (work){.hazards = {.replicas = 1}};
  w->hazards.n_streams = 1 + draw(5);
  w->hazards.n_ranges = 1 + draw(MOST_RANGES);
  w->hazards.n_steps = 2 + draw(MOST_STEPS - 1);
  w->hazards.n_body = w->hazards.n_steps - draw(3);
  for (int32_t r = 0; r < w->hazards.n_ranges; r++) {
    int32_t start = draw(12);
    w->ranges[r] = (pl_range){start, start + draw(6)};
  }
  int32_t n = 0;
  for (int32_t s = 0; s < w->hazards.n_steps; s++) {
    pl_step *step = &w->steps[s];
    *step = (pl_step){.stream = draw(w->hazards.n_streams), .first_touch = n, .await = -1};
    if (s > 0 && s < w->hazards.n_body && draw(6) == 0) {
      step->await = draw(s);
      continue;
    }
    for (step->n_touches = 0; step->n_touches < 3 && draw(4); step->n_touches++)
      w->touches[n++] = (pl_range_touch){.range = draw(w->hazards.n_ranges), .write = draw(3) == 0};
  }
  w->hazards.ranges = w->ranges;
  w->hazards.touches = w->touches;
  w->hazards.steps = w->steps;
}

/* A run of BODIES bodies and what comes after them: node = body * n_body + step. */
static int32_t step_of(const work *w, int32_t node) {
  int32_t n_body = w->hazards.n_body;
  return node < BODIES * n_body ? node % n_body : node - (BODIES - 1) * n_body;
}

static int32_t count_nodes(const work *w) {
  return (BODIES - 1) * w->hazards.n_body + w->hazards.n_steps;
}

static bool before[MOST_NODES][MOST_NODES];

/* Who has ended when whom begins, by streams and by all waits but `left_out`. */
static void find_order(const work *w, const pl_waits *waits, int64_t left_out) {
  int32_t n = count_nodes(w), n_body = w->hazards.n_body;
  memset(before, 0, sizeof before);
  for (int32_t b = 0; b < n; b++) {
    for (int32_t a = 0; a < b; a++) before[a][b] = w->steps[step_of(w, a)].stream == w->steps[step_of(w, b)].stream;
    for (int64_t k = 0; k < waits->len; k++) {
      pl_wait wait = waits->data[k];
      if (wait.step != step_of(w, b) || k == left_out) continue;
      int32_t a = b - wait.step + wait.producer - wait.lag * n_body;
      if (wait.step >= n_body && wait.producer < n_body) a = (BODIES - 1) * n_body + wait.producer;
      if (a >= 0) before[a][b] = true;
    }
    for (int32_t a = 0; a < b; a++)
      for (int32_t c = 0; before[a][b] && c < a; c++) before[c][b] |= before[c][a];
  }
}

static bool touches_meet(const work *w, const pl_range_touch *a, const pl_range_touch *b) {
  const pl_range *x = &w->ranges[a->range], *y = &w->ranges[b->range];
  if (!a->write && !b->write) return false;
  return x->start < y->end && y->start < x->end && x->start < x->end && y->start < y->end;
}

/* Whether two steps have to come in their order. */
static bool conflict(const work *w, int32_t a, int32_t b) {
  for (int32_t i = 0; i < w->steps[a].n_touches; i++)
    for (int32_t j = 0; j < w->steps[b].n_touches; j++)
      if (touches_meet(w, &w->touches[w->steps[a].first_touch + i], &w->touches[w->steps[b].first_touch + j]))
        return true;
  return false;
}

static bool is_awaited(const work *w, int32_t a, int32_t b) {
  return step_of(w, a) == w->steps[step_of(w, b)].await && a == b - step_of(w, b) + w->steps[step_of(w, b)].await;
}

static bool has_race(const work *w) {
  int32_t n = count_nodes(w);
  for (int32_t b = 0; b < n; b++)
    for (int32_t a = 0; a < b; a++)
      if (!before[a][b] && (is_awaited(w, a, b) || conflict(w, step_of(w, a), step_of(w, b)))) return true;
  return false;
}

START_TEST(waits_order_all_and_none_is_in_vain) {
  work w;
  for (int32_t c = 0; c < 200; c++) {
    seed = (uint64_t)(_i * 200 + c);
    make_work(&w);
    pl_waits waits = {0};
    ok(pl_find_waits(&w.hazards, &waits));
    find_order(&w, &waits, -1);
    ck_assert_msg(!has_race(&w), "case %d: a hazard is not ordered", c);
    for (int64_t k = 0; k < waits.len; k++) {
      find_order(&w, &waits, k);
      ck_assert_msg(has_race(&w), "case %d: wait %lld can be left out", c, (long long)k);
    }
    VEC_FREE(&waits);
  }
}
END_TEST

/* --- Many streams ------------------------------------------------------------------------------------------------- */

/* Streams in pairs that hand each other bytes: clocks of all streams for each step would take 6 GB, and a list of all
 * streams for each range another one. */
START_TEST(nothing_is_dense_in_streams) {
  enum { STREAMS = 20000, STEPS = 2 * STREAMS, MOST_KB = 300000 };
  pl_range *ranges = calloc(STREAMS / 2, sizeof *ranges);
  pl_range_touch *touches = calloc(STEPS, sizeof *touches);
  pl_step *steps = calloc(STEPS, sizeof *steps);
  ck_assert(ranges && touches && steps);
  for (int32_t r = 0; r < STREAMS / 2; r++) ranges[r] = (pl_range){r, r + 1};
  for (int32_t s = 0; s < STEPS; s++) {
    int32_t stream = s % STREAMS, turn = s / STREAMS;
    steps[s] = (pl_step){.stream = stream, .first_touch = s, .n_touches = 1, .await = -1};
    touches[s] = (pl_range_touch){.range = stream / 2, .write = (stream + turn) % 2};
  }
  struct rusage usage;
  pl_hazards hazards = {.n_ranges = STREAMS / 2,
                        .ranges = ranges,
                        .touches = touches,
                        .replicas = 1,
                        .n_streams = STREAMS,
                        .n_body = STEPS,
                        .n_steps = STEPS,
                        .steps = steps};
  pl_waits waits = {0};
  ok(pl_find_waits(&hazards, &waits));
  (void)getrusage(RUSAGE_SELF, &usage);
  ck_assert_int_le(usage.ru_maxrss, MOST_KB);
  /* Of each pair the first reads, the other writes, the first writes, the other reads: each waits for the one before,
   * but for the first, which has written what it reads. */
  ck_assert_int_eq(waits.len, STEPS / 4 * 3);
  for (int64_t k = 0; k < waits.len; k++) {
    ck_assert_int_eq(steps[waits.data[k].producer].stream, steps[waits.data[k].step].stream ^ 1);
    ck_assert_int_eq(waits.data[k].lag, 0);
  }
  VEC_FREE(&waits);
  free(ranges);
  free(touches);
  free(steps);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("events");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_loop_test(tests, clocks_are_like_arrays, 0, 14);
  tcase_add_test(tests, a_join_that_teaches_nothing_makes_no_clock);
  tcase_add_loop_test(tests, waits_order_all_and_none_is_in_vain, 0, 10);
  tcase_add_test(tests, nothing_is_dense_in_streams);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
