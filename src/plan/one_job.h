/* The job of what is of one job: whoever calls these knows that there are no others. */
#ifndef PLANC_PLAN_ONE_JOB_H
#define PLANC_PLAN_ONE_JOB_H

#include <assert.h>

#include "planc/plan.h"

static inline const planc_job *pl_plan_job(const planc_plan *plan) {
  assert(plan->n_jobs == 1);
  return &plan->jobs[0];
}

static inline const planc_job *pl_trace_job(const planc_trace *trace) {
  assert(trace->n_jobs == 1);
  return &trace->jobs[0];
}

#endif
