/* A plan by one policy: its candidate, lowering, simulation, budgets. */
#include <assert.h>
#include <stdlib.h>

#include "planc/policy.h"
#include "planc/simulate.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/choose/reasons.h"
#include "planner/evaluate.h"
#include "planner/make_plan.h"
#include "planner/means.h"
#include "planner/plan_steps.h"
#include "util/emit.h"

static planc_status check_placement(const planc_problem *problem, const planc_policy *policy);
static planc_status make_beside_storage(const planc_problem *problem, const planc_policy *policy, planc_plan **out);
static planc_status or_without_swaps(const planc_problem *problem, const planc_policy *policy, planc_status status,
                                     planc_plan **plan);

planc_status pl_make_one(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  *out = NULL;
  PLANC_TRY(check_placement(problem, policy));
  PLANC_TRY(pl_check_means(problem, policy));
  planc_status status = make_beside_storage(problem, policy, out);
  status = or_without_swaps(problem, policy, status, out);
  if (!status) return NULL;
  planc_plan_free(*out);
  *out = NULL;
  return status;
}

static planc_status check_placement(const planc_problem *problem, const planc_policy *policy) {
  if (planc_policy_places(policy, problem->terms.placement)) return NULL;
  bool paged = planc_policy_places(policy, PLANC_PLACEMENT_PAGED);
  return planc_error(PLANC_USAGE, "policy %s does not place in %s", policy->name,
                     paged ? "chunks of virtual memory, but in pages" : "virtual memory");
}

/* --- With and without swaps --------------------------------------------------------------------------------------- */

static bool may_do_without_swaps(const planc_problem *problem, const planc_policy *policy);
static bool has_none(planc_status failed, const planc_plan *other);
static planc_status tell(planc_plan *plan, const char *how);

/* The links of several GPUs carry gradients, too: what can do without swaps may be faster without. *plan (NULL: none)
 * and `status` are what the policy has made with them. */
static planc_status or_without_swaps(const planc_problem *problem, const planc_policy *policy, planc_status status,
                                     planc_plan **plan) {
  bool settled = status && planc_status_code(status) != PLANC_INFEASIBLE;
  if (settled || !may_do_without_swaps(problem, policy) || (*plan && problem->terms.first_will_do)) return status;
  planc_problem without = *problem;
  planc_plan *other;
  without.terms.settings.no_swap = 1;
  if (*plan) without.terms.beat_ns = (*plan)->predicted.period_ns;
  planc_status failed = make_beside_storage(&without, policy, &other);
  if (has_none(failed, *plan)) {
    if (status)
      pl_keep_lesser(&status, failed);
    else
      planc_status_free(failed);
    return status;
  }
  planc_status_free(status);
  planc_plan_free(*plan);
  *plan = other;
  if (failed) return failed;
  other->settings = planc_settings_asked(problem);
  return tell(other, "without swaps");
}

/* Something is left to do then. */
static bool may_do_without_swaps(const planc_problem *problem, const planc_policy *policy) {
  const planc_settings *settings = &problem->terms.settings;
  uint32_t left = PLANC_POLICY_ROUNDS | (settings->no_recompute ? 0 : PLANC_POLICY_RECOMPUTES);
  return problem->terms.gpus > 1 && !settings->no_swap && (policy->supports & PLANC_POLICY_SWAPS) &&
         (policy->supports & left);
}

/* Whether an attempt has no plan, and another one's outcome stands: it does not fit, or was interrupted beside a plan.
 */
static bool has_none(planc_status failed, const planc_plan *other) {
  planc_code code = planc_status_code(failed);
  return code == PLANC_INFEASIBLE || (code == PLANC_INTERRUPTED && other);
}

/* Adds how the plan was made to what its policy says of it. */
static planc_status tell(planc_plan *plan, const char *how) {
  char *text;
  size_t length;
  pl_emit emit = {0};
  if (plan->explanation) pl_emit_format(&emit, "%s; ", plan->explanation);
  pl_emit_format(&emit, "%s", how);
  PLANC_TRY(pl_emit_take(&emit, &text, &length));
  planc_status status = pl_explain_plan(plan, text);
  free(text);
  return status;
}

/* --- Beside storage ----------------------------------------------------------------------------------------------- */

static planc_status make_fastest(const planc_problem *problem, const planc_policy *policy, bool stores,
                                 planc_plan **out);

static bool is_short_of_host(const planc_terms *terms, const planc_plan *plan);
static planc_status make_with_storage(const planc_problem *problem, const planc_policy *policy, planc_status without,
                                      planc_plan **plan);

/* What a policy sends away because there is storage may be slow to come back, or have no room on its way: without it
 * the policy may do better, and mostly it needs none. */
static planc_status make_beside_storage(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  const planc_terms *terms = &problem->terms;
  *out = NULL;
  if (terms->budgets[PLANC_MEMORY_STORAGE] == 0) return make_fastest(problem, policy, true, out);
  planc_status status = make_fastest(problem, policy, false, out);
  bool will_do = *out && (terms->first_will_do || !is_short_of_host(terms, *out));
  if (will_do || (status && planc_status_code(status) != PLANC_INFEASIBLE)) return status;
  return make_with_storage(problem, policy, status, out);
}

/* Hardly more of the host would be of use to it. */
static bool is_short_of_host(const planc_terms *terms, const planc_plan *plan) {
  enum { LITTLE = 8 /* part of the budget that is left */ };
  const int64_t budget = terms->budgets[PLANC_MEMORY_HOST];
  return plan->predicted.peak_bytes[PLANC_MEMORY_STORAGE] > 0 ||
         plan->predicted.peak_bytes[PLANC_MEMORY_HOST] > budget - budget / LITTLE;
}

/* *plan (NULL: none) and `without` are what the policy has made as if there were no storage. */
static planc_status make_with_storage(const planc_problem *problem, const planc_policy *policy, planc_status without,
                                      planc_plan **plan) {
  planc_plan *other;
  planc_status failed = make_fastest(problem, policy, true, &other);
  if (has_none(failed, *plan) && *plan) {
    planc_status_free(failed);
    return NULL;
  }
  planc_status_free(without);
  if (!failed && *plan && planc_predictions_better(&(*plan)->predicted, &other->predicted)) {
    planc_plan_free(other);
    /* What the policy says of what fits does not count what has room in storage. */
    return tell(*plan, "chosen as if there were no storage");
  }
  planc_plan_free(*plan);
  *plan = failed ? NULL : other;
  return failed;
}

/* --- With code ---------------------------------------------------------------------------------------------------- */

typedef struct policy_attempt {
  const planc_problem *problem;
  const planc_policy *policy;
  bool stores;      /* the policy may count on storage */
  planc_plan *plan; /* NULL: none fits yet */
} policy_attempt;

static planc_status make_better(void *user, const planc_target *target, int64_t *out_code);
static planc_status make(const planc_target *target, const policy_attempt *b, planc_plan **out);
static planc_status make_candidate(const planc_problem *problem, const policy_attempt *b, planc_candidate *out);
static planc_status too_slow(const planc_policy *policy, int64_t ns, int64_t beat_ns);
static planc_status judge(const planc_terms *terms, const planc_policy *policy, planc_plan *plan);

static planc_status make_fastest(const planc_problem *problem, const planc_policy *policy, bool stores,
                                 planc_plan **out) {
  policy_attempt b = {.problem = problem, .policy = policy, .stores = stores};
  const planc_target target = planc_target_of(problem);
  planc_status status = pl_unless_interrupted(pl_with_code(&target, make_better, &b), b.plan);
  if (status) {
    planc_plan_free(b.plan);
    return status;
  }
  assert(b.plan);
  *out = b.plan;
  return NULL;
}

static planc_status make_better(void *user, const planc_target *target, int64_t *out_code) {
  policy_attempt *b = user;
  planc_plan *plan;
  PLANC_TRY(make(target, b, &plan));
  *out_code = pl_code_of_plan(target->profile, plan);
  planc_status status = judge(target->terms, b->policy, plan);
  if (status) {
    planc_plan_free(plan);
    return status;
  }
  pl_keep_better(plan, &b->plan);
  return NULL;
}

static planc_status make(const planc_target *target, const policy_attempt *b, planc_plan **out) {
  const planc_problem problem = pl_problem_on(target, b->problem);
  planc_candidate candidate = {0};
  *out = NULL;
  planc_status status = make_candidate(&problem, b, &candidate);
  if (!status) status = pl_plan_of(target, b->policy->name, &candidate, out);
  planc_candidate_free(&candidate);
  return status;
}

/* The candidate of the policy, unless its ops alone take too long. */
static planc_status make_candidate(const planc_problem *problem, const policy_attempt *b, planc_candidate *out) {
  planc_problem asked = *problem;
  if (!b->stores) asked.terms.budgets[PLANC_MEMORY_STORAGE] = 0;
  planc_evaluator evaluator = pl_evaluator_of(&asked);
  PLANC_TRY(b->policy->make(&evaluator, out));
  int64_t ns = problem->terms.beat_ns > 0 ? pl_candidate_least_time(out) : -1;
  return ns >= problem->terms.beat_ns ? too_slow(b->policy, ns, problem->terms.beat_ns) : NULL;
}

static planc_status too_slow(const planc_policy *policy, int64_t ns, int64_t beat_ns) {
  return planc_error(PLANC_INFEASIBLE, "policy %s takes %lld ns, but less than %lld is asked for", policy->name,
                     (long long)ns, (long long)beat_ns);
}

/* What does not fit is not simulated. */
static planc_status judge(const planc_terms *terms, const planc_policy *policy, planc_plan *plan) {
  if (!(policy->supports & PLANC_POLICY_SIMULATED)) PLANC_TRY(pl_hold_to_budgets(terms, plan));
  PLANC_TRY(planc_simulate_predictions(plan));
  int64_t ns = plan->predicted.period_ns;
  return terms->beat_ns > 0 && ns >= terms->beat_ns ? too_slow(policy, ns, terms->beat_ns) : NULL;
}
