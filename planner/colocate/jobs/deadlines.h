/* Jobs with a deadline for each request: how often they have to run, and whether they are in time. */
#ifndef PLANC_COLOCATE_DEADLINES_H
#define PLANC_COLOCATE_DEADLINES_H

#include "planc/colocate.h"

/* 0 = none. */
int64_t pl_deadline_of(const planc_mix *mix, int32_t job);

/* The longest op of a candidate's schedule. */
int64_t pl_longest_op(const planc_candidate *candidate);

/* What is known of a job alone. */
typedef struct pl_deadline_job {
  int64_t alone_ns, longest_op_ns; /* of an iteration; of an op */
} pl_deadline_job;
/* Chooses the iterations of jobs with a deadline that the mix leaves open. The work of jobs without a deadline is cut
 * between ops into as many parts, so that requests are served between the parts in time. A job whose deadline leaves no
 * time for a part keeps what it has. `iterations`, by job, are those of a mix without deadlines. */
void pl_deadlines_choose(const planc_mix *mix, const pl_deadline_job *jobs, int32_t *iterations);

/* Gives jobs that are late more iterations: as many as they would need in proportion, and an eighth more at least,
 * after a first try two eighths, and so on. False where one of them cannot get any, for it has as many as the mix
 * allows, or more would not help; then all keep theirs. */
bool pl_deadlines_raise(const planc_mix *mix, int32_t tried, planc_mix_share *shares);
/* LATE where a response is longer than the job's deadline. */
planc_status pl_deadlines_hold(const planc_mix *mix, const planc_mix_share *shares);

#endif
