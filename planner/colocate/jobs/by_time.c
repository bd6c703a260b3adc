/* Commands by time (by_time.h). */
#include "planner/colocate/jobs/by_time.h"

planc_status pl_turns_by_time(pl_arena *arena, const pl_timing *timing, const pl_turn **out, int64_t *out_n) {
  pl_cursor *cursors;
  pl_turn *turns;
  int64_t n = 0;
  for (int32_t j = 0; j < timing->n_jobs; j++)
    n += (int64_t)timing->iterations[j] * planc_schedule_n_commands(timing->jobs[j].schedule);
  PLANC_TRY(PL_NEW(arena, &cursors, timing->n_jobs));
  PLANC_TRY(PL_NEW(arena, &turns, n));
  *out = turns;
  *out_n = n;
  for (int64_t k = 0; k < n; k++) {
    int32_t j = pl_cursors_next(timing, cursors, 1);
    turns[k] = (pl_turn){j, cursors[j].iteration, cursors[j].command, cursors[j].command + 1, -1, false};
    pl_cursor_advance(timing, j, &cursors[j]);
  }
  return NULL;
}

planc_status pl_merge_side_by_side(pl_arena *arena, const planc_mix_evaluator *evaluator, const planc_problem *problems,
                                   pl_merge *merge, pl_timing *out_timing, planc_candidate *out) {
  PLANC_TRY(pl_timing_new(arena, merge->n_jobs, merge->jobs, merge->iterations, out_timing));
  PLANC_TRY(pl_timing_alone(evaluator, problems, out_timing));
  pl_timing_side_by_side(out_timing);
  PLANC_TRY(pl_turns_by_time(arena, out_timing, &merge->turns, &merge->n_turns));
  return pl_merge_candidates(merge, out);
}

/* --- Cursors ------------------------------------------------------------------------------------------------------ */

const planc_command *pl_cursor_command(const pl_timing *timing, int32_t job, const pl_cursor *cursor) {
  return &planc_schedule_commands(timing->jobs[job].schedule)[cursor->command];
}

void pl_cursor_advance(const pl_timing *timing, int32_t job, pl_cursor *cursor) {
  if (++cursor->command < planc_schedule_n_commands(timing->jobs[job].schedule)) return;
  cursor->command = 0;
  if (++cursor->iteration < timing->iterations[job]) return;
  cursor->iteration = 0;
  cursor->period++;
}

static pl_due due_of(const pl_timing *timing, int32_t job, const pl_cursor *cursor) {
  const pl_pass *pass = &timing->passes[timing->first[job] + cursor->iteration];
  return (pl_due){.at_ns = cursor->period * timing->period_ns + pass->start_ns + pass->at_ns[cursor->command],
                  .releases = pl_cursor_command(timing, job, cursor)->kind == PLANC_CMD_RELEASE};
}

int32_t pl_cursors_next(const pl_timing *timing, const pl_cursor *cursors, int64_t end) {
  int32_t best = -1;
  pl_due first = {0};
  for (int32_t j = 0; j < timing->n_jobs; j++) {
    if (cursors[j].period >= end) continue;
    pl_due due = due_of(timing, j, &cursors[j]);
    if (best >= 0 && !pl_is_due_before(due, first)) continue;
    best = j;
    first = due;
  }
  return best;
}
