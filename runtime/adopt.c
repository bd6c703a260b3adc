/* Changing plans: the epilogue of the old one has brought home all that persists, the prologue of the new one takes it
 * from there. Jobs that the new plan does not have are kept aside, and those that it has come from home, from where
 * they were kept, or start anew. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record.h"

/* From a session to the one that follows it. */
typedef struct handover {
  const planrt_session *from;
  const planc_plan *plan;
  int32_t n_known;
  int32_t *known;            /* by job of the plan: its number, RT_JOINS where it is new */
  planc_check_report report; /* the checker's on the plan */
  pl_arena memory;
} handover;

static void stay(handover *h);
static planc_status plan_handover(const planrt_session *from, const planc_plan *plan, handover *out);
static planc_status take_over(const handover *h, planrt_session *before, planrt_session **out);
static int32_t number_of(const handover *h, int32_t job, int32_t *joined);

planc_status planrt_can_adopt(const planrt_session *session, const planc_plan *plan, int32_t *numbers) {
  handover h;
  int32_t joined = 0;
  planc_status status = plan_handover(session, plan, &h);
  for (int32_t j = 0; j < plan->n_jobs && numbers && !status; j++) numbers[j] = number_of(&h, j, &joined);
  pl_arena_free(&h.memory);
  return status;
}

static planc_status change(planrt_session **session, handover *h) {
  planrt_session *old = *session, *next = NULL;
  rt_session_close_device(old);
  planc_status status = take_over(h, old, &next);
  if (status) {
    stay(h);
    planc_status again = take_over(h, old, &next);
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

/* The old plan's session again. */
static void stay(handover *h) {
  h->plan = h->from->plan;
  h->known = h->from->numbers;
  h->report = h->from->report;
}

planc_status planrt_adopt(planrt_session **session, const planc_plan *plan) {
  handover h;
  planc_status status = plan_handover(*session, plan, &h);
  if (!status) status = change(session, &h);
  pl_arena_free(&h.memory);
  return status;
}

/* --- Whether it can be done --------------------------------------------------------------------------------------- */

static planc_status match_jobs(handover *h);
static planc_status identify_known(handover *h, rt_identity *out);
static planc_status check_jobs(const handover *h);
static bool ahead_of(const handover *h, int32_t job, int64_t *out);
static int64_t iterations_of(const handover *h, int32_t job);

static planc_status plan_handover(const planrt_session *from, const planc_plan *plan, handover *out) {
  *out = (handover){.from = from, .plan = plan, .n_known = rt_jobs_known(from)};
  PLANC_TRY(PL_NEW(&out->memory, &out->known, plan->n_jobs));
  PLANC_TRY(match_jobs(out));
  PLANC_TRY(check_jobs(out));
  return from->options.unchecked ? NULL : planc_check(plan, NULL, &out->report);
}

static planc_status match_jobs(handover *h) {
  rt_identity *known, *jobs;
  PLANC_TRY(PL_NEW(&h->memory, &known, h->n_known));
  PLANC_TRY(PL_NEW(&h->memory, &jobs, h->plan->n_jobs));
  PLANC_TRY(identify_known(h, known));
  for (int32_t j = 0; j < h->plan->n_jobs; j++) PLANC_TRY(rt_identify(&h->memory, &h->plan->jobs[j], &jobs[j]));
  return rt_match(known, h->n_known, jobs, h->plan->n_jobs, false, h->known);
}

/* Who the jobs are that the training has had, by number. */
static planc_status identify_known(handover *h, rt_identity *out) {
  const planrt_session *from = h->from;
  for (int32_t n = 0; n < h->n_known; n++) {
    int32_t job = rt_job_with(from, n);
    if (job < 0) {
      out[n] = rt_job_away(from, n)->record->who;
      continue;
    }
    PLANC_TRY(rt_identify(&h->memory, &from->trace->jobs[job], &out[n]));
    out[n].name = from->names[job];
  }
  return NULL;
}

static planc_status check_jobs(const handover *h) {
  bool any = false;
  int64_t ahead;
  for (int32_t j = 0; j < h->plan->n_jobs; j++) {
    any |= h->known[j] == RT_JOINS || !planrt_job_of(h->from, h->known[j]).why;
    if (!ahead_of(h, j, &ahead)) return planc_error(PLANC_USAGE, "more iterations than can be counted");
  }
  return any ? NULL : planc_error(PLANC_STALE, "all of its jobs have failed");
}

static bool ahead_of(const handover *h, int32_t job, int64_t *out) {
  const planc_job *of = &h->plan->jobs[job];
  return rt_job_ahead(h->from->step.period, of->iterations, planc_job_whole_batch(of), iterations_of(h, job), out);
}

/* Where a job of the plan goes on from. */
static int64_t iterations_of(const handover *h, int32_t job) {
  return h->known[job] == RT_JOINS ? 0 : planrt_job_of(h->from, h->known[job]).iterations;
}

/* --- Doing it ----------------------------------------------------------------------------------------------------- */

static planc_status settle(const handover *h, planrt_session *from, planrt_session *to);
static planc_status take_down(const handover *h, planrt_session *to);
static bool is_taken(const handover *h, int32_t number);
static planc_status number_job(const handover *h, planrt_session *to, int32_t job, int32_t *joined);
static void hand_over(const handover *h, planrt_session *from, planrt_session *to);
static void bring_home(planrt_session *from, int32_t job, planrt_session *to, int32_t to_job);

/* A session for the plan that goes on where the one before stood. */
static planc_status take_over(const handover *h, planrt_session *before, planrt_session **out) {
  PLANC_TRY(rt_session_new_checked(h->plan, &before->options, &h->report, out));
  planc_status status = settle(h, before, *out);
  if (!status) return NULL;
  planrt_session_free(*out);
  *out = NULL;
  return status;
}

static planc_status settle(const handover *h, planrt_session *from, planrt_session *to) {
  int32_t joined = 0;
  to->step = from->step;
  to->n_before = h->n_known;
  PLANC_TRY(take_down(h, to));
  for (int32_t j = 0; j < to->trace->n_jobs; j++) PLANC_TRY(number_job(h, to, j, &joined));
  for (int32_t j = 0; j < to->trace->n_jobs; j++)
    if (h->known[j] == RT_JOINS) PLANC_TRY(rt_init_job(to, j));
  PLANC_TRY(rt_user_ask_same(to));
  hand_over(h, from, to);
  return NULL;
}

/* A place for each job that is away from now on, and in it what leaves. */
static planc_status take_down(const handover *h, planrt_session *to) {
  to->away = calloc((size_t)h->n_known + 1, sizeof *to->away);
  if (!to->away) return planc_error(PLANC_OUT_OF_MEMORY, "jobs that leave");
  for (int32_t n = 0; n < h->n_known; n++) {
    int32_t job = rt_job_with(h->from, n);
    if (job >= 0 && !is_taken(h, n)) PLANC_TRY(rt_away_take(h->from, job, &to->away[to->n_away++]));
  }
  return NULL;
}

static bool is_taken(const handover *h, int32_t number) {
  for (int32_t j = 0; j < h->plan->n_jobs; j++)
    if (h->known[j] == number) return true;
  return false;
}

/* Of a job of the plan: its number, how far it has come, and the name that stays with it. */
static planc_status number_job(const handover *h, planrt_session *to, int32_t job, int32_t *joined) {
  bool joins = h->known[job] == RT_JOINS;
  to->numbers[job] = number_of(h, job, joined);
  bool counts = ahead_of(h, job, &to->ahead[job]); /* as has been checked */
  assert(counts);
  (void)counts;
  const char *name = joins ? NULL : planrt_job_of(h->from, h->known[job]).name;
  return name && !to->names[job] ? rt_keep_text(&to->memory, name, &to->names[job]) : NULL;
}

/* The number that a job of the plan has, or as the next one that joins gets. */
static int32_t number_of(const handover *h, int32_t job, int32_t *joined) {
  return h->known[job] == RT_JOINS ? h->n_known + (*joined)++ : h->known[job];
}

/* From here on nothing fails. */
static void hand_over(const handover *h, planrt_session *from, planrt_session *to) {
  for (int32_t j = 0; j < to->trace->n_jobs; j++) {
    int32_t job = rt_job_with(from, to->numbers[j]);
    const rt_away *away = job < 0 ? rt_job_away(from, to->numbers[j]) : NULL;
    if (job >= 0) bring_home(from, job, to, j);
    if (away) rt_away_put_back(away, to, j);
  }
  for (int32_t a = 0; a < from->n_away; a++) {
    if (is_taken(h, from->away[a].number)) continue;
    to->away[to->n_away++] = from->away[a];
    from->away[a] = (rt_away){0};
  }
  to->failures.alone = rt_jobs_known(to) == 1;
}

/* Both have the same homes: those depend on the graph alone. */
static void bring_home(planrt_session *from, int32_t job, planrt_session *to, int32_t to_job) {
  rt_homes old = {.storage = -1}, new = {.storage = -1};
  while (rt_next_home(from, job, &old) && rt_next_home(to, to_job, &new))
    memcpy(new.home, old.home, (size_t) new.bytes);
  rt_failures_hand_over(&from->failures, job, &to->failures, to_job);
}
