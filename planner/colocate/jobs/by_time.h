/* The commands of a mix's period in the order of their times: of those at one time releases come first, and then the
 * first job's. */
#ifndef PLANC_COLOCATE_BY_TIME_H
#define PLANC_COLOCATE_BY_TIME_H

#include "planner/colocate/jobs/merge.h"
#include "planner/colocate/jobs/timing.h"

/* All commands of a period as turns of one command each, allocated in `arena`. */
planc_status pl_turns_by_time(pl_arena *arena, const pl_timing *timing, const pl_turn **out, int64_t *out_n);

/* Begins all jobs at once, each as fast as it is alone: the merge's turns are set, and *out is of all jobs. *out_timing
 * is when they do what so. INFEASIBLE where a job does not fit the budget of its problem, problems[j] of job j. *out is
 * empty; the caller frees it, whatever the outcome. */
planc_status pl_merge_side_by_side(pl_arena *arena, const planc_mix_evaluator *evaluator, const planc_problem *problems,
                                   pl_merge *merge, pl_timing *out_timing, planc_candidate *out);

/* Where a job is: its next command. All zero: before its first. */
typedef struct pl_cursor {
  int32_t iteration, command;
  int64_t period;
} pl_cursor;

/* The job, of all that have a cursor, whose next command comes first, before period `end`; -1 when there is none. */
int32_t pl_cursors_next(const pl_timing *timing, const pl_cursor *cursors, int64_t end);
const planc_command *pl_cursor_command(const pl_timing *timing, int32_t job, const pl_cursor *cursor);
void pl_cursor_advance(const pl_timing *timing, int32_t job, pl_cursor *cursor);

/* A command that is to be ordered. */
typedef struct pl_due {
  int64_t at_ns;
  bool releases;
} pl_due;
/* Whether it comes before one of an earlier job. */
static inline bool pl_is_due_before(pl_due command, pl_due other) {
  if (command.at_ns != other.at_ns) return command.at_ns < other.at_ns;
  return command.releases && !other.releases;
}

#endif
