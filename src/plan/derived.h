/* What follows from a plan's memories and body and is therefore not in its file. */
#ifndef PLANC_PLAN_DERIVED_H
#define PLANC_PLAN_DERIVED_H

#include "plan/copies.h"

/* Sets all of it, in a plan that is complete but that nobody has checked. */
planc_status pl_plan_derive(planc_plan *plan);

/* The predicted peaks alone. */
void pl_plan_find_peaks(planc_plan *plan);
/* Of the body alone: sets the bytes that each job copies from GPUs and to GPUs, to storage and from it, and the time of
 * its recomputes. */
void pl_plan_count_body(const planc_plan *plan, const pl_acquired *acquired, planc_job_predictions *jobs);

#endif
