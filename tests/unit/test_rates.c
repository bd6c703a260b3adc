/* How kernels of several jobs share a GPU: by hand, and against the law itself on random kernels. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "planner/simulate/sim_machine.h"
#include "runtime/random.h"
#include "tests/support/unit.h"

enum { MOST = 12 };

/* A kernel of a job with a priority. */
typedef struct ranked {
  sim_kernel of;
  int32_t priority;
} ranked;

/* Compute streams of one GPU, each of a job of its own. */
typedef struct fixture {
  pl_arena arena;
  sim_program program;
  sim_stream streams[MOST];
} fixture;

static void make(fixture *f, int32_t n) {
  *f = (fixture){.program = {.n_jobs = n, .n_streams = n, .n_gpus = 1}};
  for (int32_t s = 0; s < n; s++) f->streams[s] = (sim_stream){.computes = true, .job = s};
  f->program.streams = f->streams;
}

static void rank(fixture *f, int32_t stream, int32_t priority) {
  f->streams[stream].priority = priority;
  if (priority > f->program.most_priority) f->program.most_priority = priority;
}

/* --- By hand ------------------------------------------------------------------------------------------------------ */

/* One kernel of each job, all at once; when each has ended. */
static void end_of(const ranked *kernels, int32_t n, int64_t *out) {
  fixture f;
  sim_step steps[MOST];
  sim_state state;
  bool over = false;
  make(&f, n);
  for (int32_t k = 0; k < n; k++) {
    const sim_kernel *of = &kernels[k].of;
    steps[k] =
        (sim_step){.kind = SIM_KERNEL, .stream = k, .time_ns = of->time_ns, .busy_ppm = of->busy_ppm, .op = true};
    rank(&f, k, kernels[k].priority);
  }
  f.program.device = (planc_plan_device){.in_flight = 8, .duplex_ppm = PL_PPM};
  f.program.sections[SIM_BODY] = (sim_section){.steps = steps, .n = n};
  ok(sim_prepare(&f.program, &f.arena));
  ok(sim_state_make(&f.program, &f.arena, &state));
  state.last_body = 1;
  for (int32_t k = 0; k < n; k++) out[k] = -1;
  while (!over) {
    ok(sim_advance(&f.program, &state, NULL, &over));
    for (int32_t k = 0; k < n; k++)
      if (out[k] < 0 && state.lanes[k].stage == 1 && state.lanes[k].running < 0 && state.lanes[k].ended >= 0)
        out[k] = state.now;
  }
  pl_arena_free(&f.arena);
}

START_TEST(kernels_take_turns) {
  enum { ALL = PL_PPM };
  static const struct {
    int32_t n;
    ranked kernels[3];
    int64_t ends[3];
  } cases[] = {
      /* Room for both. */
      {2, {{{.time_ns = 1000, .busy_ppm = 400000}, 0}, {{.time_ns = 10, .busy_ppm = 600000}, 0}}, {1000, 10}},
      /* A short kernel waits for a long one's blocks, and both are done when all the work is. */
      {2, {{{.time_ns = 1000, .busy_ppm = ALL}, 0}, {{.time_ns = 10, .busy_ppm = ALL}, 0}}, {1010, 1010}},
      {3,
       {{{.time_ns = 300, .busy_ppm = ALL}, 0},
        {{.time_ns = 200, .busy_ppm = ALL}, 0},
        {{.time_ns = 100, .busy_ppm = ALL}, 0}},
       {600, 600, 600}},
      /* The long one cannot use more than 600,000: what it leaves is two thirds of what the short one can use. */
      {2, {{{.time_ns = 1000, .busy_ppm = 600000}, 0}, {{.time_ns = 10, .busy_ppm = 600000}, 0}}, {1000, 15}},
      /* One that keeps nothing busy is in nobody's way. */
      {2, {{{.time_ns = 1000, .busy_ppm = ALL}, 0}, {{.time_ns = 10, .busy_ppm = 0}, 0}}, {1000, 10}},
      /* One of a higher priority is done as alone, and the other goes on when it is. */
      {2, {{{.time_ns = 1000, .busy_ppm = ALL}, 0}, {{.time_ns = 10, .busy_ppm = ALL}, 1}}, {1010, 10}},
      {2, {{{.time_ns = 1000, .busy_ppm = ALL}, 5}, {{.time_ns = 10, .busy_ppm = ALL}, 0}}, {1000, 1010}},
      /* It leaves two thirds of what the other can use. */
      {2, {{{.time_ns = 10, .busy_ppm = 600000}, 0}, {{.time_ns = 1000, .busy_ppm = 600000}, 1}}, {15, 1000}},
      /* Two of one priority share what the first leaves: half of the GPU, then all of it. */
      {3,
       {{{.time_ns = 100, .busy_ppm = 500000}, 3},
        {{.time_ns = 200, .busy_ppm = ALL}, 1},
        {{.time_ns = 200, .busy_ppm = ALL}, 1}},
       {100, 450, 450}},
      /* The lowest has nothing until one above it has ended. */
      {3,
       {{{.time_ns = 100, .busy_ppm = ALL}, 0},
        {{.time_ns = 200, .busy_ppm = 600000}, 1},
        {{.time_ns = 300, .busy_ppm = 400000}, 2}},
       {340, 200, 300}},
  };
  int64_t ends[MOST];
  end_of(cases[_i].kernels, cases[_i].n, ends);
  for (int32_t k = 0; k < cases[_i].n; k++) ck_assert_int_le(llabs(ends[k] - cases[_i].ends[k]), 1);
}
END_TEST

/* --- The law ------------------------------------------------------------------------------------------------------ */

/* What each gets is all that it can use, or a part in proportion to its time; and nothing is left where they want more.
 */
START_TEST(nothing_is_left_where_more_is_wanted) {
  uint64_t n_draws = 0, seed = (uint64_t)_i;
  fixture f;
  int32_t n = 2 + (int32_t)(rt_random(seed, n_draws++) % (MOST - 1));
  make(&f, n);
  sim_kernel drawn[MOST];
  sim_activity activity;
  int64_t wanted = 0;
  ok(sim_activity_make(&f.program, &f.arena, &activity));
  for (int32_t k = 0; k < n; k++) {
    drawn[k] = (sim_kernel){.time_ns = 1 + (int64_t)(rt_random(seed, n_draws++) % 1000000),
                            .busy_ppm = 1 + (int32_t)(rt_random(seed, n_draws++) % PL_PPM)};
    wanted += drawn[k].busy_ppm;
    sim_occupy(&f.program, &activity, k, &drawn[k]);
  }
  double used = 0,
         part = -1; /* rate by time alone; rates are whole numbers, so that the longest kernel tells it best */
  int64_t longest = 0;
  for (int32_t k = 0; k < n; k++) {
    int64_t rate = sim_kernel_rate(&f.program, &activity, k);
    ck_assert_int_le(rate, PL_PPM);
    used += (double)rate / PL_PPM * drawn[k].busy_ppm;
    if (rate == PL_PPM || drawn[k].time_ns <= longest) continue;
    longest = drawn[k].time_ns;
    part = (double)rate / (double)longest;
  }
  for (int32_t k = 0; k < n && part >= 0; k++) {
    double rate = (double)sim_kernel_rate(&f.program, &activity, k), due = part * (double)drawn[k].time_ns;
    double slack = 1 + (double)drawn[k].time_ns / (double)longest;
    ck_assert_msg(rate >= PL_PPM ? due >= PL_PPM - slack : fabs(rate - due) <= slack, "%g, %g", rate, due);
  }
  double least = wanted < PL_PPM ? (double)wanted : PL_PPM;
  ck_assert_msg(fabs(used - least) <= 2 * n + 1, "%g of %g", used, least);
  for (int32_t k = 0; k < n; k++) sim_occupy(&f.program, &activity, k, NULL);
  ck_assert_int_eq(activity.gpus->busy_ppm, 0);
  ck_assert_int_eq(activity.gpus->n_computing, 0);
  pl_arena_free(&f.arena);
}
END_TEST

/* Kernels go as if those of lower priorities were not there, and nothing is left where they want more. */
START_TEST(priorities_go_first) {
  uint64_t n_draws = 0, seed = (uint64_t)_i;
  fixture all, above;
  sim_kernel drawn[MOST];
  sim_activity with, without;
  int32_t n = 2 + (int32_t)(rt_random(seed, n_draws++) % (MOST - 1));
  int32_t least = (int32_t)(rt_random(seed, n_draws++) % (PLANC_MAX_PRIORITY + 1));
  double used = 0, wanted = 0;
  make(&all, n);
  make(&above, n);
  ok(sim_activity_make(&all.program, &all.arena, &with));
  ok(sim_activity_make(&above.program, &above.arena, &without));
  for (int32_t k = 0; k < n; k++) {
    int32_t priority = (int32_t)(rt_random(seed, n_draws++) % (PLANC_MAX_PRIORITY + 1));
    drawn[k] = (sim_kernel){.time_ns = 1 + (int64_t)(rt_random(seed, n_draws++) % 1000000),
                            .busy_ppm = 1 + (int32_t)(rt_random(seed, n_draws++) % PL_PPM)};
    wanted += drawn[k].busy_ppm;
    rank(&all, k, priority);
    rank(&above, k, priority);
  }
  for (int32_t k = 0; k < n; k++) {
    sim_occupy(&all.program, &with, k, &drawn[k]);
    if (all.streams[k].priority >= least) sim_occupy(&above.program, &without, k, &drawn[k]);
  }
  for (int32_t k = 0; k < n; k++) {
    int64_t rate = sim_kernel_rate(&all.program, &with, k);
    used += (double)rate / PL_PPM * drawn[k].busy_ppm;
    if (all.streams[k].priority >= least) ck_assert_int_eq(rate, sim_kernel_rate(&above.program, &without, k));
  }
  ck_assert_msg(fabs(used - (wanted < PL_PPM ? wanted : PL_PPM)) <= 2 * n + 1, "%g of %g", used, wanted);
  pl_arena_free(&all.arena);
  pl_arena_free(&above.arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rates");
  TCase *tests = tcase_create("all");
  tcase_add_loop_test(tests, kernels_take_turns, 0, 10);
  tcase_add_loop_test(tests, nothing_is_left_where_more_is_wanted, 0, 500);
  tcase_add_loop_test(tests, priorities_go_first, 0, 500);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
