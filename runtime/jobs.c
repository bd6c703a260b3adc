/* The jobs of a training: their numbers, how far each has come, and those that the plan which runs does not have. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record.h"
#include "util/math.h"

planc_status rt_jobs_open(planrt_session *session) {
  int32_t n = session->trace->n_jobs;
  PLANC_TRY(PL_NEW(&session->memory, &session->ahead, n));
  PLANC_TRY(PL_NEW(&session->memory, &session->numbers, n));
  PLANC_TRY(PL_NEW(&session->memory, &session->names, n));
  PLANC_TRY(PL_NEW(&session->memory, &session->resumed_samples, n));
  PLANC_TRY(PL_NEW(&session->memory, &session->resumed_other_rounds, n));
  PLANC_TRY(PL_NEW(&session->memory, &session->has_random, n));
  for (int32_t j = 0; j < n; j++) {
    session->numbers[j] = j;
    session->names[j] = session->trace->jobs[j].name;
  }
  return NULL;
}

void rt_jobs_close(planrt_session *session) {
  for (int32_t a = 0; a < session->n_away; a++) rt_away_free(&session->away[a]);
  free(session->away);
  session->away = NULL;
  session->n_away = 0;
}

/* --- By number ---------------------------------------------------------------------------------------------------- */

int32_t rt_jobs_known(const planrt_session *session) {
  return session->trace->n_jobs + session->n_away;
}

int32_t rt_job_with(const planrt_session *session, int32_t number) {
  for (int32_t j = 0; j < session->trace->n_jobs; j++)
    if (session->numbers[j] == number) return j;
  return -1;
}

rt_away *rt_job_away(const planrt_session *session, int32_t number) {
  for (int32_t a = 0; a < session->n_away; a++)
    if (session->away[a].number == number) return &session->away[a];
  return NULL;
}

int32_t planrt_jobs(const planrt_session *session) {
  return rt_jobs_known(session);
}

int32_t planrt_job_number(const planrt_session *session, int32_t job) {
  return session->numbers[job];
}

planrt_job planrt_job_of(const planrt_session *session, int32_t number) {
  int32_t job = rt_job_with(session, number);
  if (job < 0) {
    const rt_away *away = rt_job_away(session, number);
    assert(away);
    const rt_record *of = away->record;
    return (planrt_job){.job = -1,
                        .name = of->who.name,
                        .graph = of->who.graph,
                        .iterations = of->iterations,
                        .why = of->why,
                        .failed_at = of->failed_at};
  }
  planrt_failure failure = {0};
  (void)planrt_failed(session, job, &failure);
  return (planrt_job){.job = job,
                      .name = session->names[job],
                      .graph = session->trace->jobs[job].graph->name,
                      .iterations = rt_first_iteration(session, job, session->step.period),
                      .is_new = number >= session->n_before,
                      .why = failure.why,
                      .failed_at = failure.iteration};
}

bool rt_job_ahead(int64_t period, int32_t per_period, int64_t whole_batch, int64_t iterations, int64_t *out) {
  int64_t counted, samples;
  if (period < 0 || iterations < 0 || pl_mul_overflow(period, per_period, &counted)) return false;
  if (pl_mul_overflow(iterations > counted ? iterations : counted, whole_batch, &samples) || samples > INT64_MAX / 2)
    return false;
  *out = iterations - counted;
  return true;
}

bool rt_jobs_can_run(const planrt_session *session, int64_t periods) {
  int64_t first = session->step.period, end;
  if (periods < 0 || first < 0 || pl_add_overflow(first, periods, &end)) return false;
  for (int32_t j = 0; j < session->trace->n_jobs; j++) {
    int64_t iterations, begin, per_period = session->trace->jobs[j].iterations;
    if (pl_mul_overflow(end, per_period, &iterations) || pl_add_overflow(iterations, session->ahead[j], &iterations))
      return false;
    begin = rt_first_iteration(session, j, first);
    if (begin < 0) return false;
  }
  return true;
}

/* --- Those that are away ------------------------------------------------------------------------------------------ */

planc_status rt_away_take(const planrt_session *from, int32_t job, rt_away *out) {
  *out = (rt_away){.number = from->numbers[job], .record = calloc(1, sizeof *out->record)};
  if (!out->record) return planc_error(PLANC_OUT_OF_MEMORY, "a job that leaves");
  PLANC_TRY(rt_record_make(from, job, out->record));
  out->values = malloc((size_t)out->record->bytes + 1);
  if (!out->values)
    return planc_error(PLANC_OUT_OF_MEMORY, "%lld bytes of a job that leaves", (long long)out->record->bytes);
  char *to = out->values;
  rt_homes at = {.storage = -1};
  for (; rt_next_home(from, job, &at); to += at.bytes) memcpy(to, at.home, (size_t)at.bytes);
  return NULL;
}

void rt_away_put_back(const rt_away *away, planrt_session *to, int32_t job) {
  const char *from = away->values;
  rt_homes at = {.storage = -1};
  for (; rt_next_home(to, job, &at); from += at.bytes) memcpy(at.home, from, (size_t)at.bytes);
  if (away->record->why) rt_failures_set(&to->failures, job, away->record->failed_at, away->record->why);
}

void rt_away_free(rt_away *away) {
  if (away->record) rt_record_free(away->record);
  free(away->record);
  free(away->values);
  *away = (rt_away){0};
}
