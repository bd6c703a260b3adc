/* How fast two jobs go beside each other on a GPU, by planc's simulator, relative to alone.
 *
 *   pair_speeds < PAIRS        a line for each pair: SHARE LENGTH SHARE LENGTH, and as many of the results: SPEED SPEED
 *
 * A job repeats a kernel that keeps the whole GPU busy and takes LENGTH ns on average, and is on the GPU for SHARE of
 * the time: some kernels in a row, and then as long as its host takes for them. All of this is drawn, so that the two
 * do not fall into step. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/simulate/sim_machine.h"
#include "runtime/random.h"

enum { LONG_ONES = 2000, MOST_KERNELS = 200000, JOBS = 2, MOST_IN_A_ROW = 31 };

static void ok(planc_status status) {
  if (!status) return;
  fprintf(stderr, "pair_speeds: %s\n", planc_status_message(status));
  exit(1);
}

typedef struct job {
  double share, length_ns;
  int32_t n; /* kernels */
} job;

/* What the jobs' kernels and what is between them take alone, of those that have ended, and when the last has. */
typedef struct seen {
  const sim_section *body;
  int64_t alone_ns[JOBS], end_ns[JOBS], left[JOBS];
} seen;

static void note(void *user, int32_t phase, int32_t step, int64_t start, int64_t end) {
  seen *s = user;
  const sim_step *of = &s->body->steps[step];
  (void)phase, (void)start;
  s->alone_ns[of->stream] += of->time_ns;
  s->end_ns[of->stream] = end;
  s->left[of->stream]--;
}

/* From a half to one and a half times as long. */
static int64_t draw(double length_ns, uint64_t *n) {
  double part = 0.5 + (double)(rt_random(1, (*n)++) >> 11) / (double)(INT64_C(1) << 53);
  return llround(length_ns * part);
}

static void make_steps(const job *jobs, sim_step *steps, int32_t *n) {
  uint64_t draws = 0;
  *n = 0;
  for (int32_t j = 0; j < JOBS; j++) {
    double between_ns = jobs[j].length_ns * (1 / jobs[j].share - 1);
    for (int32_t k = 0, left = 0; k < jobs[j].n; k++, left--) {
      if (left == 0) {
        left = 1 + (int32_t)(rt_random(1, draws++) % MOST_IN_A_ROW);
        steps[(*n)++] = (sim_step){.kind = SIM_KERNEL, .stream = j, .time_ns = draw(left * between_ns, &draws)};
      }
      steps[(*n)++] =
          (sim_step){.kind = SIM_KERNEL, .stream = j, .time_ns = draw(jobs[j].length_ns, &draws), .busy_ppm = PL_PPM};
    }
  }
}

/* Both begin at once, and count until the first of them has nothing left to do. */
static void run(const job *jobs, double *out) {
  static const sim_stream streams[JOBS] = {{.computes = true, .job = 0}, {.computes = true, .job = 1}};
  sim_program program = {.n_jobs = JOBS, .n_streams = JOBS, .n_gpus = 1, .streams = streams};
  pl_arena arena = {0};
  sim_step *steps;
  sim_state state;
  bool over = false;
  int32_t n;
  ok(PL_NEW(&arena, &steps, 2 * ((int64_t)jobs[0].n + jobs[1].n)));
  make_steps(jobs, steps, &n);
  program.device = (planc_plan_device){.in_flight = 2 * MOST_KERNELS, .duplex_ppm = PL_PPM};
  program.sections[SIM_BODY] = (sim_section){.steps = steps, .n = n};
  ok(sim_prepare(&program, &arena));
  ok(sim_state_make(&program, &arena, &state));
  state.last_body = 1;
  seen s = {.body = &program.sections[SIM_BODY]};
  for (int32_t i = 0; i < n; i++) s.left[steps[i].stream]++;
  while (s.left[0] > 0 && s.left[1] > 0 && !over)
    ok(sim_advance(&program, &state, &(sim_observer){.ended = note, .user = &s}, &over));
  for (int32_t j = 0; j < JOBS; j++) out[j] = (double)s.alone_ns[j] / (double)s.end_ns[j];
  pl_arena_free(&arena);
}

int main(void) {
  job jobs[JOBS];
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    char *at = line;
    for (int32_t j = 0; j < JOBS; j++) {
      jobs[j].share = strtod(at, &at);
      jobs[j].length_ns = strtod(at, &at);
      if (!(jobs[j].share > 0 && jobs[j].share <= 1 && jobs[j].length_ns >= 1)) return 2;
    }
    double longest_ns = 0, speeds[JOBS];
    for (int32_t j = 0; j < JOBS; j++) longest_ns = fmax(longest_ns, jobs[j].length_ns / jobs[j].share);
    for (int32_t j = 0; j < JOBS; j++) {
      double most = LONG_ONES * longest_ns / (jobs[j].length_ns / jobs[j].share);
      jobs[j].n = most < MOST_KERNELS ? (int32_t)most : MOST_KERNELS;
    }
    run(jobs, speeds);
    printf("%.6f %.6f\n", speeds[0], speeds[1]);
  }
  return 0;
}
