/* `auto` for several jobs: the fastest of all policies for mixes that fit, and that are in time where jobs have
 * deadlines. All of them have the same iterations of each job in a period, so that the shortest period is the most
 * throughput, and no job is slower than by any other of them.
 *
 * Each is asked in the order of the table, and of two that take equally long the first is taken. Where none is in time
 * it is the one that is least late: whoever asks may then let jobs with a deadline run more often. */
#include <assert.h>

#include "planner/choose/reasons.h"
#include "planner/colocate/jobs/deadlines.h"
#include "planner/colocate/policies/mix_policies.h"
#include "util/math.h"
#include "util/size.h"

/* What a policy's schedule takes. */
typedef struct mix_outcome {
  const planc_mix_policy *policy; /* NULL: nothing fits yet */
  int64_t late_ns, period_ns;     /* late: of the request that is latest beyond its deadline; 0: all are in time */
} mix_outcome;

typedef struct choosing_mix {
  const planc_mix_evaluator *evaluator;
  const planc_mix_share *shares;
  mix_outcome best, next; /* next: the best of the others */
  planc_candidate *found; /* the best's; the caller's */
  planc_status refusal;   /* that of the policy that asks for least; owned */
} choosing_mix;

static bool is_asked(const planc_mix *mix, const planc_mix_policy *policy);
static planc_status ask(choosing_mix *c, const planc_mix_policy *policy);
static planc_status explain(const choosing_mix *c);

planc_status pl_mix_auto(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out) {
  choosing_mix c = {.evaluator = evaluator, .shares = shares, .found = out};
  planc_status status = NULL;
  for (const planc_mix_policy *policy = evaluator->policies; policy->name && !status; policy++) {
    if (is_asked(evaluator->mix, policy)) status = ask(&c, policy);
    if (c.best.policy && evaluator->mix->terms.first_will_do) break;
  }
  if (!status && c.best.policy) status = explain(&c);
  if (status || c.best.policy) {
    planc_status_free(c.refusal);
    return status;
  }
  assert(c.refusal);
  return c.refusal;
}

static bool is_asked(const planc_mix *mix, const planc_mix_policy *policy) {
  bool suits = planc_mix_has_deadlines(mix) || !(policy->supports & PLANC_MIX_DEADLINES);
  return policy->make && suits && !(policy->supports & PLANC_MIX_CHOOSES);
}

/* --- A policy ----------------------------------------------------------------------------------------------------- */

static planc_status judge(const choosing_mix *c, const planc_candidate *candidate, bool *out_fits, mix_outcome *out);
static bool is_better(const mix_outcome *a, const mix_outcome *b);

static planc_status ask(choosing_mix *c, const planc_mix_policy *policy) {
  planc_candidate candidate = {0};
  mix_outcome outcome = {.policy = policy};
  bool fits = false;
  planc_status status = policy->make(c->evaluator, c->shares, &candidate);
  if (!status) status = judge(c, &candidate, &fits, &outcome);
  if (!status && fits && is_better(&outcome, &c->best)) {
    planc_candidate_free(c->found);
    *c->found = candidate;
    candidate = (planc_candidate){0};
    c->next = c->best;
    c->best = outcome;
  } else if (!status && fits && is_better(&outcome, &c->next)) {
    c->next = outcome;
  }
  planc_candidate_free(&candidate);
  planc_code code = planc_status_code(status);
  if (code != PLANC_INFEASIBLE && code != PLANC_USAGE) return status;
  pl_keep_lesser(&c->refusal, planc_context(status, "%s", policy->name));
  return NULL;
}

/* INFEASIBLE where it does not fit. */
static planc_status judge(const choosing_mix *c, const planc_candidate *candidate, bool *out_fits, mix_outcome *out) {
  const planc_evaluator *all = &c->evaluator->all;
  int64_t responses_ns[PLANC_MIX_MAX_JOBS];
  planc_taken taken;
  PLANC_TRY(all->hold(all, candidate));
  PLANC_TRY(all->simulate(all, candidate, NULL, NULL, &taken));
  *out_fits = taken.fits;
  out->period_ns = taken.period_ns;
  if (!taken.fits || !planc_mix_has_deadlines(c->evaluator->mix)) return NULL;
  PLANC_TRY(c->evaluator->respond(c->evaluator, candidate, responses_ns));
  for (int32_t j = 0; j < c->evaluator->mix->n_jobs; j++) {
    int64_t deadline_ns = pl_deadline_of(c->evaluator->mix, j);
    if (deadline_ns > 0) out->late_ns = pl_max(out->late_ns, responses_ns[j] - deadline_ns);
  }
  return NULL;
}

static bool is_better(const mix_outcome *a, const mix_outcome *b) {
  if (!b->policy) return true;
  return a->late_ns != b->late_ns ? a->late_ns < b->late_ns : a->period_ns < b->period_ns;
}

/* --- For people --------------------------------------------------------------------------------------------------- */

static planc_status explain(const choosing_mix *c) {
  char text[PL_SIZE_TEXT];
  const char *name = c->best.policy->name;
  if (!c->next.policy) return planc_candidate_explain(c->found, "that is policy %s, no other fits", name);
  return planc_candidate_explain(c->found, "that is policy %s, no other that fits is faster: the next is %s with %s",
                                 name, c->next.policy->name, pl_time_format(c->next.period_ns, text));
}
