/* Which job of a mix a failure is of. */
#ifndef PLANC_COLOCATE_IN_JOB_H
#define PLANC_COLOCATE_IN_JOB_H

#include "planc/colocate.h"

static inline planc_status pl_in_job(const planc_mix *mix, int32_t job, planc_status status) {
  return planc_context(status, "job %d (%s)", job, planc_mix_job_name(mix, job));
}

#endif
