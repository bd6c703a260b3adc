/* When the jobs of a mix do what in a steady period: an iteration of a job is a pass, and its commands happen as they
 * are stated, one after the other. */
#ifndef PLANC_COLOCATE_TIMING_H
#define PLANC_COLOCATE_TIMING_H

#include "planc/colocate.h"
#include "util/arena.h"

typedef struct pl_pass {
  int64_t start_ns; /* in the period */
  int64_t *at_ns;   /* by command of the job's candidate: from the start, ascending; what takes memory when the op that
                       needs it starts, what gives it back when the op before it ends */
  int64_t ns;       /* until its last op ends */
  int64_t busy_ns;  /* of its ops, together, without what they wait for */
} pl_pass;

typedef struct pl_timing {
  int32_t n_jobs;
  const planc_candidate *jobs; /* by job: of one iteration */
  const int32_t *iterations;   /* by job */
  int32_t *first;              /* by job: its first pass; passes of a job stand behind each other */
  int32_t n_passes;
  pl_pass *passes;
  int64_t period_ns;
  bool apart; /* all passes of a period have ended when the first of the next one begins */
} pl_timing;

/* When the execs among a pass's commands start and end, in their order. */
typedef struct pl_pass_runs {
  int32_t n;
  planc_run_time *of;
} pl_pass_runs;
/* Sets a pass's times to what its execs tell. The pass is of n commands of the schedule, which `commands` lists in
 * their order; NULL: the first n. It starts with its first exec. */
void pl_pass_time(const planc_schedule *schedule, const int32_t *commands, int32_t n, const pl_pass_runs *execs,
                  pl_pass *pass);

/* All starts and times are 0. `jobs` and `iterations` are borrowed. */
planc_status pl_timing_new(pl_arena *arena, int32_t n_jobs, const planc_candidate *jobs, const int32_t *iterations,
                           pl_timing *out);
/* Every pass takes what its job takes alone, as problems[j] has job j; starts stay 0. INFEASIBLE where a candidate does
 * not fit its job's budget. */
planc_status pl_timing_alone(const planc_mix_evaluator *evaluator, const planc_problem *problems, pl_timing *timing);
/* All jobs begin at once, and the passes of a job, which take what they do alone, behind each other. */
void pl_timing_side_by_side(pl_timing *timing);
/* Sets all starts and times to those in the steady period of `all`, a candidate merged from the timing's. INFEASIBLE as
 * above. */
planc_status pl_timing_together(const planc_evaluator *evaluator, const planc_candidate *all, pl_timing *timing);

/* The most by which a pass takes longer or shorter than in `before`, in parts per million of that. */
int64_t pl_timing_change(const pl_timing *timing, const pl_timing *before);
planc_status pl_timing_copy(pl_arena *arena, const pl_timing *timing, pl_timing *out);
/* Of the same jobs. */
void pl_timing_assign(pl_timing *to, const pl_timing *from);
bool pl_timing_is_same(const pl_timing *a, const pl_timing *b);

#endif
