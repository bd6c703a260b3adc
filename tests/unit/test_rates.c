/* How kernels of several jobs share a GPU: by hand, and against the law itself on random kernels. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "planner/simulate/sim_machine.h"
#include "runtime/random.h"
#include "tests/support/unit.h"

enum { MOST = 12 };

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

/* --- By hand ------------------------------------------------------------------------------------------------------ */

/* One kernel of each job, all at once; when each has ended. */
static void end_of(const sim_kernel *kernels, int32_t n, int64_t *out) {
  fixture f;
  sim_step steps[MOST];
  sim_state state;
  bool over = false;
  make(&f, n);
  for (int32_t k = 0; k < n; k++)
    steps[k] = (sim_step){
        .kind = SIM_KERNEL, .stream = k, .time_ns = kernels[k].time_ns, .busy_ppm = kernels[k].busy_ppm, .op = true};
  f.program.device = (planc_plan_device){.in_flight = 8, .duplex_ppm = SIM_PPM};
  f.program.sections[SIM_BODY] = (sim_section){.steps = steps, .n = n};
  ok(sim_prepare(&f.program, &f.arena));
  ok(sim_state_make(&f.program, &f.arena, &state));
  state.last_body = 1;
  for (int32_t k = 0; k < n; k++) out[k] = -1;
  while (!over) {
    ok(sim_advance(&f.program, &state, NULL, &over));
    for (int32_t k = 0; k < n; k++)
      if (out[k] < 0 && state.lanes[k].phase == 1 && state.lanes[k].running < 0 && state.lanes[k].ended >= 0)
        out[k] = state.now;
  }
  pl_arena_free(&f.arena);
}

START_TEST(kernels_take_turns) {
  enum { ALL = SIM_PPM };
  static const struct {
    int32_t n;
    sim_kernel kernels[3];
    int64_t ends[3];
  } cases[] = {
      /* Room for both. */
      {2, {{.time_ns = 1000, .busy_ppm = 400000}, {.time_ns = 10, .busy_ppm = 600000}}, {1000, 10}},
      /* A short kernel waits for a long one's blocks, and both are done when all the work is. */
      {2, {{.time_ns = 1000, .busy_ppm = ALL}, {.time_ns = 10, .busy_ppm = ALL}}, {1010, 1010}},
      {3,
       {{.time_ns = 300, .busy_ppm = ALL}, {.time_ns = 200, .busy_ppm = ALL}, {.time_ns = 100, .busy_ppm = ALL}},
       {600, 600, 600}},
      /* The long one cannot use more than 600,000: what it leaves is two thirds of what the short one can use. */
      {2, {{.time_ns = 1000, .busy_ppm = 600000}, {.time_ns = 10, .busy_ppm = 600000}}, {1000, 15}},
      /* One that keeps nothing busy is in nobody's way. */
      {2, {{.time_ns = 1000, .busy_ppm = ALL}, {.time_ns = 10, .busy_ppm = 0}}, {1000, 10}},
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
  sim_gpu gpu = {0};
  sim_kernel kernels[MOST] = {0}, drawn[MOST];
  sim_activity activity = {.gpus = &gpu, .kernels = kernels};
  int64_t wanted = 0;
  for (int32_t k = 0; k < n; k++) {
    drawn[k] = (sim_kernel){.time_ns = 1 + (int64_t)(rt_random(seed, n_draws++) % 1000000),
                            .busy_ppm = 1 + (int32_t)(rt_random(seed, n_draws++) % SIM_PPM)};
    wanted += drawn[k].busy_ppm;
    sim_occupy(&f.program, &activity, k, &drawn[k]);
  }
  double used = 0,
         part = -1; /* rate by time alone; rates are whole numbers, so that the longest kernel tells it best */
  int64_t longest = 0;
  for (int32_t k = 0; k < n; k++) {
    int64_t rate = sim_kernel_rate(&f.program, &activity, k);
    ck_assert_int_le(rate, SIM_PPM);
    used += (double)rate / SIM_PPM * drawn[k].busy_ppm;
    if (rate == SIM_PPM || drawn[k].time_ns <= longest) continue;
    longest = drawn[k].time_ns;
    part = (double)rate / (double)longest;
  }
  for (int32_t k = 0; k < n && part >= 0; k++) {
    double rate = (double)sim_kernel_rate(&f.program, &activity, k), due = part * (double)drawn[k].time_ns;
    double slack = 1 + (double)drawn[k].time_ns / (double)longest;
    ck_assert_msg(rate >= SIM_PPM ? due >= SIM_PPM - slack : fabs(rate - due) <= slack, "%g, %g", rate, due);
  }
  double least = wanted < SIM_PPM ? (double)wanted : SIM_PPM;
  ck_assert_msg(fabs(used - least) <= 2 * n + 1, "%g of %g", used, least);
  for (int32_t k = 0; k < n; k++) sim_occupy(&f.program, &activity, k, NULL);
  ck_assert_int_eq(gpu.busy_ppm, 0);
  ck_assert_int_eq(gpu.n_computing, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rates");
  TCase *tests = tcase_create("all");
  tcase_add_loop_test(tests, kernels_take_turns, 0, 5);
  tcase_add_loop_test(tests, nothing_is_left_where_more_is_wanted, 0, 500);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
