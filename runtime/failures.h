/* Jobs that fail by themselves. Of several jobs one with bad samples or a bad loss ends alone: from then on its streams
 * keep their records and waits, which the others' memory and order depend on, and its calls and copies are left out. */
#ifndef PLANRT_FAILURES_H
#define PLANRT_FAILURES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "planc/status.h"

enum { RT_NEVER_FAILED = -1 };

/* Host work, which is never done twice at once, writes `iteration` and `why`; whoever enqueues reads the one at any
 * time and the other when the device is idle. */
typedef struct rt_job_failure {
  _Atomic int64_t iteration; /* of the job, the first that does not count; RT_NEVER_FAILED */
  planc_status why;
  bool left_out;       /* what it does is not enqueued any more */
  int64_t left_out_at; /* from which period on */
} rt_job_failure;

typedef struct rt_failures {
  int32_t n_jobs;
  bool alone; /* the training has one job only: what that fails with is the run's failure */
  rt_job_failure *by_job;
} rt_failures;

planc_status rt_failures_open(int32_t n_jobs, rt_failures *out); /* alone where there is one */
void rt_failures_close(rt_failures *failures);
/* All jobs are whole again. */
void rt_failures_forget(rt_failures *failures);
/* Gives what a job has come to to a job of another session, which is whole. */
void rt_failures_hand_over(rt_failures *from, int32_t job, rt_failures *to, int32_t to_job);
/* Has a job failed as is known from elsewhere. */
void rt_failures_set(rt_failures *failures, int32_t job, int64_t iteration, const char *why);

/* What a job's feed or sink gave in an iteration: NULL where all is well, or the job fails alone, and else what the run
 * ends with. Of several failures of a job the one of its first iteration counts, of several of that the first. */
planc_status rt_failures_take(rt_failures *failures, int32_t job, int64_t iteration, planc_status status);
/* Whether a job has failed, and by that iteration. */
bool rt_failures_has(const rt_failures *failures, int32_t job);
bool rt_failures_has_by(const rt_failures *failures, int32_t job, int64_t iteration);
bool rt_failures_has_all(const rt_failures *failures);

/* Has what failed jobs do left out from `period` on. Whether there are any. */
bool rt_failures_leave_out(rt_failures *failures, int64_t period);
bool rt_failures_is_left_out(const rt_failures *failures, int32_t job);
bool rt_failures_was_left_out(const rt_failures *failures, int32_t job, int64_t period);

#endif
