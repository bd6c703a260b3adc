/* `priced`: what leaves the device and when, and how it comes back, chosen together under the prices of the bound.
 *
 * The bound (planner/bound/) tells what a byte at every op and the time of the links is worth; a search (auto_search.h)
 * judges thousands of choices whole, in a model of the iteration that agrees with what the walk states to the byte.
 * What it finds is placed and simulated; where placement leaves gaps, the search goes on in that much less room, from
 * where it is (priced_search.c). This file decides which searches are made, in which order of the ops and with how much
 * work. A search that is interrupted ends with the best that it has by then, placed and simulated all the same. */
#include <inttypes.h>
#include <string.h>

#include "planner/auto/priced_search.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/bound/bound_certify.h"
#include "planner/choose/sub_batch.h"
#include "planner/policies/policies.h"
#include "util/math.h"
#include "util/size.h"

/* By effort, each with ten times the changes of the one before, as planc(1) promises; the second, which is the standard
 * one, takes about a second for a thousand ops. What plans come to with these is in tests/bench/results/bound.txt and
 * growth.txt: whoever changes one runs tests/bench/bench_bound.py and bench_growth.py again. */
static const pl_priced_work works[] = {
    {.start = 40000000, .changes = 4000000, .of_candidate = 40, .bound = 500000, .most_values = 200, .enough = 400},
    {.start = 400000000,
     .changes = 40000000,
     .of_candidate = 400,
     .bound = 500000,
     .most_values = 200,
     .repeats = true,
     .enough = 400},
    {.start = 400000000,
     .changes = 400000000,
     .of_candidate = 4000,
     .bound = 15000000,
     .most_values = 8000,
     .enough = 4000},
    {.start = 400000000,
     .changes = 4000000000,
     .of_candidate = 40000,
     .bound = 15000000,
     .most_values = 8000,
     .enough = 4000}};
/* Of a short search beside one of an effort: as many changes as with the least, but hardly a look where to begin. */
static const pl_priced_work short_work = {
    .start = 2000000, .changes = 4000000, .of_candidate = 40, .bound = 200000, .most_values = 200, .enough = 400};
/* By effort: searches in which ways are fixed (pl_priced_search_fixed), each with the least effort's work. */
static const int32_t n_fixed[] = {0, 0, 40, 400};

/* How far the best is from the bound: one part in so many of its time, or more, is beyond it. */
enum {
  FAR = 10,        /* 1.11 times the bound: short searches may find what is faster */
  WORTH_FIXED = 20 /* 1.05 times the bound: with more effort, searches with ways fixed may find what is faster */
};

/* Whether what recomputes read may be kept for them: a search without has fewer gaps to decide about, and finds its way
 * sooner. */
enum { WITHOUT_TAILS = false, WITH_TAILS = true };

static int32_t effort_of(const planc_problem *problem);
static planc_status find_in_orders(pl_priced *p, int32_t effort);
static planc_status find_in_less(pl_priced *p);
static planc_status find(pl_priced *p, const pl_priced_work *work, bool tails);
static planc_status set_up(pl_priced *p);
static bool is_pointless(const pl_priced *p);
static planc_status finish(pl_priced *p);
static planc_status explain(pl_priced *p);
static planc_status state_least_or_refuse(pl_priced *p);

planc_status pl_policy_priced(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_evaluator own = *evaluator;
  pl_priced p = {.problem = *evaluator->problem,
                 .evaluator = &own,
                 .watch = evaluator->problem->terms.watch,
                 .best = {.ns = INT64_MAX},
                 .bounds = {{.ns = INT64_MAX}, {.ns = INT64_MAX}}};
  p.problem.terms.watch = NULL;
  own.problem = &p.problem;
  own.target.terms = &p.problem.terms;
  int32_t effort = effort_of(&p.problem);
  planc_status status = find_in_orders(&p, effort);
  if (!status && p.best.ns == INT64_MAX) status = pl_check_goes_on(p.watch);
  if (!status) status = p.best.ns < INT64_MAX ? finish(&p) : state_least_or_refuse(&p);
  *out = p.best.candidate;
  pl_arena_free(&p.best.memory);
  pl_arena_free(&p.arena);
  planc_candidate_free(&p.own);
  return status;
}

/* What only has to fit is not looked for long. */
static int32_t effort_of(const planc_problem *problem) {
  int64_t level = problem->terms.settings.effort ? problem->terms.settings.effort : PLANC_STANDARD_effort;
  return problem->terms.first_will_do ? 0 : (int32_t)level - 1;
}

/* --- Orders, efforts and budgets ---------------------------------------------------------------------------------- */

static planc_status find_with_efforts(pl_priced *p, int32_t effort);
static planc_status find_early(pl_priced *p, int32_t effort);

/* In the graph's order, and where others are allowed with updates as early as can be. */
static planc_status find_in_orders(pl_priced *p, int32_t effort) {
  const planc_terms *terms = &p->problem.terms;
  PLANC_TRY(find_with_efforts(p, effort));
  bool will_do = terms->first_will_do && p->best.ns < INT64_MAX;
  return terms->settings.reorder && !will_do && pl_goes_on(p->watch) ? find_early(p, effort) : NULL;
}

/* Neither search goes by what the other has found: so none finds what is slower for there being two, or for more
 * effort. */
static planc_status find_early(pl_priced *p, int32_t effort) {
  planc_terms *terms = &p->problem.terms;
  const int64_t beat_ns = terms->beat_ns;
  pl_priced_best given = p->best;
  if (given.ns < INT64_MAX && (beat_ns == 0 || given.ns < beat_ns)) terms->beat_ns = given.ns;
  p->early = true;
  p->best = (pl_priced_best){.ns = INT64_MAX};
  planc_status status = find_with_efforts(p, effort);
  terms->beat_ns = beat_ns;
  pl_priced_best found = p->best;
  bool is_faster = !status && found.ns < given.ns;
  p->best = is_faster ? found : given;
  pl_priced_best_free(is_faster ? &given : &found);
  return status;
}

static planc_status find_with_effort(pl_priced *p, int32_t effort);
static planc_status find_anything(pl_priced *p, int32_t effort);
static planc_status find_with_fixed(pl_priced *p, int32_t n_searches);
static bool is_farther(const pl_priced *p, int32_t parts);
static bool is_far(const pl_priced *p);
static bool may_find(const pl_priced *p);

/* Behind the standard effort each beside the smaller ones: so it is never slower, and what is interrupted has what they
 * have found. */
static planc_status find_with_efforts(pl_priced *p, int32_t effort) {
  enum { STANDARD = PLANC_STANDARD_effort - 1 };
  int32_t first = effort < STANDARD ? effort : STANDARD;
  PLANC_TRY(find_with_effort(p, first));
  for (int32_t k = first + 1; k <= effort && pl_goes_on(p->watch); k++) {
    PLANC_TRY(find(p, &works[k], WITH_TAILS));
    if (may_find(p) && is_far(p)) PLANC_TRY(find(p, &works[k], WITHOUT_TAILS));
    if (may_find(p)) PLANC_TRY(find_with_fixed(p, n_fixed[k]));
  }
  return NULL;
}

/* More than one part in so many of the best time is beyond what no plan is faster than. */
static bool is_farther(const pl_priced *p, int32_t parts) {
  return pl_priced_is_beyond(p, p->best.ns, parts);
}

/* Data may go as far as storage. */
static bool stores(const pl_priced *p) {
  return p->problem.terms.budgets[PLANC_MEMORY_STORAGE] != 0;
}

/* Whether another search may find much that those before have not. */
static bool is_far(const pl_priced *p) {
  return is_farther(p, FAR) || stores(p);
}

static bool may_find(const pl_priced *p) {
  return p->has_room && !is_pointless(p) && pl_goes_on(p->watch);
}

/* Where what is found is far from what no plan is faster than, or data go as far as storage, short searches may find
 * what is faster, as they look coarser: with all of the memory, with less, and without tails. Where it is very far
 * they find nothing faster. */
static planc_status find_with_effort(pl_priced *p, int32_t effort) {
  PLANC_TRY(find(p, &works[effort], WITH_TAILS));
  if (!may_find(p)) return NULL;
  if (p->best.ns == INT64_MAX) return find_anything(p, effort);
  if (effort == 0 || !is_far(p)) return NULL;
  if (is_farther(p, PL_PRICED_VERY_FAR) && !stores(p)) return NULL;
  PLANC_TRY(find(p, &short_work, WITHOUT_TAILS));
  PLANC_TRY(find_in_less(p));
  return pl_goes_on(p->watch) ? find(p, &short_work, WITH_TAILS) : NULL;
}

/* What fits with less effort fits with more. */
static planc_status find_anything(pl_priced *p, int32_t effort) {
  PLANC_TRY(find(p, &works[0], WITHOUT_TAILS));
  for (int32_t k = 0; k < effort && p->best.ns == INT64_MAX && pl_goes_on(p->watch); k++)
    PLANC_TRY(find(p, &works[k], WITH_TAILS));
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

/* More memory is no reason to be slower: what a short search finds for a smaller budget may be faster than what has
 * been found for this one. A budget in which no plan can be faster is the last that is looked at. */
static planc_status find_in_less(pl_priced *p) {
  enum { BUDGETS = 2 };
  planc_terms *terms = &p->problem.terms;
  const int64_t budget = terms->budgets[PLANC_MEMORY_DEVICE], beat_ns = terms->beat_ns;
  pl_priced_bound bounds[PL_PRICED_ORDERS];
  memcpy(bounds, p->bounds, sizeof bounds);
  planc_status status = NULL;
  for (int32_t k = 0; !status && k < BUDGETS && pl_goes_on(p->watch); k++) {
    int64_t *less = &terms->budgets[PLANC_MEMORY_DEVICE];
    *less = canonical_below(*less);
    terms->beat_ns = beat_ns > 0 ? pl_min(beat_ns, p->best.ns) : p->best.ns;
    for (int order = 0; order < PL_PRICED_ORDERS; order++) p->bounds[order].ns = INT64_MAX;
    status = find(p, &short_work, WITHOUT_TAILS);
    if (!p->has_room || is_pointless(p)) break;
  }
  terms->budgets[PLANC_MEMORY_DEVICE] = budget;
  terms->beat_ns = beat_ns;
  memcpy(p->bounds, bounds, sizeof bounds);
  return status;
}

/* A search changes few ways at a time, and when a large tensor leaves or comes back many others do so with it: what
 * only many changes together make faster is found when the first of them is fixed. */
static planc_status find_with_fixed(pl_priced *p, int32_t n_searches) {
  if (p->best.ns == INT64_MAX || !is_farther(p, WORTH_FIXED)) return NULL;
  p->n_fixed = n_searches;
  planc_status status = find(p, &works[0], WITH_TAILS);
  p->n_fixed = 0;
  return status;
}

/* --- One search, from the bound on -------------------------------------------------------------------------------- */

static planc_status find(pl_priced *p, const pl_priced_work *work, bool tails) {
  p->work = work;
  p->tails = tails;
  planc_candidate_free(&p->own);
  p->own = (planc_candidate){0};
  PLANC_TRY(set_up(p));
  if (is_pointless(p)) return NULL;
  int64_t before_ns = p->best.ns;
  planc_status status = pl_priced_search(p);
  if (!status && p->n_fixed > 0) status = pl_priced_search_fixed(p);
  p->n_judged += p->search.work / pl_rehearsal_work(&p->search.rehearsal);
  if (!status && p->best.ns < before_ns && pl_goes_on(p->watch)) status = pl_priced_receive(p);
  return status;
}

/* No search is begun for what no plan can be. */
static bool is_pointless(const pl_priced *p) {
  int64_t beat_ns = p->evaluator->problem->terms.beat_ns;
  return p->has_room && beat_ns > 0 && pl_priced_least_ns(p) >= beat_ns;
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
  PLANC_TRY(pl_bound_model_make(&p->own, &problem->terms.settings, stores(p), &p->arena, &model));
  p->has_room = pl_bound_least_bytes(&model, &(int32_t){0}) <= p->room;
  PLANC_TRY(certify(p, &model));
  PLANC_TRY(pl_bound_ascend(&model, p->room, values_for(p, &model), &p->arena, &prices, &found));
  PLANC_TRY(pl_auto_gaps_make(&p->walk, &model, p->tails, &p->arena, &p->gaps));
  PLANC_TRY(pl_auto_search_new(&p->gaps, &prices, &found, &p->arena, &p->search));
  PLANC_TRY(PL_NEW(&p->arena, &p->begun, p->gaps.n));
  p->search.watch = p->watch;
  p->search.shares = p->bounds[p->early].shares;
  return NULL;
}

/* Once for each order and budget. The cuts of the bound take much memory, which is free again when it is found. */
static planc_status certify(pl_priced *p, const pl_bound_model *model) {
  enum { VALUES = 40 };
  pl_priced_bound *bound = &p->bounds[p->early];
  pl_bound_shares *shares;
  pl_bound_prices prices;
  pl_bound_found found;
  pl_arena arena = {0};
  if (bound->ns < INT64_MAX) return NULL;
  PLANC_TRY(PL_NEW(&p->arena, &shares, model->n_gaps));
  planc_status status = pl_bound_certify(model, p->room, p->has_room ? VALUES : 1, &arena, &prices, &found, shares);
  pl_arena_free(&arena);
  if (status) return status;
  *bound = (pl_priced_bound){found.ns, shares};
  return NULL;
}

/* --- What comes out ----------------------------------------------------------------------------------------------- */

static planc_status finish(pl_priced *p) {
  /* A bound beside the code of algorithms that this plan may not have is none. */
  if (p->evaluator->problem->terms.code_bytes == 0) p->best.candidate.bound_ns = p->bounds[p->best.choice.early].ns;
  return explain(p);
}

static planc_status explain_moves(pl_priced *p);

static planc_status explain(pl_priced *p) {
  const pl_priced_choice *choice = &p->best.choice;
  planc_candidate *out = &p->best.candidate;
  char text[PL_SIZE_TEXT];
  int32_t n_copied = 0, n_dropped = 0;
  for (int32_t k = 0; k < choice->absences.n; k++) {
    const pl_absence *absence = &choice->absences.items[k];
    n_copied += absence->copy != PL_NO_COPY;
    n_dropped += absence->copy == PL_NO_COPY && absence->leave >= 0;
  }
  if (!pl_goes_on(p->watch)) PLANC_TRY(planc_candidate_explain(out, "the search was interrupted"));
  if (choice->early) PLANC_TRY(planc_candidate_explain(out, "updates run early and other ops late"));
  if (p->best.budget < p->problem.terms.budgets[PLANC_MEMORY_DEVICE])
    PLANC_TRY(planc_candidate_explain(out, "found for %s, a smaller budget", pl_size_format(p->best.budget, text)));
  PLANC_TRY(explain_moves(p));
  if (choice->n_kept > 0)
    PLANC_TRY(planc_candidate_explain(out, "%" PRId32 " tensors are kept for what is computed again from them",
                                      choice->n_kept));
  return planc_candidate_explain(out,
                                 "%" PRId32 " of %" PRId32 " gaps between uses are spent off the device, %" PRId32
                                 " of them behind a copy out; the best of %" PRId64 " choices, %" PRId32
                                 " of them simulated",
                                 n_copied + n_dropped, choice->n_gaps, n_copied, p->n_judged, p->n_simulated);
}

static planc_status explain_moves(pl_priced *p) {
  const planc_schedule *s = p->best.candidate.schedule;
  int64_t n = 0, bytes = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (!planc_schedule_copies(s, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_DEVICE)) continue;
    bytes += planc_schedule_bytes(s, command->residency);
    n++;
  }
  if (n == 0) return NULL;
  char text[PL_SIZE_TEXT];
  return planc_candidate_explain(&p->best.candidate,
                                 "%" PRId64 " moves of %s in all on the device make room for what finds none", n,
                                 pl_size_format(bytes, text));
}

/* Where nothing fits: of the last search the choice that has least beyond the room, so that its plan tells what it
 * needs and what binds. */
static planc_status state_least_or_refuse(pl_priced *p) {
  if (p->has_room && is_pointless(p))
    return planc_error(PLANC_INFEASIBLE,
                       "no plan takes less than %" PRId64 " ns, but less than %" PRId64 " is asked for",
                       pl_priced_least_ns(p), p->evaluator->problem->terms.beat_ns);
  pl_priced_choice choice = {.early = p->early};
  PLANC_TRY(pl_auto_search_state(&p->search, &p->arena, &choice.absences));
  PLANC_TRY(pl_priced_make(p->evaluator->problem, &choice, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE},
                           &p->best.candidate));
  p->best.candidate.room = 0;
  return NULL;
}
