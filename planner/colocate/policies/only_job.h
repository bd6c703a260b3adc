/* A mix of one job, whose rounds may run side by side: nobody else is there to share memory with. */
#ifndef PLANC_COLOCATE_ONLY_JOB_H
#define PLANC_COLOCATE_ONLY_JOB_H

#include "planner/colocate/jobs/solo.h"

/* So many iterations of the mix's job one after the other. INFEASIBLE where it does not fit the mix's budgets. */
planc_status pl_only_job_make(const planc_mix_evaluator *evaluator, int32_t iterations, planc_candidate *out);

#endif
