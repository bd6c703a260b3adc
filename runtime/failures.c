/* Which jobs have failed, in which iteration and why (failures.h). */
#include "runtime/failures.h"

#include <stdlib.h>

#include "runtime/session.h"

planc_status rt_failures_open(int32_t n_jobs, rt_failures *out) {
  *out = (rt_failures){.by_job = calloc((size_t)n_jobs, sizeof *out->by_job)};
  if (!out->by_job) return planc_error(PLANC_OUT_OF_MEMORY, "%d jobs", n_jobs);
  out->n_jobs = n_jobs;
  out->alone = n_jobs == 1;
  for (int32_t j = 0; j < n_jobs; j++) atomic_init(&out->by_job[j].iteration, RT_NEVER_FAILED);
  return NULL;
}

void rt_failures_close(rt_failures *failures) {
  rt_failures_forget(failures);
  free(failures->by_job);
  *failures = (rt_failures){0};
}

void rt_failures_forget(rt_failures *failures) {
  for (int32_t j = 0; j < failures->n_jobs; j++) {
    rt_job_failure *of = &failures->by_job[j];
    atomic_store(&of->iteration, RT_NEVER_FAILED);
    planc_status_free(of->why);
    of->why = NULL;
    of->left_out = false;
  }
}

void rt_failures_hand_over(rt_failures *from, int32_t job, rt_failures *to, int32_t to_job) {
  rt_job_failure *source = &from->by_job[job], *target = &to->by_job[to_job];
  planc_status_free(target->why);
  atomic_store(&target->iteration, atomic_load(&source->iteration));
  target->why = source->why;
  target->left_out = source->left_out;
  target->left_out_at = source->left_out_at;
  source->why = NULL;
}

void rt_failures_set(rt_failures *failures, int32_t job, int64_t iteration, const char *why) {
  rt_job_failure *of = &failures->by_job[job];
  planc_status_free(of->why);
  of->why = planc_error(PLANC_JOB_FAILED, "%s", why);
  atomic_store(&of->iteration, iteration);
}

/* --- Failing ------------------------------------------------------------------------------------------------------ */

/* Everything else, such as want of memory, is nothing that only one job has. */
static bool is_own(planc_status status) {
  planc_code code = planc_status_code(status);
  return code == PLANC_BAD_INPUT || code == PLANC_JOB_FAILED;
}

planc_status rt_failures_take(rt_failures *failures, int32_t job, int64_t iteration, planc_status status) {
  if (!status || failures->alone || !is_own(status)) return status;
  rt_job_failure *of = &failures->by_job[job];
  if (rt_failures_has_by(failures, job, iteration)) {
    planc_status_free(status);
    return NULL;
  }
  planc_status_free(of->why);
  of->why = status;
  atomic_store(&of->iteration, iteration);
  return NULL;
}

bool rt_failures_has(const rt_failures *failures, int32_t job) {
  return atomic_load(&failures->by_job[job].iteration) != RT_NEVER_FAILED;
}

bool rt_failures_has_by(const rt_failures *failures, int32_t job, int64_t iteration) {
  int64_t first = atomic_load(&failures->by_job[job].iteration);
  return first != RT_NEVER_FAILED && first <= iteration;
}

bool rt_failures_has_all(const rt_failures *failures) {
  for (int32_t j = 0; j < failures->n_jobs; j++)
    if (!rt_failures_has(failures, j)) return false;
  return true;
}

bool planrt_failed(const planrt_session *session, int32_t job, planrt_failure *out) {
  if (job < 0 || job >= session->failures.n_jobs || !rt_failures_has(&session->failures, job)) return false;
  const rt_job_failure *of = &session->failures.by_job[job];
  *out = (planrt_failure){atomic_load(&of->iteration), planc_status_message(of->why)};
  return true;
}

/* --- Leaving out -------------------------------------------------------------------------------------------------- */

bool rt_failures_leave_out(rt_failures *failures, int64_t period) {
  bool any = false;
  for (int32_t j = 0; j < failures->n_jobs; j++) {
    rt_job_failure *of = &failures->by_job[j];
    if (!of->left_out && rt_failures_has(failures, j)) {
      of->left_out = true;
      of->left_out_at = period;
    }
    any |= of->left_out;
  }
  return any;
}

/* The jobs of a plan that nobody has checked may have any number. */
bool rt_failures_is_left_out(const rt_failures *failures, int32_t job) {
  return job >= 0 && job < failures->n_jobs && failures->by_job[job].left_out;
}

bool rt_failures_was_left_out(const rt_failures *failures, int32_t job, int64_t period) {
  return rt_failures_is_left_out(failures, job) && failures->by_job[job].left_out_at <= period;
}
