/* The least budget that a policy can meet (policy.h), counted in whole plans.
 *
 * A plan that does not fit tells what it needs, and a policy that makes none often what no plan can do without: so most
 * are settled by three plans, one for no memory at all, one for what that asked for, and one that shows that a unit
 * less fails. A policy that knows nothing gets more and more; one whose plans follow the budget is closed in on by
 * bisection, from the peak of the smallest that fits. The search ends with the last plan that it may make, which tries
 * what the smallest one takes: that may fit although the middle does not. Where plans fill whatever there is it ends
 * with one that is near what fails.
 *
 * A host or storage whose failure tells nothing of it, as where the device is what is then too small, is first tried
 * without limit, and then with twice as much again and again, from what that plan takes on: a policy may count more
 * than its plan takes in the end. No limit is never what is found.
 *
 * A policy that chooses asks for the smallest budget that any of its policies asks for. That one may need more than it
 * asks for, so the search has settled only when a unit less has failed with all of them. */
#include "planner/least_budget.h"

#include "plan/memories.h"
#include "planner/base/code.h"
#include "planner/memory/allocator.h"
#include "planner/memory/placement_cache.h"
#include "util/math.h"

enum { FIRST_GROWTH = 16, WORTH_IT = 16 }; /* parts of a budget; of an interval */
#define NO_LIMIT PL_EXACT_MAX

typedef struct search {
  planc_target target;
  planc_terms terms; /* its own: with the budget that is tried */
  const pl_least_of *of;
  planc_memory_kind memory;
  int64_t floor;  /* what is reserved: all budgets tried are whole units above it */
  int64_t asked;  /* the target's own */
  int64_t fails;  /* the largest budget known to fail */
  int64_t step;   /* budgets that differ by less, above what fails, are the same to the policy */
  int64_t growth; /* the part of a budget that comes on top where what was asked for did not do */
  bool misled;    /* a budget that was asked for has failed */
  bool fills;     /* a unit less than a plan that fills its budget did as well */
  planc_least *found;
} search;

static planc_status run(search *s, planc_status failed);
static int64_t begin(search *s, planc_status failed);
static bool is_settled(const search *s);
static planc_status try_budget(search *s, int64_t budget, int64_t *out_next);
static bool is_near(const search *s);
static bool is_its_peak_next(const search *s);
static planc_status try_its_peak(search *s);
static void keep(search *s, int64_t budget, planc_plan *plan);
static int64_t next_below(const search *s);
static int64_t next_above(search *s, planc_shortage shortage);
static int64_t taken(const search *s, const planc_plan *plan);

planc_status pl_find_least(const planc_target *target, const pl_least_of *of, planc_memory_kind memory,
                           planc_status failed, planc_least *out) {
  bool device = memory == PLANC_MEMORY_DEVICE;
  *out = (planc_least){0};
  search s = {.target = *target, .terms = *target->terms, .of = of, .memory = memory, .growth = FIRST_GROWTH};
  s.target.terms = &s.terms;
  s.found = out;
  s.terms.first_will_do = true;
  s.floor = device ? planc_profile_device(target->profile)->reserved_bytes : 0;
  s.asked = target->terms->budgets[memory];
  int64_t chunk_bytes = pl_arena_chunk(target->terms);
  s.step = device && chunk_bytes > 0 ? chunk_bytes : PLANC_ALIGNMENT;
  if (s.asked > INT64_MAX / 2) s.asked = INT64_MAX / 2;
  s.fails = s.floor - PLANC_ALIGNMENT;
  planc_placement_cache *own = NULL;
  planc_status status = target->terms->placement_cache ? NULL : pl_placement_cache_make(&own);
  if (own) s.terms.placement_cache = own;
  if (!status) status = run(&s, failed);
  pl_placement_cache_free(own);
  if (status) {
    planc_plan_free(out->plan);
    out->plan = NULL;
  }
  return status;
}

static planc_status run(search *s, planc_status failed) {
  int64_t next = begin(s, failed), most = s->of->most > 0 ? s->of->most : PLANC_LEAST_PLANS;
  while (s->found->tried < most - 1 && !is_settled(s) && !is_near(s)) PLANC_TRY(try_budget(s, next, &next));
  if (is_near(s) && !is_settled(s)) return NULL;
  if (s->found->tried < most && is_its_peak_next(s)) {
    PLANC_TRY(try_its_peak(s));
  } else if (!is_settled(s)) {
    PLANC_TRY(try_budget(s, next, &next));
  }
  s->found->is_least = is_settled(s);
  if (s->found->plan && s->found->bytes != NO_LIMIT) return NULL;
  return planc_error(PLANC_INFEASIBLE, "%d budgets were tried, policy %s fits none", (int)s->found->tried, s->of->name);
}

/* Tries a budget and finds the next one. */
static planc_status try_budget(search *s, int64_t budget, int64_t *out_next) {
  planc_plan *plan;
  s->found->tried++;
  s->terms.budgets[s->memory] = budget;
  planc_status status = s->of->make(s->of->user, &s->target, &plan);
  if (!status) {
    s->fills |= s->of->fills && s->found->plan && budget == s->found->bytes - PLANC_ALIGNMENT;
    keep(s, budget, plan);
    *out_next = next_below(s);
    return NULL;
  }
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  s->fails = budget;
  *out_next = next_above(s, planc_status_shortage(status));
  planc_status_free(status);
  return NULL;
}

/* Tries what the plan found takes, which may be less than what fails. */
static planc_status try_its_peak(search *s) {
  int64_t peak = taken(s, s->found->plan), fails = s->fails, next;
  PLANC_TRY(try_budget(s, peak, &next));
  bool fits = s->found->bytes == peak;
  if (fits && peak <= fails) s->fails = s->floor - PLANC_ALIGNMENT;
  if (!fits && peak < fails) s->fails = fails;
  return NULL;
}

static int64_t whole_units(const search *s, int64_t bytes) {
  return bytes <= s->floor ? s->floor : s->floor + pl_align_up(bytes - s->floor, PLANC_ALIGNMENT);
}

/* What the plan takes of the memory that is searched. */
static int64_t taken(const search *s, const planc_plan *plan) {
  return whole_units(s, pl_plan_peak(plan, s->memory));
}

/* A budget between what fails and what fits. */
static int64_t middle(const search *s) {
  if (s->found->bytes != NO_LIMIT)
    return s->fails + (s->found->bytes - s->fails) / 2 / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  int64_t peak = taken(s, s->found->plan), low = peak > s->fails ? peak : s->fails;
  return pl_add_saturate(low, low > 0 ? low : PLANC_ALIGNMENT);
}

/* More than what fails by a part that doubles each time. */
static int64_t more(search *s) {
  int64_t part = pl_align_up((s->fails - s->floor) / s->growth + 1, s->step);
  if (s->growth > 1) s->growth /= 2;
  return pl_add_saturate(s->fails, part);
}

static int64_t twice(const search *s) {
  return whole_units(s, pl_add_saturate(s->fails, pl_max(s->fails - s->floor, PLANC_ALIGNMENT)));
}

/* The budget to try after one that failed. Where nothing fits yet, that is what the failure asks for, or more once that
 * has not been enough, and the target's own where nothing is known; else halfway to what fits. A policy whose plans
 * fill what there is may then ask for far too much: not more than twice what fails is tried. */
static int64_t next_above(search *s, planc_shortage shortage) {
  bool known = shortage.memory == s->memory && shortage.bytes > s->fails;
  int64_t asked = known ? whole_units(s, shortage.bytes) : 0;
  if (s->found->plan) return known && asked < s->found->bytes ? asked : middle(s);
  if (s->fails <= s->floor && !known && s->asked > s->floor) return s->asked;
  if (s->of->fills && s->misled && known) return pl_min(asked, twice(s));
  if (!known && s->memory != PLANC_MEMORY_DEVICE && shortage.memory != s->memory) return NO_LIMIT;
  int64_t grown = s->misled || !known ? more(s) : 0;
  s->misled = true;
  return asked > grown ? asked : grown;
}

/* The budget to try after one that fits: a plan that fills it may be the smallest, then a unit less fails; one that
 * needs much less is tried there; one that follows the budget, or fills whatever there is, is halved down to what
 * fails. */
static int64_t next_below(const search *s) {
  int64_t budget = s->found->bytes, peak = taken(s, s->found->plan), between = middle(s);
  if (peak == budget && !s->fills) return budget - PLANC_ALIGNMENT;
  bool much = budget - peak >= (budget - s->fails) / WORTH_IT;
  int64_t next = much && peak > s->fails ? peak : between;
  return next > s->fails ? next : s->fails + PLANC_ALIGNMENT;
}

static void keep(search *s, int64_t budget, planc_plan *plan) {
  planc_plan_free(s->found->plan);
  s->found->plan = plan;
  s->found->bytes = budget;
}

static bool is_settled(const search *s) {
  return s->found->plan && s->found->bytes - s->fails <= PLANC_ALIGNMENT;
}

/* A search for each of the last bytes is more than it is worth where plans take whatever there is. */
static bool is_near(const search *s) {
  enum { NEAR = 256 };
  return s->fills && s->found->plan && s->found->bytes - s->fails <= (s->found->bytes - s->floor) / NEAR;
}

/* What is known from a failure at the target's own budget, and the budget to begin with. */
static int64_t begin(search *s, planc_status failed) {
  planc_shortage shortage = planc_status_shortage(failed);
  bool tells = shortage.memory == s->memory;
  if (!failed && s->of->first > s->floor) return whole_units(s, s->of->first);
  if (!failed || (!tells && s->memory == PLANC_MEMORY_DEVICE)) return s->floor;
  if (s->asked > s->fails) s->fails = whole_units(s, s->asked + 1) - PLANC_ALIGNMENT;
  return tells ? next_above(s, shortage) : NO_LIMIT;
}

/* Whether that is worth the last plan: where it may fit although more does not, or another one would settle nothing. */
static bool is_its_peak_next(const search *s) {
  if (!s->found->plan || s->found->bytes == NO_LIMIT) return false;
  int64_t peak = taken(s, s->found->plan);
  if (is_settled(s)) return peak < s->fails;
  return peak < s->found->bytes && s->found->bytes - s->fails > INT64_C(2) * PLANC_ALIGNMENT;
}

typedef struct by_policy {
  const planc_problem *problem;
  const planc_policy *policy;
} by_policy;

static planc_status make_by_policy(const void *user, const planc_target *target, planc_plan **out) {
  const by_policy *by = user;
  const planc_problem problem = pl_problem_on(target, by->problem);
  return planc_make_plan(&problem, by->policy, out);
}

static bool searches_longer(const planc_problem *problem, const planc_policy *policy);

planc_status planc_find_least(const planc_problem *problem, const planc_policy *policy, planc_memory_kind memory,
                              planc_status failed, planc_least *out) {
  const by_policy by = {problem, policy};
  const planc_target target = planc_target_of(problem);
  pl_least_of of = {.make = make_by_policy, .user = &by, .name = policy->name};
  of.fills = (policy->supports & PLANC_POLICY_SEARCHES) != 0;
  PLANC_TRY(pl_find_least(&target, &of, memory, failed, out));
  out->is_least &= !searches_longer(problem, policy);
  return NULL;
}

/* Its plans are made by a short search, and a longer one may find one that needs less. */
static bool searches_longer(const planc_problem *problem, const planc_policy *policy) {
  return (policy->supports & PLANC_POLICY_SEARCHES) && problem->terms.settings.effort != 1;
}

/* --- One memory beside the others --------------------------------------------------------------------------------- */

/* The device with a host without limit. */
static planc_problem with_any_host(const planc_problem *problem) {
  planc_problem at = *problem;
  at.terms.budgets[PLANC_MEMORY_HOST] = -1;
  at.terms.budgets[PLANC_MEMORY_STORAGE] = 0;
  at.terms.first_will_do = true;
  return at;
}

planc_status planc_find_least_device(const planc_problem *problem, const planc_policy *policy, planc_status failed,
                                     planc_least *out) {
  planc_problem at = with_any_host(problem);
  planc_status same = problem->terms.budgets[PLANC_MEMORY_HOST] < 0 ? failed : NULL;
  return planc_find_least(&at, policy, PLANC_MEMORY_DEVICE, same, out);
}

/* Whether the policy has a plan; *out_failed, owned, says why not. */
static planc_status try_plan(const planc_problem *problem, const planc_policy *policy, planc_status *out_failed) {
  planc_plan *plan;
  planc_status status = planc_make_plan(problem, policy, &plan);
  *out_failed = NULL;
  if (!status) planc_plan_free(plan);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  *out_failed = status;
  return NULL;
}

/* What a policy has no room for on the host stays on the device: that its plan does not fit there is the host's matter
 * where one without limit would do. */
planc_status planc_find_lacking(const planc_problem *problem, const planc_policy *policy, planc_status failed,
                                planc_memory_kind *out_memory, planc_least *out) {
  planc_problem at = with_any_host(problem);
  planc_status without;
  *out = (planc_least){0};
  *out_memory = planc_status_shortage(failed).memory;
  if (*out_memory != PLANC_MEMORY_DEVICE) return planc_find_least(problem, policy, *out_memory, failed, out);
  if (problem->terms.budgets[PLANC_MEMORY_HOST] < 0) return planc_find_least_device(problem, policy, failed, out);
  PLANC_TRY(try_plan(&at, policy, &without));
  if (!without) {
    *out_memory = PLANC_MEMORY_HOST;
    return planc_find_least(problem, policy, PLANC_MEMORY_HOST, failed, out);
  }
  planc_status status = planc_find_least(&at, policy, PLANC_MEMORY_DEVICE, without, out);
  planc_status_free(without);
  return status;
}

/* Where more is enough (-1: not known), no more than that. */
static planc_status find_host(const planc_problem *problem, const planc_policy *policy, planc_status failed,
                              int64_t enough, int64_t *out_bytes) {
  planc_least least;
  planc_status status = planc_find_least(problem, policy, PLANC_MEMORY_HOST, failed, &least);
  bool none = planc_status_code(status) == PLANC_INFEASIBLE;
  if (status && (enough < 0 || !none)) return status;
  *out_bytes = none || (enough >= 0 && enough < least.bytes) ? enough : least.bytes;
  planc_plan_free(least.plan);
  planc_status_free(status);
  return NULL;
}

/* With storage a smaller host may do than what a plan takes without. */
planc_status planc_find_host_beside(const planc_problem *problem, const planc_policy *policy, const planc_plan *plan,
                                    int64_t *out_bytes) {
  planc_problem at = *problem, more;
  planc_status failed, still = NULL;
  at.terms.first_will_do = true;
  more = at;
  more.terms.budgets[PLANC_MEMORY_HOST] = plan->predicted.peak_bytes[PLANC_MEMORY_HOST];
  *out_bytes = at.terms.budgets[PLANC_MEMORY_HOST];
  PLANC_TRY(try_plan(&at, policy, &failed));
  if (!failed) return NULL;
  bool is_more = more.terms.budgets[PLANC_MEMORY_HOST] > at.terms.budgets[PLANC_MEMORY_HOST];
  planc_status status = is_more ? try_plan(&more, policy, &still) : NULL;
  int64_t enough = is_more && !still ? more.terms.budgets[PLANC_MEMORY_HOST] : -1;
  *out_bytes = more.terms.budgets[PLANC_MEMORY_HOST];
  if (!status && (enough < 0 || problem->terms.budgets[PLANC_MEMORY_STORAGE] != 0))
    status = find_host(still ? &more : &at, policy, still ? still : failed, enough, out_bytes);
  planc_status_free(failed);
  planc_status_free(still);
  return status;
}
