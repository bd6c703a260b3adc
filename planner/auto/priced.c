/* `priced`: what leaves the device and when, and how it comes back, chosen together under the prices of the bound.
 *
 * The bound (planner/bound/) tells what a byte at every op and the time of the links is worth; a search (auto_search.h)
 * judges thousands of choices whole, in a model of the iteration that agrees with what the walk states to the byte.
 * What it finds is placed and simulated; where placement leaves gaps, the search goes on in that much less room, from
 * where it is. A search that is not to go on ends with the best that it has by then, placed and simulated all the
 * same. */
#include <inttypes.h>

#include "planner/auto/priced_search.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/bound/bound_certify.h"
#include "planner/choose/sub_batch.h"
#include "planner/policies/policies.h"
#include "util/math.h"
#include "util/size.h"

/* By effort; and of a short search beside one of an effort, which hardly looks where to begin. */
static const pl_priced_work works[] = {{40000000, 4000000, 40, 500000, 200},
                                       {400000000, 40000000, 400, 1500000, 800},
                                       {400000000, 400000000, 4000, 15000000, 8000},
                                       {400000000, 4000000000, 40000, 15000000, 8000}};
static const pl_priced_work short_work = {2000000, 4000000, 40, 200000, 200};
/* By effort: searches in which a way is fixed, each with the least work. */
static const int32_t n_fixed[] = {0, 0, 40, 400};

static int32_t effort_of(const planc_problem *problem);
static planc_status find_in_orders(pl_priced *p, int32_t effort);
static planc_status find_in_less(pl_priced *p);
static planc_status find(pl_priced *p, const pl_priced_work *work, pl_priced_tails tails);
static planc_status set_up(pl_priced *p);
static int64_t least_of(const pl_priced *p);
static bool is_pointless(const pl_priced *p);
static planc_status finish(pl_priced *p);
static planc_status explain(const pl_priced *p);
static planc_status state_least_or_refuse(pl_priced *p);

planc_status pl_policy_priced(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_evaluator own = *evaluator;
  pl_priced p = {.problem = *evaluator->problem,
                 .evaluator = &own,
                 .watch = evaluator->problem->terms.watch,
                 .best = out,
                 .best_ns = INT64_MAX,
                 .bound_ns = {INT64_MAX, INT64_MAX}};
  p.problem.terms.watch = NULL;
  own.problem = &p.problem;
  own.target.terms = &p.problem.terms;
  int32_t effort = effort_of(&p.problem);
  planc_status status = find_in_orders(&p, effort);
  if (!status && p.best_ns == INT64_MAX) status = pl_check_goes_on(p.watch);
  if (!status) status = p.best_ns < INT64_MAX ? finish(&p) : state_least_or_refuse(&p);
  pl_arena_free(&p.of_best_memory);
  pl_arena_free(&p.arena);
  planc_candidate_free(&p.own);
  return status;
}

/* What only has to fit is not looked for long. */
static int32_t effort_of(const planc_problem *problem) {
  int64_t level = problem->terms.settings.effort ? problem->terms.settings.effort : PLANC_STANDARD_effort;
  return problem->terms.first_will_do ? 0 : (int32_t)level - 1;
}

static planc_status find_with_efforts(pl_priced *p, int32_t effort);

static planc_status find_early(pl_priced *p, int32_t effort);

/* In the graph's order, and where others are allowed with updates as early as can be. */
static planc_status find_in_orders(pl_priced *p, int32_t effort) {
  const planc_terms *terms = &p->problem.terms;
  PLANC_TRY(find_with_efforts(p, effort));
  bool will_do = terms->first_will_do && p->best_ns < INT64_MAX;
  return terms->settings.reorder && !will_do && pl_goes_on(p->watch) ? find_early(p, effort) : NULL;
}

/* Neither search goes by what the other has found: so none finds what is slower for there being two, or for more
 * effort. */
static planc_status find_early(pl_priced *p, int32_t effort) {
  pl_priced given = *p;
  planc_terms *terms = &p->problem.terms;
  planc_candidate found = {0};
  if (terms->beat_ns == 0 || given.best_ns < terms->beat_ns)
    terms->beat_ns = given.best_ns < INT64_MAX ? given.best_ns : 0;
  p->early = true;
  p->best = &found;
  p->best_ns = INT64_MAX;
  p->of_best_memory = (pl_arena){0};
  planc_status status = find_with_efforts(p, effort);
  terms->beat_ns = given.problem.terms.beat_ns;
  p->best = given.best;
  if (!status && p->best_ns < given.best_ns) {
    planc_candidate_free(p->best);
    *p->best = found;
    pl_arena_free(&given.of_best_memory);
    return NULL;
  }
  planc_candidate_free(&found);
  pl_arena_free(&p->of_best_memory);
  p->of_best_memory = given.of_best_memory;
  p->best_ns = given.best_ns;
  p->of_best = given.of_best;
  p->budget_of_best = given.budget_of_best;
  p->room_of_best = given.room_of_best;
  return status;
}

static planc_status find_with_effort(pl_priced *p, int32_t effort);
static planc_status find_anything(pl_priced *p, int32_t effort);
static planc_status find_with_fixed(pl_priced *p, int32_t n_searches);
static bool is_farther(const pl_priced *p, int32_t part);
static bool is_far(const pl_priced *p);
static bool may_find(const pl_priced *p);

/* Behind the standard effort each beside the smaller ones: so it is never slower, and what is interrupted has what they
 * have found. */
static planc_status find_with_efforts(pl_priced *p, int32_t effort) {
  enum { STANDARD = PLANC_STANDARD_effort - 1 };
  int32_t first = effort < STANDARD ? effort : STANDARD;
  PLANC_TRY(find_with_effort(p, first));
  for (int32_t k = first + 1; k <= effort && pl_goes_on(p->watch); k++) {
    PLANC_TRY(find(p, &works[k], PL_TAILS_NEVER));
    if (may_find(p) && is_far(p)) PLANC_TRY(find(p, &works[k], PL_TAILS_FIRST));
    if (may_find(p)) PLANC_TRY(find_with_fixed(p, n_fixed[k]));
  }
  return NULL;
}

/* A part of the best time, at least, is beyond what no plan is faster than. */
static bool is_farther(const pl_priced *p, int32_t part) {
  return p->best_ns - p->best_ns / part > least_of(p);
}

static bool stores(const pl_priced *p) {
  return p->problem.terms.budgets[PLANC_MEMORY_STORAGE] != 0;
}

/* Whether a search may find much that this has not. */
static bool is_far(const pl_priced *p) {
  enum { FAR = 10 };
  return is_farther(p, FAR) || stores(p);
}

static bool may_find(const pl_priced *p) {
  return p->has_room && !is_pointless(p) && pl_goes_on(p->watch);
}

/* What recomputes read may be kept for them, but in what comes first. Where what is found is far from what no plan is
 * faster than, or data go as far as storage, short searches may find what is faster, as they look coarser: with all of
 * the memory, with less, and with what recomputes read kept from the beginning. Where it is very far memory is short
 * nearly everywhere, and only a whole search finds what is faster, with that kept from the beginning. */
static planc_status find_with_effort(pl_priced *p, int32_t effort) {
  enum { VERY_FAR = 6 };
  PLANC_TRY(find(p, &works[effort], PL_TAILS_LATER));
  if (!may_find(p)) return NULL;
  if (p->best_ns == INT64_MAX) return find_anything(p, effort);
  if (effort == 0 || !is_far(p)) return NULL;
  if (is_farther(p, VERY_FAR) && !stores(p)) return find(p, &works[effort], PL_TAILS_FIRST);
  PLANC_TRY(find(p, &short_work, PL_TAILS_NEVER));
  PLANC_TRY(find_in_less(p));
  return pl_goes_on(p->watch) ? find(p, &short_work, PL_TAILS_FIRST) : NULL;
}

/* What fits with less effort fits with more. */
static planc_status find_anything(pl_priced *p, int32_t effort) {
  if (effort > 0) PLANC_TRY(find(p, &works[0], PL_TAILS_NEVER));
  for (int32_t k = 0; k <= effort && p->best_ns == INT64_MAX && pl_goes_on(p->watch); k++)
    PLANC_TRY(find(p, &works[k], PL_TAILS_FIRST));
  return NULL;
}

/* The largest of the canonical budgets below another: sixteen to each power of two. */
static int64_t canonical_below(int64_t budget) {
  enum { FROM_ONE_TO_THE_NEXT = 16 };
  int64_t power = 1;
  while (power <= (budget - 1) / 2) power *= 2;
  int64_t step = pl_max(power / FROM_ONE_TO_THE_NEXT, 1);
  return (budget - 1) / step * step;
}

/* More memory is no reason to be slower: what a short search finds for less may be faster than what this one has found.
 * Less than a budget in which no plan can be faster nobody looks at. */
static planc_status find_in_less(pl_priced *p) {
  enum { BUDGETS = 2 };
  planc_terms *terms = &p->problem.terms;
  const int64_t budget = terms->budgets[PLANC_MEMORY_DEVICE], beat_ns = terms->beat_ns;
  const int64_t bound_ns[] = {p->bound_ns[0], p->bound_ns[1]};
  const pl_bound_shares *const shares[] = {p->shares[0], p->shares[1]};
  planc_status status = NULL;
  for (int32_t k = 0; !status && k < BUDGETS && pl_goes_on(p->watch); k++) {
    int64_t *less = &terms->budgets[PLANC_MEMORY_DEVICE];
    *less = canonical_below(*less);
    terms->beat_ns = beat_ns > 0 ? pl_min(beat_ns, p->best_ns) : p->best_ns;
    p->bound_ns[0] = p->bound_ns[1] = INT64_MAX;
    status = find(p, &short_work, PL_TAILS_NEVER);
    if (!p->has_room || is_pointless(p)) break;
  }
  terms->budgets[PLANC_MEMORY_DEVICE] = budget;
  terms->beat_ns = beat_ns;
  for (int k = 0; k < 2; k++) {
    p->bound_ns[k] = bound_ns[k];
    p->shares[k] = shares[k];
  }
  return status;
}

/* A search changes few ways at a time, and large tensors have others leave or come back with them: what only many
 * changes together make faster it finds when the first of them is given. */
static planc_status find_with_fixed(pl_priced *p, int32_t n_searches) {
  enum { FAR = 20 };
  if (p->best_ns == INT64_MAX || !is_farther(p, FAR)) return NULL;
  p->n_fixed = n_searches;
  planc_status status = find(p, &works[0], PL_TAILS_LATER);
  p->n_fixed = 0;
  return status;
}

static planc_status find(pl_priced *p, const pl_priced_work *work, pl_priced_tails tails) {
  p->work = work;
  p->tails = tails;
  planc_candidate_free(&p->own);
  p->own = (planc_candidate){0};
  PLANC_TRY(set_up(p));
  if (is_pointless(p)) return NULL;
  int64_t before_ns = p->best_ns;
  planc_status status = pl_priced_search(p);
  if (!status && p->n_fixed > 0) status = pl_priced_search_fixed(p);
  p->n_judged += p->search.work / pl_rehearsal_work(&p->search.rehearsal);
  if (!status && p->best_ns < before_ns && pl_goes_on(p->watch)) status = pl_priced_receive(p);
  return status;
}

/* No plan is faster, in whatever order was looked at. */
static int64_t least_of(const pl_priced *p) {
  return pl_min(p->bound_ns[0], p->bound_ns[1]);
}

/* No search is begun for what no plan can be. */
static bool is_pointless(const pl_priced *p) {
  int64_t beat_ns = p->evaluator->problem->terms.beat_ns;
  return p->has_room && beat_ns > 0 && least_of(p) >= beat_ns;
}

static int64_t values_for(const pl_priced *p, const pl_bound_model *model) {
  enum { LEAST = 64 };
  if (!p->has_room) return 1;
  return pl_clamp(p->work->bound / (model->n + model->n_gaps + 1), LEAST, p->work->most_values);
}

static planc_status certify(pl_priced *p, const pl_bound_model *model);

static planc_status set_up(pl_priced *p) {
  const planc_problem *problem = p->evaluator->problem;
  pl_bound_model model;
  pl_bound_prices prices;
  pl_bound_found found;
  p->room = pl_max(pl_arena_room(&problem->terms, problem->job.profile), 0);
  const pl_walk_room room = {p->room, PL_RECEIVES_LATE};
  PLANC_TRY(pl_priced_start_walk(&p->walk, problem, p->early, room, &p->own));
  PLANC_TRY(pl_bound_model_make(&p->own, &problem->terms.settings, &p->arena, &model));
  p->has_room = pl_bound_least_bytes(&model, &(int32_t){0}) <= p->room;
  PLANC_TRY(certify(p, &model));
  PLANC_TRY(pl_bound_ascend(&model, p->room, values_for(p, &model), &p->arena, &prices, &found));
  PLANC_TRY(pl_auto_gaps_make(&p->walk, &model, p->tails != PL_TAILS_NEVER, &p->arena, &p->gaps));
  PLANC_TRY(pl_auto_search_new(&p->gaps, &prices, &found, &p->arena, &p->search));
  p->search.watch = p->watch;
  p->search.shares = p->shares[p->early];
  return NULL;
}

/* Once for each order and budget. Cuts take much memory, which nobody needs any more then. */
static planc_status certify(pl_priced *p, const pl_bound_model *model) {
  enum { VALUES = 40 };
  int64_t *bound_ns = &p->bound_ns[p->early];
  pl_bound_shares *shares;
  pl_bound_prices prices;
  pl_bound_found found;
  pl_arena arena = {0};
  if (*bound_ns < INT64_MAX) return NULL;
  PLANC_TRY(PL_NEW(&p->arena, &shares, model->n_gaps));
  planc_status status = pl_bound_certify(model, p->room, p->has_room ? VALUES : 1, &arena, &prices, &found, shares);
  pl_arena_free(&arena);
  if (status) return status;
  *bound_ns = found.ns;
  p->shares[p->early] = shares;
  return NULL;
}

static planc_status finish(pl_priced *p) {
  /* A bound beside the code of algorithms that this plan may not have is none. */
  if (p->evaluator->problem->terms.code_bytes == 0) p->best->bound_ns = p->bound_ns[p->of_best.early];
  return explain(p);
}

static planc_status explain_moves(const pl_priced *p);

static planc_status explain(const pl_priced *p) {
  char text[PL_SIZE_TEXT];
  int32_t n_copied = 0, n_dropped = 0;
  for (int32_t k = 0; k < p->of_best.absences.n; k++) {
    const pl_absence *absence = &p->of_best.absences.items[k];
    n_copied += absence->copy != PL_NO_COPY;
    n_dropped += absence->copy == PL_NO_COPY && absence->leave >= 0;
  }
  if (!pl_goes_on(p->watch)) PLANC_TRY(planc_candidate_explain(p->best, "the search was interrupted"));
  if (p->of_best.early) PLANC_TRY(planc_candidate_explain(p->best, "updates run early and other ops late"));
  if (p->budget_of_best < p->problem.terms.budgets[PLANC_MEMORY_DEVICE])
    PLANC_TRY(
        planc_candidate_explain(p->best, "found for %s, a smaller budget", pl_size_format(p->budget_of_best, text)));
  PLANC_TRY(explain_moves(p));
  if (p->of_best.n_kept > 0)
    PLANC_TRY(planc_candidate_explain(p->best, "%" PRId32 " tensors are kept for what is computed again from them",
                                      p->of_best.n_kept));
  return planc_candidate_explain(p->best,
                                 "%" PRId32 " of %" PRId32 " gaps are spent on the host by a copy and %" PRId32
                                 " without one; the best of %" PRId64 " choices, %" PRId32 " of which were simulated",
                                 n_copied, p->of_best.n_gaps, n_dropped, p->n_judged, p->n_simulated);
}

static planc_status explain_moves(const pl_priced *p) {
  const planc_schedule *s = p->best->schedule;
  int64_t n = 0, bytes = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (!planc_schedule_copies(s, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_DEVICE)) continue;
    bytes += planc_schedule_bytes(s, command->residency);
    n++;
  }
  if (n == 0) return NULL;
  char text[PL_SIZE_TEXT];
  return planc_candidate_explain(p->best, "%" PRId64 " moves of %s in all on the device make room for what finds none",
                                 n, pl_size_format(bytes, text));
}

/* What has least beyond the room, whose plan tells what it needs and what binds. */
static planc_status state_least_or_refuse(pl_priced *p) {
  if (p->has_room && is_pointless(p))
    return planc_error(PLANC_INFEASIBLE,
                       "no plan takes less than %" PRId64 " ns, but less than %" PRId64 " is asked for", least_of(p),
                       p->evaluator->problem->terms.beat_ns);
  pl_priced_choice choice = {.early = p->early};
  PLANC_TRY(pl_auto_search_state(&p->search, &p->arena, &choice.absences));
  PLANC_TRY(pl_priced_make(p->evaluator->problem, &choice, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, p->best));
  p->best->room = 0;
  return NULL;
}
