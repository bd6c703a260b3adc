/* Candidates of single jobs become one of them all: the jobs' commands, each job's in its own order, in the turns that
 * a policy states. */
#ifndef PLANC_COLOCATE_MERGE_H
#define PLANC_COLOCATE_MERGE_H

#include "planc/policy.h"
#include "util/arena.h"

/* A stretch of a job's iteration: commands first, ..., end - 1 of its candidate's schedule. */
typedef struct pl_turn {
  int32_t job, iteration;
  int32_t first, end;
  int32_t leader;  /* the job whose ops so far have to end first, -1 = none */
  bool feeds_late; /* its samples are copied in behind the leader's ops, too, so that a request which comes until then
                      is served */
} pl_turn;

typedef struct pl_merge {
  int32_t n_jobs;
  const planc_candidate *jobs; /* by job: of one iteration */
  const int32_t *iterations;   /* by job: in a period */
  int32_t n_compute; /* how many rounds of the job, which is the only one, are to run side by side; 0 = each job's
                        rounds as in its candidate */
  int64_t n_turns;
  const pl_turn *turns; /* each job's commands of each iteration once, in their order; in another one, where rounds are
                           to run side by side */
  /* Addresses; NULL: they stay blank. There is a table for each iteration of each job, one job's behind the other's: of
   * residencies, by residency of the job's candidate; of workspaces, by its command. */
  int64_t *const *residencies;
  int64_t *const *workspaces;
} pl_merge;

/* Makes such a list of tables from one table for each job: all iterations of a job have the same places. The list is
 * allocated in `arena`. */
planc_status pl_merge_repeat(pl_arena *arena, int32_t n_jobs, const int32_t *iterations, int64_t *const *by_job,
                             int64_t ***out);

/* Trace, order, costs and schedule of all jobs. */
planc_status pl_merge_candidates(const pl_merge *merge, planc_candidate *out);

#endif
