/* Timing of mixes (timing.h). */
#include "planner/colocate/jobs/timing.h"

#include <assert.h>
#include <string.h>

#include "util/math.h"

static int32_t n_commands(const pl_timing *timing, int32_t job) {
  return planc_schedule_n_commands(timing->jobs[job].schedule);
}

planc_status pl_timing_new(pl_arena *arena, int32_t n_jobs, const planc_candidate *jobs, const int32_t *iterations,
                           pl_timing *out) {
  *out = (pl_timing){.n_jobs = n_jobs, .jobs = jobs, .iterations = iterations};
  PLANC_TRY(PL_NEW(arena, &out->first, n_jobs));
  for (int32_t j = 0; j < n_jobs; j++) {
    out->first[j] = out->n_passes;
    out->n_passes += iterations[j];
  }
  PLANC_TRY(PL_NEW(arena, &out->passes, out->n_passes));
  for (int32_t j = 0; j < n_jobs; j++)
    for (int32_t k = 0; k < iterations[j]; k++)
      PLANC_TRY(PL_NEW(arena, &out->passes[out->first[j] + k].at_ns, n_commands(out, j)));
  return NULL;
}

planc_status pl_timing_copy(pl_arena *arena, const pl_timing *timing, pl_timing *out) {
  PLANC_TRY(pl_timing_new(arena, timing->n_jobs, timing->jobs, timing->iterations, out));
  pl_timing_assign(out, timing);
  return NULL;
}

void pl_timing_assign(pl_timing *to, const pl_timing *from) {
  to->period_ns = from->period_ns;
  to->apart = from->apart;
  for (int32_t j = 0; j < from->n_jobs; j++) {
    for (int32_t p = from->first[j]; p < from->first[j] + from->iterations[j]; p++) {
      int64_t *at = to->passes[p].at_ns;
      to->passes[p] = from->passes[p];
      to->passes[p].at_ns = at;
      memcpy(at, from->passes[p].at_ns, (size_t)n_commands(from, j) * sizeof *at);
    }
  }
}

bool pl_timing_is_same(const pl_timing *a, const pl_timing *b) {
  bool same = a->period_ns == b->period_ns && a->apart == b->apart;
  for (int32_t j = 0; same && j < a->n_jobs; j++) {
    for (int32_t p = a->first[j]; same && p < a->first[j] + a->iterations[j]; p++) {
      const pl_pass *of_a = &a->passes[p], *of_b = &b->passes[p];
      same = of_a->start_ns == of_b->start_ns && of_a->ns == of_b->ns && of_a->busy_ns == of_b->busy_ns &&
             memcmp(of_a->at_ns, of_b->at_ns, (size_t)n_commands(a, j) * sizeof *of_a->at_ns) == 0;
    }
  }
  return same;
}

int64_t pl_timing_change(const pl_timing *timing, const pl_timing *before) {
  int64_t most = 0;
  for (int32_t p = 0; p < timing->n_passes; p++) {
    int64_t now = timing->passes[p].ns, then = before->passes[p].ns;
    int64_t change = pl_muldiv_floor(now > then ? now - then : then - now, PL_PPM, then > 0 ? then : 1);
    if (change > most) most = change;
  }
  return most;
}

typedef struct reading_times {
  pl_timing *timing;
  int32_t job; /* -1: all of them */
  pl_arena arena;
  pl_pass_runs *passes; /* by pass */
} reading_times;

static planc_status time_alone(const planc_evaluator *evaluator, int32_t job, pl_timing *timing);
static planc_status simulate(const planc_evaluator *evaluator, const planc_candidate *candidate, reading_times *r,
                             int64_t *out_ns);

planc_status pl_timing_alone(const planc_mix_evaluator *evaluator, const planc_problem *problems, pl_timing *timing) {
  for (int32_t j = 0; j < timing->n_jobs; j++) {
    const planc_evaluator alone = evaluator->alone(evaluator, &problems[j]);
    PLANC_TRY(time_alone(&alone, j, timing));
  }
  return NULL;
}

static planc_status time_alone(const planc_evaluator *evaluator, int32_t job, pl_timing *timing) {
  reading_times r = {.timing = timing, .job = job};
  int64_t ns;
  planc_status status = simulate(evaluator, &timing->jobs[job], &r, &ns);
  for (int32_t k = 0; !status && k < timing->iterations[job]; k++) {
    pl_pass *pass = &timing->passes[timing->first[job] + k];
    pl_pass_time(timing->jobs[job].schedule, NULL, n_commands(timing, job), &r.passes[timing->first[job]], pass);
    pass->start_ns = 0;
  }
  pl_arena_free(&r.arena);
  return status;
}

void pl_timing_side_by_side(pl_timing *timing) {
  for (int32_t j = 0; j < timing->n_jobs; j++)
    for (int32_t k = 0; k < timing->iterations[j]; k++)
      timing->passes[timing->first[j] + k].start_ns = k * timing->passes[timing->first[j]].ns;
}

planc_status pl_timing_together(const planc_evaluator *evaluator, const planc_candidate *all, pl_timing *timing) {
  reading_times r = {.timing = timing, .job = -1};
  planc_status status = simulate(evaluator, all, &r, &timing->period_ns);
  for (int32_t j = 0; !status && j < timing->n_jobs; j++)
    for (int32_t p = timing->first[j]; p < timing->first[j] + timing->iterations[j]; p++)
      pl_pass_time(timing->jobs[j].schedule, NULL, n_commands(timing, j), &r.passes[p], &timing->passes[p]);
  pl_arena_free(&r.arena);
  return status;
}

/* --- From what ran ------------------------------------------------------------------------------------------------ */

static int64_t when(bool gives, const pl_pass_runs *execs, int32_t next) {
  if ((gives || next == execs->n) && next > 0) return execs->of[next - 1].end_ns;
  return next < execs->n ? execs->of[next].start_ns : 0;
}

void pl_pass_time(const planc_schedule *schedule, const int32_t *commands, int32_t n, const pl_pass_runs *execs,
                  pl_pass *pass) {
  int32_t next = 0;
  int64_t latest = 0, base = execs->n > 0 ? execs->of[0].start_ns : 0;
  for (int32_t c = 0; c < n; c++) {
    const planc_command *command = &planc_schedule_commands(schedule)[commands ? commands[c] : c];
    int64_t at = when(planc_schedule_gives(schedule, command), execs, next) - base;
    if (at > latest) latest = at;
    pass->at_ns[c] = latest;
    next += command->kind == PLANC_CMD_EXEC;
  }
  assert(next == execs->n);
  pass->start_ns = base;
  pass->ns = execs->n > 0 ? execs->of[execs->n - 1].end_ns - base : 0;
  pass->busy_ns = 0;
  for (int32_t k = 0; k < execs->n; k++) pass->busy_ns += execs->of[k].end_ns - execs->of[k].start_ns;
}

static planc_status make_runs(reading_times *r) {
  const pl_timing *t = r->timing;
  PLANC_TRY(PL_NEW(&r->arena, &r->passes, t->n_passes));
  for (int32_t j = 0; j < t->n_jobs; j++)
    for (int32_t k = 0; k < t->iterations[j]; k++)
      PLANC_TRY(PL_NEW(&r->arena, &r->passes[t->first[j] + k].of, n_commands(t, j)));
  return NULL;
}

/* Sorts what ran into passes: that of one iteration of a job alone into its first. */
static planc_status read_runs(void *user, const planc_simulated *simulated) {
  reading_times *r = user;
  const planc_trace *trace = simulated->order->trace;
  for (int32_t p = 0; p < simulated->order->n; p++) {
    const planc_instance *instance = &trace->instances[simulated->order->runs[p].instance];
    int32_t job = r->job < 0 ? instance->job : r->job;
    pl_pass_runs *into = &r->passes[r->timing->first[job] + instance->iteration];
    into->of[into->n++] = simulated->times[p];
  }
  return NULL;
}

static planc_status simulate(const planc_evaluator *evaluator, const planc_candidate *candidate, reading_times *r,
                             int64_t *out_ns) {
  planc_taken taken;
  PLANC_TRY(make_runs(r));
  PLANC_TRY(evaluator->simulate(evaluator, candidate, read_runs, r, &taken));
  *out_ns = taken.period_ns;
  return taken.fits ? NULL : planc_error(PLANC_INFEASIBLE, "what is timed does not fit the budget");
}
