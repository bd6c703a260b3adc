/* `planrun exec`: changes of plans while it runs, and the jobs that come and go with them (cmd_exec.h). */
#include <math.h>
#include <stdlib.h>

#include "program/print.h"
#include "program/program.h"
#include "runtime/cli/cmd_exec.h"
#include "util/size.h"

static planc_status look(run_execution *e);
static void go_on(planc_status status);

bool run_execution_look(void *user) {
  run_execution *e = user;
  go_on(look(e));
  return e->next != NULL;
}

static void go_on(planc_status status) {
  status = prog_remedy(status);
  if (status) prog_print_line(stderr, "planrun: note: %s: the run goes on as before", planc_status_message(status));
  planc_status_free(status);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

static planc_status check_data(const run_execution *e) {
  int32_t *numbers = calloc((size_t)e->next->n_jobs, sizeof *numbers);
  if (!numbers) return planc_error(PLANC_OUT_OF_MEMORY, "jobs");
  planc_status status = planrt_can_adopt(e->session, e->next, numbers);
  if (!status) status = run_execution_check_data(e, e->next, numbers);
  free(numbers);
  return planc_context(status, "%s", e->watch.path);
}

static planc_status look(run_execution *e) {
  PLANC_TRY(run_watch_look(&e->watch, e->session, e->plan, &e->next));
  if (!e->next || !e->has_data) return NULL;
  planc_status status = check_data(e);
  if (!status) return NULL;
  planc_plan_free(e->next);
  e->next = NULL;
  return status;
}

/* --- Changing ----------------------------------------------------------------------------------------------------- */

static planc_status go_on_with(run_execution *e, planc_plan *next, int64_t iteration);
static void note_rounds(const run_execution *e, const planc_plan *before, const int32_t *was);
static planc_status note_jobs(const run_execution *e, const int32_t *was);

/* What jobs are of the plan that runs, by number; -1 = away. */
static planc_status find_jobs(const run_execution *e, int32_t **out) {
  int32_t n = planrt_jobs(e->session);
  *out = calloc((size_t)n, sizeof **out);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "jobs");
  for (int32_t k = 0; k < n; k++) (*out)[k] = planrt_job_of(e->session, k).job;
  return NULL;
}

/* A plan that cannot be opened is left, and the run goes on; without any plan it cannot. */
planc_status run_execution_adopt(run_execution *e) {
  planc_plan *next = e->next;
  int64_t iteration = run_execution_done(e);
  int32_t *was;
  e->next = NULL;
  planc_status status = run_execution_end_losses(e);
  if (!status) status = find_jobs(e, &was);
  if (status) {
    planc_plan_free(next);
    return status;
  }
  status = planc_context(planrt_adopt(&e->session, next), "%s", e->watch.path);
  if (!status) {
    planc_plan *before = e->plan;
    status = go_on_with(e, next, iteration);
    if (!status) note_rounds(e, before, was);
    planc_plan_free(before);
    if (!status) status = note_jobs(e, was);
  } else {
    planc_plan_free(next);
    if (planrt_can_run(e->session)) {
      go_on(status);
      status = NULL;
    }
  }
  free(was);
  return status;
}

/* The plan before is the caller's. The iteration is that of the jobs that ran: one that joins would have it at 0. */
static planc_status go_on_with(run_execution *e, planc_plan *next, int64_t iteration) {
  bool several = e->plan->n_jobs > 1; /* each has its own iterations, all have periods */
  e->plan = next;
  e->periods = 0;
  e->adopted++;
  PLANC_TRY(run_execution_place_jobs(e));
  PLANC_TRY(run_execution_give_data(e));
  char text[PL_SIZE_TEXT];
  prog_print_line(stderr, "planrun: note: %s %lld: changed to %s, policy %s in %s", several ? "period" : "iteration",
                  (long long)(several ? e->all_periods : iteration), e->watch.path, next->policy,
                  pl_size_format(planrt_report(e->session)->peak_bytes[PLANC_MEMORY_DEVICE], text));
  return NULL;
}

planc_status run_execution_place_jobs(run_execution *e) {
  run_execution_job fresh = {.accuracy = NAN};
  run_losses_start(&fresh.losses, e->json);
  while (e->jobs.len < planrt_jobs(e->session)) VEC_PUSH(&e->jobs, fresh);
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    PLANC_TRY(run_losses_plan(&run_execution_of(e, j)->losses, run_execution_job_at(e, j).iterations,
                              e->plan->jobs[j].iterations));
  return NULL;
}

/* --- Telling ------------------------------------------------------------------------------------------------------ */

/* Other rounds add up in another order, which is rounded otherwise. */
static void note_other_rounds(int32_t number, const planrt_job *job) {
  prog_print_line(stderr, "planrun: note: job %d (%s) goes on in other rounds: its results may differ in the last bits",
                  number, run_execution_name(job));
}

static void note_rounds(const run_execution *e, const planc_plan *before, const int32_t *was) {
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    planrt_job now = planrt_job_of(e->session, n);
    bool stays = !now.is_new && now.job >= 0 && was[n] >= 0 && !now.why;
    if (!stays || planc_job_same_rounds(&before->jobs[was[n]], &e->plan->jobs[now.job])) continue;
    note_other_rounds(n, &now);
  }
}

static const char *move_of(const planrt_job *now, int32_t was);
static void note_job(const run_execution *e, int32_t number, const char *move, int32_t beside);
static int32_t find_staying(const run_execution *e, const int32_t *was);

/* Tells who comes and goes. What a job leaves behind is on disk when it has left. */
static planc_status note_jobs(const run_execution *e, const int32_t *was) {
  bool any = false;
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    planrt_job now = planrt_job_of(e->session, n);
    const char *move = move_of(&now, now.is_new ? -1 : was[n]);
    if (!move) continue;
    note_job(e, n, move, now.job < 0 ? -1 : find_staying(e, was));
    any = true;
  }
  return any && e->save ? planrt_save(e->session, e->save) : NULL;
}

/* What a job does at a change; NULL where it stays what it was. */
static const char *move_of(const planrt_job *now, int32_t was) {
  if (now->is_new) return "joins";
  if (now->job < 0) return was < 0 ? NULL : "leaves";
  return was < 0 ? "comes back" : NULL;
}

/* Of one that comes it is told where another is, as the run has no iterations but its jobs'. */
static void note_job(const run_execution *e, int32_t number, const char *move, int32_t beside) {
  planrt_job job = planrt_job_of(e->session, number);
  long long at = (long long)run_execution_iterations(&job);
  if (beside < 0) {
    prog_print_line(stderr, "planrun: note: job %d (%s) %s at its iteration %lld", number, run_execution_name(&job),
                    move, at);
    return;
  }
  planrt_job other = planrt_job_of(e->session, beside);
  prog_print_line(stderr, "planrun: note: job %d (%s) %s at its iteration %lld, and at iteration %lld of job %d (%s)",
                  number, run_execution_name(&job), move, at, (long long)other.iterations, beside,
                  run_execution_name(&other));
}

/* The first job that has run before the change and goes on; -1 = none. */
static int32_t find_staying(const run_execution *e, const int32_t *was) {
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    planrt_job job = planrt_job_of(e->session, n);
    if (job.job >= 0 && !job.is_new && !job.why && was[n] >= 0) return n;
  }
  return -1;
}

void run_execution_note_resumed(const run_execution *e) {
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    planrt_job job = planrt_job_of(e->session, n);
    if (job.job < 0)
      prog_print_line(stderr,
                      "planrun: note: job %d (%s) of %s is not in the plan: it is kept as it is, %s iteration %lld", n,
                      run_execution_name(&job), e->resume, job.why ? "failed at" : "at its",
                      (long long)run_execution_iterations(&job));
    if (job.job >= 0 && job.why)
      prog_print_line(stderr,
                      "planrun: note: job %d (%s) has failed at iteration %lld and stays so: under another name it "
                      "starts anew",
                      n, run_execution_name(&job), (long long)job.failed_at);
    if (job.is_new)
      prog_print_line(stderr, "planrun: note: job %d (%s) is not in %s: it starts anew", n, run_execution_name(&job),
                      e->resume);
    if (job.job >= 0 && planrt_resumed_in_other_rounds(e->session, job.job)) note_other_rounds(n, &job);
  }
}
