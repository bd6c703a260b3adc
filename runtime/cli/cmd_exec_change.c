/* `planrun exec`: changes of plans while it runs, and the jobs that come and go with them (cmd_exec.h). */
#include <math.h>
#include <stdlib.h>

#include "runtime/cli/cmd_exec.h"
#include "util/print.h"
#include "util/size.h"

static planc_status look(rt_execution *e);
static void go_on(planc_status status);

bool rt_execution_look(void *user) {
  rt_execution *e = user;
  go_on(look(e));
  return e->next != NULL;
}

static void go_on(planc_status status) {
  if (status) pl_print_line(stderr, "planrun: note: %s: the run goes on as before", planc_status_message(status));
  planc_status_free(status);
}

/* --- Looking ---------------------------------------------------------------------------------------------------- */

static planc_status check_data(const rt_execution *e) {
  int32_t *numbers = calloc((size_t)e->next->n_jobs, sizeof *numbers);
  if (!numbers) return planc_error(PLANC_OUT_OF_MEMORY, "jobs");
  planc_status status = planrt_can_adopt(e->session, e->next, numbers);
  if (!status) status = rt_execution_check_data(e, e->next, numbers);
  free(numbers);
  return planc_context(status, "%s", e->watch.path);
}

static planc_status look(rt_execution *e) {
  PLANC_TRY(rt_watch_look(&e->watch, e->session, &e->next));
  if (!e->next || !e->has_data) return NULL;
  planc_status status = check_data(e);
  if (!status) return NULL;
  planc_plan_free(e->next);
  e->next = NULL;
  return status;
}

/* --- Changing --------------------------------------------------------------------------------------------------- */

static planc_status go_on_with(rt_execution *e, planc_plan *next);
static planc_status note_jobs(const rt_execution *e, const bool *were_away);

/* Which jobs are away, by number. */
static planc_status find_away(const rt_execution *e, bool **out) {
  int32_t n = planrt_jobs(e->session);
  *out = calloc((size_t)n, sizeof **out);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "jobs");
  for (int32_t k = 0; k < n; k++) (*out)[k] = planrt_job_of(e->session, k).job < 0;
  return NULL;
}

/* A plan that cannot be opened is left, and the run goes on; without any plan it cannot. */
planc_status rt_execution_adopt(rt_execution *e) {
  planc_plan *next = e->next;
  bool *were_away;
  e->next = NULL;
  planc_status status = rt_execution_end_losses(e);
  if (!status) status = find_away(e, &were_away);
  if (status) {
    planc_plan_free(next);
    return status;
  }
  status = planc_context(planrt_adopt(&e->session, next), "%s", e->watch.path);
  if (!status) {
    status = go_on_with(e, next);
    if (!status) status = note_jobs(e, were_away);
  } else {
    planc_plan_free(next);
    if (planrt_can_run(e->session)) {
      go_on(status);
      status = NULL;
    }
  }
  free(were_away);
  return status;
}

static planc_status go_on_with(rt_execution *e, planc_plan *next) {
  planc_plan_free(e->plan);
  e->plan = next;
  e->periods = 0;
  e->adopted++;
  PLANC_TRY(rt_execution_place_jobs(e));
  PLANC_TRY(rt_execution_hand_data(e));
  char text[PL_SIZE_TEXT];
  pl_print_line(stderr, "planrun: note: iteration %lld: changed to %s, policy %s in %s",
                (long long)rt_execution_done(e), e->watch.path, next->policy,
                pl_size_format(planrt_report(e->session)->peak_bytes[PLANC_MEMORY_DEVICE], text));
  return NULL;
}

planc_status rt_execution_place_jobs(rt_execution *e) {
  rt_execution_job fresh = {.accuracy = NAN};
  rt_losses_start(&fresh.losses, e->json);
  while (e->jobs.len < planrt_jobs(e->session)) VEC_PUSH(&e->jobs, fresh);
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    PLANC_TRY(rt_losses_plan(&rt_execution_of(e, j)->losses, rt_execution_job_at(e, j).iterations,
                             e->plan->jobs[j].iterations));
  return NULL;
}

/* --- Telling ---------------------------------------------------------------------------------------------------- */

/* What a job does at a change; NULL where it stays what it was. */
static const char *move_of(const planrt_job *now, const bool *were_away, int32_t number) {
  if (now->is_new) return "joins";
  if (now->job < 0) return were_away[number] ? NULL : "leaves";
  return were_away[number] ? "comes back" : NULL;
}

/* Tells who comes and goes. What a job leaves behind is on disk when it has left. */
static planc_status note_jobs(const rt_execution *e, const bool *were_away) {
  bool any = false;
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    planrt_job now = planrt_job_of(e->session, n);
    const char *move = move_of(&now, were_away, n);
    if (!move) continue;
    pl_print_line(stderr, "planrun: note: job %d (%s) %s at its iteration %lld", n, rt_execution_name(&now), move,
                  (long long)now.iterations);
    any = true;
  }
  return any && e->save ? planrt_save(e->session, e->save) : NULL;
}

void rt_execution_note_resumed(const rt_execution *e) {
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    planrt_job job = planrt_job_of(e->session, n);
    if (job.job < 0)
      pl_print_line(stderr,
                    "planrun: note: job %d (%s) of %s is not in the plan: it is kept as it is, at its iteration "
                    "%lld",
                    n, rt_execution_name(&job), e->resume, (long long)job.iterations);
    if (job.is_new)
      pl_print_line(stderr, "planrun: note: job %d (%s) is not in %s: it starts anew", n, rt_execution_name(&job),
                    e->resume);
  }
}
