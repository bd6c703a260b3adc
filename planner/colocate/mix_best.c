/* From a mix to a plan, by one policy or, where `auto` is asked for, by the best of all others: each is asked for a
 * plan of its own, with the iterations that it needs where jobs have deadlines. Of those that fit and are in time the
 * one with the most throughput is taken, of equal ones the first in the table. Without deadlines and least shares all
 * have the same iterations, so that no job is slower than it is by any other. Where none is in time the least late one
 * is told of. Where it is not to go on, a plan is the best of those that were asked by then. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/goes_on.h"
#include "planner/choose/reasons.h"
#include "planner/colocate/mix_plan.h"
#include "planner/colocate/policies/mix_policies.h"
#include "planner/plan_steps.h"
#include "util/emit.h"
#include "util/math.h"

typedef struct mix_offer {
  const planc_mix_policy *policy; /* NULL: there is none yet */
  int64_t worth;                  /* throughput; of what is late or slow: by how much, less than 0 */
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
  planc_plan *plan;  /* or */
  planc_status late; /* why there is none; both owned */
} mix_offer;

typedef struct mix_best {
  const planc_mix *mix;
  const planc_mix_share *shares; /* as they were resolved */
  mix_offer best;
  const planc_mix_policy *next; /* whose was the best beside it; NULL = no other has a plan */
  int64_t next_worth;
  planc_status refusal;    /* of the policy that asks for least; owned */
  const char *interrupted; /* the policy that was asked when it was not to go on */
} mix_best;

static planc_status ask_all(mix_best *b);
static planc_status explain(const mix_best *b);

planc_status planc_colocate(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                            planc_plan **out) {
  *out = NULL;
  if (!(policy->supports & PLANC_MIX_CHOOSES)) return pl_colocate_by(mix, policy, shares, out);
  mix_best b = {.mix = mix, .shares = shares};
  planc_status status = ask_all(&b);
  if (!status && b.interrupted && !b.best.plan) status = pl_check_goes_on(mix->terms.watch);
  if (!status && b.best.plan) status = explain(&b);
  if (!status && b.best.policy) memcpy(shares, b.best.shares, (size_t)mix->n_jobs * sizeof *shares);
  if (status) {
    planc_plan_free(b.best.plan);
    planc_status_free(b.best.late);
    planc_status_free(b.refusal);
    return status;
  }
  if (b.best.policy) {
    planc_status_free(b.refusal);
    *out = b.best.plan;
    return b.best.late;
  }
  assert(b.refusal);
  return b.refusal;
}

static planc_status ask(mix_best *b, const planc_mix_policy *policy);

static planc_status ask_all(mix_best *b) {
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name && !b->interrupted; policy++) {
    if (pl_mix_is_asked(b->mix, policy)) PLANC_TRY(ask(b, policy));
  }
  return NULL;
}

static void take(mix_best *b, mix_offer *offer);

static planc_status ask(mix_best *b, const planc_mix_policy *policy) {
  mix_offer offer = {.policy = policy};
  memcpy(offer.shares, b->shares, (size_t)b->mix->n_jobs * sizeof *offer.shares);
  pl_tell_asked(b->mix->terms.watch, policy->name, 0, b->best.plan ? b->best.plan->predicted.period_ns : 0);
  planc_status status = pl_colocate_by(b->mix, policy, offer.shares, &offer.plan);
  if (!pl_goes_on(b->mix->terms.watch)) b->interrupted = policy->name;
  if (planc_status_code(status) == PLANC_INTERRUPTED) return pl_unless_interrupted(status, b->best.plan);
  planc_code code = planc_status_code(status);
  if (code == PLANC_INFEASIBLE || code == PLANC_USAGE) {
    pl_keep_lesser(&b->refusal, planc_context(status, "%s", policy->name));
    return NULL;
  }
  if (status && code != PLANC_LATE) return status;
  offer.late = planc_context(status, "%s", policy->name);
  offer.worth =
      status ? -pl_mix_missed(offer.shares, b->mix->n_jobs) : planc_mix_weighted_throughput(b->mix, offer.shares);
  take(b, &offer);
  return NULL;
}

/* Takes the offer over, or frees it. */
static void take(mix_best *b, mix_offer *offer) {
  bool wins = !b->best.policy || offer->worth > b->best.worth;
  mix_offer loser = wins ? b->best : *offer;
  if (wins) b->best = *offer;
  if (loser.plan && (!b->next || loser.worth > b->next_worth)) {
    b->next = loser.policy;
    b->next_worth = loser.worth;
  }
  planc_plan_free(loser.plan);
  planc_status_free(loser.late);
}

static bool any_has_least(const mix_best *b) {
  bool any = false;
  for (int32_t j = 0; j < b->mix->n_jobs; j++) any |= b->shares[j].least_ppm > 0;
  return any;
}

/* Ahead of why the policy chose the plan. */
static planc_status explain(const mix_best *b) {
  const char *which = planc_mix_has_deadlines(b->mix) ? "that fits and is in time"
                      : any_has_least(b)              ? "that fits and leaves each job its share"
                                                      : "that fits";
  char *text;
  size_t length;
  pl_emit emit = {0};
  if (b->interrupted) pl_emit_format(&emit, "interrupted when %s was asked; of those asked by then ", b->interrupted);
  pl_emit_format(&emit, "no other policy %s has more throughput", which);
  if (planc_mix_has_weights(b->mix)) pl_emit_format(&emit, " by weight than %.3f", (double)b->best.worth / PL_PPM);
  if (b->next) pl_emit_format(&emit, ", the next is %s with %.3f", b->next->name, (double)b->next_worth / PL_PPM);
  if (b->best.plan->explanation) pl_emit_format(&emit, "; %s: %s", b->best.policy->name, b->best.plan->explanation);
  PLANC_TRY(pl_emit_take(&emit, &text, &length));
  planc_status status = pl_explain_plan(b->best.plan, text);
  free(text);
  return status;
}
