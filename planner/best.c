/* `auto` and `best`: the fastest of all policies that fit, of `best` but for those that search. Each is asked in the
 * order of the table for a plan that is faster than the fastest so far; one that cannot be faster is not run to its
 * end: not begun where the ops alone take as long on a device without limit, not placed where those of its schedule do,
 * not asked for rounds that do (modnn).
 *
 * Of two that take equally long the one that stands first in the table is taken. `none`, which keeps everything on the
 * device, is taken where nothing is faster by more than a thousandth: less than that no prediction can tell apart, and
 * it needs no copy to be in time. What is only simulated is never taken. Those that search stand last, and are asked
 * for less than what was found by then.
 *
 * Most policies take the batch at once. Where rounds may be chosen, they are asked in rounds of half the batch, of a
 * quarter and so on down to one sample as well: until one fits, and on as long as the ops alone of such rounds are
 * faster than the fastest plan so far, by more than a thousandth. */
#include <assert.h>
#include <stdlib.h>

#include "cost/ideal.h"
#include "plan/one_job.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/choose/reasons.h"
#include "planner/choose/sub_batch.h"
#include "planner/make_plan.h"
#include "planner/plan_steps.h"
#include "util/emit.h"
#include "util/math.h"
#include "util/size.h"

enum { WORTH = 1000, MAX_INSTANCES = 20000 };

typedef struct best {
  planc_problem problem;   /* with what is to be beaten */
  int64_t least_ns;        /* of any plan in the rounds that are asked for */
  bool searches;           /* those that search are asked, too: `auto` */
  bool in_smaller_rounds;  /* policies that take the batch at once by themselves are asked for rounds */
  bool none_at_once;       /* no policy fits by itself */
  const char *interrupted; /* the policy that was asked when it was not to go on */
  planc_plan *plan;
  bool found_in_smaller;    /* `plan` is in smaller rounds */
  const char *slower;       /* the policy that was the fastest before, NULL = none fitted */
  int64_t slower_ns;        /* its plan's period */
  int64_t slower_rounds;    /* samples of one of its rounds */
  planc_status infeasible;  /* of the policy that asks for least; owned */
  planc_status unsupported; /* the first reason why a policy cannot plan this; owned */
} best;

static planc_status least_time(best *b, int64_t size);
static planc_status ask_all(best *b);
static planc_status ask_in_smaller_rounds(best *b);
static planc_status no_plan(best *b);
static planc_status explain(const best *b);
static planc_status ask_in_rounds(best *b, int64_t size);
static void note_refusal(best *b, planc_status reason);
static bool is_asked(const best *b, const planc_policy *policy);
static bool cannot_win(const best *b, const planc_policy *policy);
static planc_status ask(best *b, const planc_policy *policy);

planc_status pl_make_best(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  best b = {.problem = *problem, .searches = policy->supports & PLANC_POLICY_SEARCHES};
  planc_status status = least_time(&b, pl_sub_batch_asked(problem));
  if (!status) status = ask_all(&b);
  if (!status && !problem->terms.own_rounds && !b.interrupted) status = ask_in_smaller_rounds(&b);
  if (!status && !b.plan) status = b.interrupted ? pl_check_goes_on(problem->terms.watch) : no_plan(&b);
  if (!status && !problem->terms.first_will_do) status = explain(&b);
  if (status) planc_plan_free(b.plan);
  if (!status) *out = b.plan;
  planc_status_free(b.infeasible);
  planc_status_free(b.unsupported);
  return status;
}

/* --- What is preferred -------------------------------------------------------------------------------------------- */

static int64_t worth_of(int64_t ns) {
  return ns - ns / WORTH;
}

/* The longest period that is preferred to the incumbent's, and one more. */
static int64_t beat_of(const char *incumbent, int64_t incumbent_ns) {
  return planc_policy_is_resident(incumbent) ? worth_of(incumbent_ns) : incumbent_ns;
}

bool planc_is_preferred(int64_t ns, const char *incumbent, int64_t incumbent_ns) {
  return ns < beat_of(incumbent, incumbent_ns);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

static planc_status least_time(best *b, int64_t size) {
  const planc_workload *job = &b->problem.job;
  return pl_ideal_of_rounds(job->profile, job->graph, job->batch, pl_min(size, job->batch), &b->least_ns);
}

static planc_status ask_all(best *b) {
  for (const planc_policy *policy = planc_policies(); policy->name && !b->interrupted; policy++) {
    if (is_asked(b, policy) && !cannot_win(b, policy)) PLANC_TRY(ask(b, policy));
    if (b->plan && b->problem.terms.first_will_do) break;
  }
  return NULL;
}

/* Samples of the next smaller rounds; 0 = there are none, or the trace would be too long. */
static int64_t smaller_rounds(const best *b, int64_t size) {
  int64_t batch = b->problem.job.batch, half = (size + 1) / 2;
  if (size <= 1 || (batch + half - 1) / half > MAX_INSTANCES / b->problem.job.graph->n_ops) return 0;
  return half;
}

/* Nothing fits below what is reserved: there the smallest rounds alone are asked, for what would do. */
static planc_status ask_in_smaller_rounds(best *b) {
  const planc_terms *terms = &b->problem.terms;
  bool fits_none = terms->budgets[PLANC_MEMORY_DEVICE] <= pl_reserved(terms, b->problem.job.profile), may_split;
  PLANC_TRY(pl_may_split(&b->problem, &may_split));
  if (!may_split) return NULL;
  b->in_smaller_rounds = true;
  b->none_at_once = !b->plan;
  for (int64_t size = smaller_rounds(b, b->problem.job.batch), next; size > 0 && !b->interrupted; size = next) {
    if (b->plan && terms->first_will_do) break;
    next = smaller_rounds(b, size);
    if (fits_none && next > 0) continue;
    planc_status unknown = least_time(b, size);
    if (planc_status_code(unknown) == PLANC_BAD_INPUT) { /* some op has no time at that size */
      note_refusal(b, unknown);
      continue;
    }
    PLANC_TRY(unknown);
    if (b->plan && b->least_ns >= worth_of(b->plan->predicted.period_ns)) break;
    PLANC_TRY(ask_in_rounds(b, size));
  }
  return NULL;
}

static planc_status ask_in_rounds(best *b, int64_t size) {
  planc_status others = b->infeasible;
  b->infeasible = NULL;
  b->problem.job.sub_batch = size;
  planc_status status = ask_all(b);
  if (others) pl_keep_lesser(&b->infeasible, others);
  return status;
}

/* A policy that chooses rounds has already tried smaller ones, so in smaller rounds it is not asked again. */
static bool is_asked(const best *b, const planc_policy *policy) {
  uint32_t left_out = PLANC_POLICY_SIMULATED | PLANC_POLICY_CHOOSES | (b->searches ? 0 : PLANC_POLICY_SEARCHES) |
                      (b->in_smaller_rounds ? PLANC_POLICY_ROUNDS : 0);
  return !(policy->supports & left_out) && planc_policy_places(policy, b->problem.terms.placement);
}

/* Whether no plan of the policy can be fast enough in the rounds that it is asked for. */
static bool cannot_win(const best *b, const planc_policy *policy) {
  bool chooses = (policy->supports & PLANC_POLICY_ROUNDS) && b->problem.job.sub_batch == 0;
  return b->problem.terms.beat_ns > 0 && !chooses && b->least_ns >= b->problem.terms.beat_ns;
}

static void note_refusal(best *b, planc_status reason) {
  if (planc_status_code(reason) == PLANC_INFEASIBLE) {
    pl_keep_lesser(&b->infeasible, reason);
  } else if (b->unsupported) {
    planc_status_free(reason);
  } else {
    b->unsupported = reason;
  }
}

static planc_status ask(best *b, const planc_policy *policy) {
  planc_plan *plan;
  pl_tell_asked(b->problem.terms.watch, policy->name, 0, b->plan ? b->plan->predicted.period_ns : 0);
  planc_status status = pl_make_one(&b->problem, policy, &plan);
  if (!pl_goes_on(b->problem.terms.watch)) b->interrupted = policy->name;
  if (planc_status_code(status) == PLANC_INTERRUPTED) return pl_unless_interrupted(status, b->plan);
  planc_code code = planc_status_code(status);
  if (code == PLANC_INFEASIBLE || code == PLANC_USAGE || code == PLANC_BAD_INPUT) {
    note_refusal(b, status);
    return NULL;
  }
  PLANC_TRY(status);
  b->slower = b->plan ? planc_policy_find(b->plan->policy)->name : NULL;
  b->slower_ns = b->plan ? b->plan->predicted.period_ns : 0;
  b->slower_rounds = b->plan ? pl_plan_job(b->plan)->rounds[0] : 0;
  planc_plan_free(b->plan);
  b->plan = plan;
  b->found_in_smaller = b->in_smaller_rounds;
  b->problem.terms.beat_ns = beat_of(policy->name, plan->predicted.period_ns);
  return NULL;
}

/* Why the plan is the best, ahead of why its policy chose it. */
static planc_status explain(const best *b) {
  planc_plan *plan = b->plan;
  assert(plan);
  bool all_stays = planc_policy_is_resident(plan->policy);
  char time[PL_SIZE_TEXT], *text;
  size_t length;
  pl_emit emit = {0};
  if (b->none_at_once) pl_emit_format(&emit, "no policy fits in rounds of its own choice; in smaller ones ");
  if (b->interrupted) pl_emit_format(&emit, "interrupted when %s was asked; of those asked by then ", b->interrupted);
  pl_emit_format(&emit, "no other policy that fits is faster%s", all_stays ? " by more than a thousandth" : "");
  if (b->slower) pl_emit_format(&emit, ", of those asked before it %s", b->slower);
  if (b->slower && b->found_in_smaller) pl_emit_format(&emit, " in rounds of %lld", (long long)b->slower_rounds);
  if (b->slower) pl_emit_format(&emit, " was the fastest with %s", pl_time_format(b->slower_ns, time));
  if (plan->explanation) pl_emit_format(&emit, "; %s: %s", plan->policy, plan->explanation);
  PLANC_TRY(pl_emit_take(&emit, &text, &length));
  planc_status status = pl_explain_plan(plan, text);
  free(text);
  return status;
}

/* What there is to say without a plan. */
static planc_status no_plan(best *b) {
  planc_status status = b->infeasible ? b->infeasible : b->unsupported;
  if (b->infeasible) {
    b->infeasible = NULL;
  } else {
    b->unsupported = NULL;
  }
  return status;
}
