/* What streams have seen end (check/seen.h): beside replicas that are followed one by one with whole clocks; and with
 * as many streams as a plan may have. */
#include <check.h>
#include <string.h>

#include "check/seen.h"
#include "tests/support/unit.h"

enum { MOST_STREAMS = 6, MOST_EVENTS = 8, MOST_REPLICAS = 4, STEPS = 400 };

static uint64_t seed;
static int32_t draw(int32_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)((seed >> 33) % (uint32_t)below);
}

static planc_plan plan_of(int32_t n_streams, int32_t n_events, planc_job *job) {
  return (planc_plan){.n_jobs = 1, .jobs = job, .n_streams = n_streams, .n_events = n_events};
}

/* --- Beside whole clocks ------------------------------------------------------------------------------------------ */

/* Of every stream of every replica: up to which command each stream of each replica is known to have ended. */
typedef struct whole_clock {
  int32_t epochs[MOST_REPLICAS][MOST_STREAMS];
} whole_clock;

typedef struct world {
  int32_t n_replicas, n_streams;
  whole_clock now[MOST_REPLICAS][MOST_STREAMS], events[MOST_REPLICAS][MOST_EVENTS];
} world;

static void learn(whole_clock *clock, const whole_clock *from) {
  for (int32_t r = 0; r < MOST_REPLICAS; r++)
    for (int32_t s = 0; s < MOST_STREAMS; s++)
      if (from->epochs[r][s] > clock->epochs[r][s]) clock->epochs[r][s] = from->epochs[r][s];
}

/* All replicas carry out an instruction before any does the next. */
static void wait_in(world *w, const planc_instr *wait) {
  for (int32_t r = 0; r < w->n_replicas; r++)
    for (int32_t of = 0; of < w->n_replicas; of++)
      if ((of != r) == (wait->peers != 0)) learn(&w->now[r][wait->stream], &w->events[of][wait->id]);
}

static void assert_same(const world *w, const pl_seen *seen) {
  int32_t n = w->n_streams;
  for (int32_t s = 0; s < n; s++) {
    for (int32_t of = 0; of < n; of++) {
      for (int32_t epoch = 1; epoch <= seen->epochs[of]; epoch++) {
        ck_assert_int_eq(pl_seen_end(seen, s, of, epoch), w->now[0][s].epochs[0][of] >= epoch);
        if (w->n_replicas == 1) continue;
        ck_assert_int_eq(pl_seen_end(seen, s, n + of, epoch), w->now[0][s].epochs[1][of] >= epoch);
        ck_assert_int_eq(pl_seen_end(seen, n + s, of, epoch), w->now[1][s].epochs[0][of] >= epoch);
      }
    }
  }
}

START_TEST(replicas_are_followed_by_one) {
  world w = {.n_replicas = 1 + _i % MOST_REPLICAS, .n_streams = 1 + _i / MOST_REPLICAS % MOST_STREAMS};
  planc_job job = {.replicas = w.n_replicas};
  planc_plan plan = plan_of(w.n_streams, MOST_EVENTS, &job);
  pl_arena arena = {0};
  pl_seen seen;
  seed = (uint64_t)_i;
  ok(pl_seen_make(&arena, &plan, &seen));
  for (int32_t step = 0; step < STEPS; step++) {
    int32_t stream = draw(w.n_streams), event = draw(MOST_EVENTS);
    planc_instr wait = {.op = PLANC_INSTR_wait, .stream = (int16_t)stream, .id = event};
    switch (draw(3)) {
      case 0:
        seen.epochs[stream]++;
        for (int32_t r = 0; r < w.n_replicas; r++) w.now[r][stream].epochs[r][stream]++;
        break;
      case 1:
        pl_seen_record(&seen, event, stream, 0);
        for (int32_t r = 0; r < w.n_replicas; r++) w.events[r][event] = w.now[r][stream];
        break;
      default:
        if (seen.events[event].body == PL_NO_BODY) break;
        wait.peers = w.n_replicas > 1 && draw(2);
        ok(pl_seen_wait(&seen, &wait));
        wait_in(&w, &wait);
    }
    if (step % 20 == 0) assert_same(&w, &seen);
  }
  pl_seen_free(&seen);
  pl_arena_free(&arena);
}
END_TEST

/* --- Many streams ------------------------------------------------------------------------------------------------- */

/* Each waits for the one before, so the last one knows of all. Clocks as long as there are streams would be as many
 * times as long; what a wait brings is a path from the root. */
START_TEST(a_wait_takes_little_of_many_streams) {
  enum { NODES_OF_WAIT = 5 };
  planc_job job = {.replicas = 1};
  planc_plan plan = plan_of(PLANC_PLAN_MAX_STREAMS, PLANC_PLAN_MAX_STREAMS, &job);
  pl_arena arena = {0};
  pl_seen seen;
  ok(pl_seen_make(&arena, &plan, &seen));
  for (int32_t s = 0; s < plan.n_streams; s++) {
    planc_instr wait = {.op = PLANC_INSTR_wait, .stream = (int16_t)s, .id = s - 1};
    if (s > 0) ok(pl_seen_wait(&seen, &wait));
    seen.epochs[s]++;
    pl_seen_record(&seen, s, s, 0);
  }
  int32_t last = plan.n_streams - 1;
  for (int32_t s = 0; s < plan.n_streams; s++) ck_assert(pl_seen_end(&seen, last, s, 1));
  ck_assert(!pl_seen_end(&seen, 0, last, 1));
  ck_assert_int_le(seen.clocks.nodes.len, (int64_t)plan.n_streams * NODES_OF_WAIT);
  pl_seen_free(&seen);
  pl_arena_free(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("seen");
  TCase *cases = tcase_create("all");
  tcase_add_loop_test(cases, replicas_are_followed_by_one, 0, 120);
  tcase_add_test(cases, a_wait_takes_little_of_many_streams);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
