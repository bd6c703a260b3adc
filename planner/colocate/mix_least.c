/* The least budget of a mix (colocate.h), counted in plans. A policy that falls back to another needs no more than that
 * one: so the search is for the other, and two plans of the policy itself show what it does at the budget found and at
 * a unit less. */
#include "planc/colocate.h"
#include "planner/base/if_fits.h"
#include "planner/colocate/mix_plan.h"
#include "planner/least_budget.h"
#include "util/math.h"

enum { FEWEST = 2, OWN = 2 };    /* plans that a search takes, and that a policy makes which falls back */
#define ROOMY (INT64_C(1) << 52) /* a budget that is no matter, and that a plan can state */

/* Whose least budget is sought, of which memory. */
typedef struct mix_search {
  const pl_common *common;
  const planc_mix_policy *policy;
  planc_memory_kind memory;
} mix_search;

static planc_status find_beside(const mix_search *s, const planc_mix_share *shares, planc_least *least);
static planc_status take_over(const mix_search *s, const planc_mix_share *shares, int64_t most_less,
                              planc_least *least);
static planc_status find_least(const mix_search *s, const planc_mix_share *shares, planc_status failed, int64_t first,
                               int32_t most, planc_least *out);
static planc_status find_least_of_any(const mix_search *s, planc_status failed, planc_least *out);
static planc_status make_sure(const mix_search *s, planc_least *least);
static planc_status resolve_at(const mix_search *s, int64_t bytes, planc_mix_share *shares);
static bool same_iterations(int32_t n_jobs, const planc_mix_share *a, const planc_mix_share *b);

planc_status planc_mix_find_least_beside(const planc_mix *mix, const planc_mix_policy *policy,
                                         const planc_mix_share *shares, const planc_least *fall_back,
                                         planc_least *out) {
  pl_common common;
  const mix_search search = {&common, policy, PLANC_MEMORY_DEVICE};
  *out = (planc_least){.bytes = fall_back->bytes, .is_least = fall_back->is_least};
  planc_status status = pl_common_make(mix, &common);
  if (!status) status = find_beside(&search, shares, out);
  pl_common_free(&common);
  if (!status) return NULL;
  planc_plan_free(out->plan);
  out->plan = NULL;
  return status;
}

/* Where the iterations are open, those at the budget known. If a unit less has others, nothing is said of it. */
static planc_status find_beside(const mix_search *s, const planc_mix_share *shares, planc_least *least) {
  planc_mix_share there[PLANC_MIX_MAX_JOBS] = {{0}}, less[PLANC_MIX_MAX_JOBS] = {{0}};
  if (shares) return take_over(s, shares, PLANC_ALIGNMENT, least);
  bool any;
  PLANC_TRY(resolve_at(s, least->bytes, there));
  PLANC_TRY(pl_if_fits(resolve_at(s, least->bytes - PLANC_ALIGNMENT, less), &any));
  bool differ = any && !same_iterations(s->common->mix.n_jobs, there, less);
  return take_over(s, there, differ ? 0 : PLANC_ALIGNMENT, least);
}

planc_status planc_mix_find_least(const planc_mix *mix, const planc_mix_policy *policy, const planc_mix_share *shares,
                                  planc_memory_kind memory, planc_status failed, planc_least *out) {
  pl_common common;
  const mix_search search = {&common, policy, memory};
  *out = (planc_least){0};
  planc_status status = pl_common_make(mix, &common);
  if (!status && shares) status = find_least(&search, shares, failed, 0, PLANC_LEAST_PLANS, out);
  if (!status && !shares) status = find_least_of_any(&search, failed, out);
  pl_common_free(&common);
  if (!status) return NULL;
  planc_plan_free(out->plan);
  out->plan = NULL;
  return status;
}

/* A job's iterations follow from its time alone, which follows from the budget. So the least budget is sought for some
 * iterations until the mix has just these at the budget found. Where the plans left do not suffice for that, the last
 * budget found stands if the mix fits it with the iterations that it has there, or else a larger one that it fits so;
 * it is not called the least. */
static planc_status find_least_of_any(const mix_search *s, planc_status failed, planc_least *out) {
  planc_mix_share shares[PLANC_MIX_MAX_JOBS] = {{0}}, there[PLANC_MIX_MAX_JOBS] = {{0}};
  int32_t needed = s->policy->falls_back ? FEWEST + OWN : FEWEST;
  bool settled = false;
  PLANC_TRY(resolve_at(s, ROOMY, shares));
  while (!settled && PLANC_LEAST_PLANS - out->tried >= needed) {
    planc_least next;
    planc_status status = find_least(s, shares, failed, out->bytes, PLANC_LEAST_PLANS - out->tried, &next);
    if (out->plan && planc_status_code(status) == PLANC_INFEASIBLE) {
      planc_plan_free(next.plan);
      planc_status_free(status);
      break;
    }
    next.tried += out->tried;
    planc_plan_free(out->plan);
    *out = next;
    PLANC_TRY(status);
    PLANC_TRY(resolve_at(s, out->bytes, there));
    settled = same_iterations(s->common->mix.n_jobs, shares, there);
    if (!settled) out->is_least = false;
    for (int32_t j = 0; j < s->common->mix.n_jobs; j++) shares[j] = there[j];
    failed = NULL;
  }
  return settled ? NULL : make_sure(s, out);
}

/* Makes a plan with the iterations that the mix has at the budget, or at the first of some larger ones that it fits. */
static planc_status make_sure(const mix_search *s, planc_least *least) {
  enum { MOST = 8, PART = 4 };
  planc_mix_share there[PLANC_MIX_MAX_JOBS] = {{0}};
  planc_status status = NULL;
  for (int32_t k = 0; k < MOST; k++) {
    planc_status_free(status);
    planc_plan_free(least->plan);
    least->plan = NULL;
    PLANC_TRY(resolve_at(s, least->bytes, there));
    status = take_over(s, there, 0, least);
    if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
    planc_shortage shortage = planc_status_shortage(status);
    int64_t more = pl_add_saturate(least->bytes, least->bytes / PART);
    int64_t needed = shortage.memory == s->memory ? shortage.bytes : 0;
    least->bytes = pl_align_up(needed > more ? needed : more, PLANC_ALIGNMENT);
  }
  return status;
}

/* Tries a policy that falls back at the least budget of the other policy, and at a unit less if that is in question. */
static planc_status take_over(const mix_search *s, const planc_mix_share *shares, int64_t most_less,
                              planc_least *least) {
  const pl_mix_asked asked = {.common = s->common, .policy = s->policy, .shares = shares};
  planc_terms terms = s->common->mix.terms;
  planc_target at = s->common->all;
  at.terms = &terms;
  terms.first_will_do = true;
  least->is_least = false;
  for (int64_t less = 0; less <= most_less; less += PLANC_ALIGNMENT) {
    planc_plan *plan;
    terms.budgets[s->memory] = least->bytes - less;
    planc_status status = pl_mix_make(&asked, &at, &plan);
    least->tried++;
    if (less > 0 && planc_status_code(status) == PLANC_INFEASIBLE) {
      planc_status_free(status);
      least->is_least = true;
      return NULL;
    }
    PLANC_TRY(status);
    planc_plan_free(least->plan);
    least->plan = plan;
    least->bytes = terms.budgets[s->memory];
  }
  return NULL;
}

/* In at most so many plans, beginning with what is known of a failure, else with a budget; 0 = none is likely. */
static planc_status find_least(const mix_search *s, const planc_mix_share *shares, planc_status failed, int64_t first,
                               int32_t most, planc_least *out) {
  const char *falls_back = s->policy->falls_back;
  const planc_mix_policy *searched = falls_back ? planc_mix_policy_find(falls_back) : s->policy;
  const pl_mix_asked asked = {.common = s->common, .policy = searched, .shares = shares};
  pl_least_of of = {.make = pl_mix_make, .user = &asked, .name = s->policy->name, .most = most, .first = first};
  if (falls_back) of.most -= OWN;
  PLANC_TRY(pl_find_least(&s->common->all, &of, s->memory, failed, out));
  return falls_back ? take_over(s, shares, PLANC_ALIGNMENT, out) : NULL;
}

static planc_status resolve_at(const mix_search *s, int64_t bytes, planc_mix_share *shares) {
  planc_terms terms = s->common->mix.terms;
  planc_target at = s->common->all;
  at.terms = &terms;
  terms.budgets[s->memory] = bytes;
  return pl_mix_resolve(s->common, &at, shares);
}

static bool same_iterations(int32_t n_jobs, const planc_mix_share *a, const planc_mix_share *b) {
  for (int32_t j = 0; j < n_jobs; j++)
    if (a[j].iterations != b[j].iterations) return false;
  return true;
}
