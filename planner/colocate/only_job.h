/* A mix of one job, whose rounds may run side by side: nobody else is there to share memory with. */
#ifndef PLANC_COLOCATE_ONLY_JOB_H
#define PLANC_COLOCATE_ONLY_JOB_H

#include "planner/colocate/solo.h"

/* So many iterations of it one after the other. INFEASIBLE where it does not fit its problem's budgets. */
planc_status pl_only_job_make(const planc_problem *job, int32_t iterations, planc_candidate *out);

#endif
