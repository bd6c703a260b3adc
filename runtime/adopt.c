/* Changing plans: the epilogue of the old one has brought home all that persists, the prologue of the new one takes it
 * from there. */
#include <string.h>

#include "runtime/session.h"

/* --- Whether it can be done ------------------------------------------------------------------------------------- */

static bool is_same_work(const planc_job *a, const planc_job *b) {
  return a->batch == b->batch && a->iterations == b->iterations &&
         planc_job_whole_batch(a) == planc_job_whole_batch(b) && planc_graph_equal(a->graph, b->graph);
}

planc_status planrt_can_adopt(const planrt_session *session, const planc_plan *plan) {
  const planc_plan *own = session->plan;
  bool same = plan->n_jobs == own->n_jobs;
  for (int32_t j = 0; same && j < plan->n_jobs; j++) same = is_same_work(&plan->jobs[j], &own->jobs[j]);
  if (!same) return planc_error(PLANC_STALE, "the plan is of another graph, batch or number of iterations per period");
  return session->options.unchecked ? NULL : planc_check(plan, NULL, NULL);
}

/* --- Doing it --------------------------------------------------------------------------------------------------- */

/* Both have the same homes: those depend on the graphs alone. */
static void hand_over(const planrt_session *from, planrt_session *to) {
  rt_homes old = {.storage = -1}, new = {.storage = -1};
  while (rt_next_home(from, &old) && rt_next_home(to, &new)) memcpy(new.home, old.home, (size_t) new.bytes);
  to->step = from->step;
}

/* A session for `plan` that goes on where a parked one stood. */
static planc_status take_over(const planrt_session *parked, const planc_plan *plan, planrt_session **out) {
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
