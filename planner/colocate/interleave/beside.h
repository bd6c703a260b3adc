/* Jobs that take turns, or nearly so: what each does alone in what the others leave it, which is all but what they
 * keep.
 *
 * A job may keep all its parameters and state, or less, where its plan parks some on the host. How much a job keeps is
 * known only once it is planned. So first every job is planned as if the others kept everything. Where a job does not
 * fit so, all are planned as if the GPU had as much more as it lacks; what comes of that must fit the real one. */
#ifndef PLANC_COLOCATE_BESIDE_H
#define PLANC_COLOCATE_BESIDE_H

#include "planner/colocate/jobs/solo.h"

typedef struct pl_beside {
  const planc_mix_evaluator *evaluator; /* borrowed */
  const planc_mix *mix;                 /* its */
  int64_t *kept;                        /* by job: parameters and state */
  planc_problem *problems;              /* by job: with what the others leave it */
  pl_solos solos;                       /* of the last that was made */
  int64_t most;                         /* what a job is planned with at most; to begin with, all that there is */
  bool stretched;                       /* they were planned as if the GPU had more than was asked for */
} pl_beside;

/* No solos are made yet. Freed with pl_beside_free, whatever the outcome. */
planc_status pl_beside_new(const planc_mix_evaluator *evaluator, pl_beside *out);
void pl_beside_free(pl_beside *beside);

/* Makes all solos as if the GPU had `room`; none gets more than `most`. INFEASIBLE names the job that does not fit
 * beside the others. With `first_will_do` they need not be the fastest. */
planc_status pl_beside_make_in(pl_beside *beside, int64_t room, bool first_will_do);
/* In that room, or in as much more as those lack that do not fit; where that does not help either, the first failure.
 */
planc_status pl_beside_make(pl_beside *beside, int64_t room, bool first_will_do);

#endif
