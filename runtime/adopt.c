/* Changing plans: the epilogue of the old one has brought home all that persists, the prologue of the new one takes it
 * from there. */
#include <string.h>

#include "runtime/session.h"
#include "runtime/split.h"

/* --- Whether it can be done ------------------------------------------------------------------------------------- */

static rt_split split_of(const planc_job *job) {
  return (rt_split){.replicas = job->replicas > 1 ? (uint64_t)job->replicas : 1,
                    .batch = (uint64_t)planc_job_whole_batch(job),
                    .iterations = (uint64_t)job->iterations};
}

planc_status planrt_can_adopt(const planrt_session *session, const planc_plan *plan) {
  const planc_plan *own = session->plan;
  if (plan->n_jobs != own->n_jobs)
    return planc_error(PLANC_STALE, "made for %d jobs, the run has %d", plan->n_jobs, own->n_jobs);
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (!planc_graph_equal(plan->jobs[j].graph, own->jobs[j].graph))
      return planc_error(PLANC_STALE, "made from another graph than the run's");
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    rt_split ours = split_of(&own->jobs[j]), theirs = split_of(&plan->jobs[j]);
    PLANC_TRY(rt_split_tell(&ours, &theirs));
  }
  return session->options.unchecked ? NULL : planc_check(plan, NULL, NULL);
}

/* --- Doing it --------------------------------------------------------------------------------------------------- */

/* Both have the same homes: those depend on the graphs alone. */
static void hand_over(planrt_session *from, planrt_session *to) {
  rt_homes old = {.storage = -1}, new = {.storage = -1};
  while (rt_next_home(from, &old) && rt_next_home(to, &new)) memcpy(new.home, old.home, (size_t) new.bytes);
  to->step = from->step;
  rt_failures_hand_over(&from->failures, &to->failures);
}

/* A session for `plan` that goes on where a parked one stood. */
static planc_status take_over(planrt_session *parked, const planc_plan *plan, planrt_session **out) {
  PLANC_TRY(planrt_session_new(plan, &parked->options, out));
  hand_over(parked, *out);
  return NULL;
}

planc_status planrt_adopt(planrt_session **session, const planc_plan *plan) {
  planrt_session *old = *session, *next = NULL;
  PLANC_TRY(planrt_can_adopt(old, plan));
  rt_session_park(old);
  planc_status status = take_over(old, plan, &next);
  if (status) {
    planc_status again = take_over(old, old->plan, &next);
    if (again) {
      status = planc_context(status, "%s; the old plan's session cannot be opened again", planc_status_message(again));
      planc_status_free(again);
      return status;
    }
  }
  planrt_session_free(old);
  *session = next;
  return status;
}
