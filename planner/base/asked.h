/* What may be asked of the planner, be it for one job or for several. */
#ifndef PLANC_BASE_ASKED_H
#define PLANC_BASE_ASKED_H

#include "planc/problem.h"

/* USAGE where no plan can be on such terms, or of such a job: what a plan's numbers cannot be, or settings that are out
 * of their ranges or exclude each other. */
planc_status pl_check_terms(const planc_terms *terms);
planc_status pl_check_job(const planc_workload *job);

#endif
