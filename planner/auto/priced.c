/* `priced`: what leaves the device and when, and how it comes back, chosen together under the prices of the bound.
 *
 * The bound (planner/bound/) tells what a byte at every op and the time of the links is worth; a search (auto_search.h)
 * judges thousands of choices whole, in a model of the iteration that agrees with what the walk states to the byte.
 * What it finds is placed and simulated; where placement leaves gaps, the search goes on in that much less room, from
 * where it is. A search that is not to go on ends with the best that it has by then, placed and simulated all the
 * same. */
#include <inttypes.h>

#include "planner/auto/auto_search.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/base/if_fits.h"
#include "planner/choose/compact.h"
#include "planner/choose/early_order.h"
#include "planner/choose/sub_batch.h"
#include "planner/policies/policies.h"
#include "util/math.h"
#include "util/size.h"

/* How often the search goes on for less or more room, with how many changes of those of the first time. */
enum {
  TIMES = 12,
  FEW_TIMES = 4, /* where there are few changes in one */
  FEW = 1000,
  LATER = 8
};

/* How much is done at an effort, counted in what the search goes through (pl_rehearsal_work), in changes for each gap,
 * and in values of the bound. */
typedef struct effort_work {
  int64_t start, changes, of_candidate, bound, most_values;
} effort_work;

/* What is stated. */
typedef struct priced_choice {
  pl_absences absences;
  bool early;     /* in the order with updates as early as can be */
  int32_t n_gaps; /* that there is something to decide about in it */
} priced_choice;

typedef struct planning {
  const planc_evaluator *evaluator; /* of a problem that nobody watches: */
  const planc_watch *watch;         /* is looked at here alone */
  pl_arena arena;
  planc_candidate own; /* that is never stated: its trace, order and costs are looked at */
  pl_walk walk;        /* of it */
  const effort_work *work;
  int64_t room;
  bool has_room; /* for every op alone */
  pl_auto_gaps gaps;
  pl_auto_search search;
  planc_candidate *best; /* the caller's */
  priced_choice of_best;
  pl_walk_room room_of_best;
  int64_t best_ns; /* INT64_MAX: nothing fits yet */
  int64_t n_judged;
  int32_t n_simulated;
  bool early;          /* the order that is looked at */
  int64_t bound_ns[2]; /* by order: no plan in it is faster; INT64_MAX: it is not looked at */
} planning;

static int32_t effort_of(const planc_problem *problem);
static planc_status find_with_efforts(planning *p, int32_t effort);
static planc_status find_in_orders(planning *p, int32_t effort);
static planc_status find(planning *p, int32_t effort);
static planc_status set_up(planning *p);
static bool is_pointless(const planning *p);
static planc_status search(planning *p);
static planc_status receive(planning *p);
static planc_status finish(planning *p);
static planc_status explain(const planning *p);
static planc_status state_least_or_refuse(planning *p);

planc_status pl_policy_priced(const planc_evaluator *evaluator, planc_candidate *out) {
  planc_problem unwatched = *evaluator->problem;
  planc_evaluator own = *evaluator;
  unwatched.terms.watch = NULL;
  own.problem = &unwatched;
  own.target.terms = &unwatched.terms;
  planning p = {.evaluator = &own,
                .watch = evaluator->problem->terms.watch,
                .best = out,
                .best_ns = INT64_MAX,
                .bound_ns = {INT64_MAX, INT64_MAX}};
  int32_t effort = effort_of(&unwatched);
  planc_status status = find_with_efforts(&p, effort);
  if (!status && effort > 0 && p.has_room && p.best_ns == INT64_MAX && !is_pointless(&p) && pl_goes_on(p.watch))
    status = find_in_orders(&p, 0);
  if (!status && p.best_ns == INT64_MAX) status = pl_check_goes_on(p.watch);
  if (!status) status = p.best_ns < INT64_MAX ? finish(&p) : state_least_or_refuse(&p);
  pl_arena_free(&p.arena);
  planc_candidate_free(&p.own);
  return status;
}

/* What only has to fit is not looked for long; and where a longer search has found nothing the shortest is asked, so
 * that it fits as well. */
static int32_t effort_of(const planc_problem *problem) {
  int64_t level = problem->terms.settings.effort ? problem->terms.settings.effort : PLANC_STANDARD_effort;
  return problem->terms.first_will_do ? 0 : (int32_t)level - 1;
}

/* Behind the standard effort each beside the smaller ones: so it is never slower, and what is interrupted has what they
 * have found. Where there is storage the standard one is beside the least as well: that searches coarser, which is
 * faster on some networks whose data go so far away. */
static planc_status find_with_efforts(planning *p, int32_t effort) {
  enum { STANDARD = PLANC_STANDARD_effort - 1 };
  bool stores = p->evaluator->problem->terms.budgets[PLANC_MEMORY_STORAGE] != 0;
  int32_t first = stores ? 0 : STANDARD;
  for (int32_t k = effort < first ? effort : first; k <= effort && pl_goes_on(p->watch); k++)
    PLANC_TRY(find_in_orders(p, k));
  return NULL;
}

/* In the graph's order, and where others are allowed with updates as early as can be. */
static planc_status find_in_orders(planning *p, int32_t effort) {
  p->early = false;
  PLANC_TRY(find(p, effort));
  if (!p->evaluator->problem->terms.settings.reorder || !pl_goes_on(p->watch)) return NULL;
  p->early = true;
  return find(p, effort);
}

static planc_status find(planning *p, int32_t effort) {
  static const effort_work works[] = {{40000000, 4000000, 40, 500000, 200},
                                      {400000000, 40000000, 400, 1500000, 800},
                                      {400000000, 400000000, 4000, 15000000, 8000},
                                      {400000000, 4000000000, 40000, 15000000, 8000}};
  p->work = &works[effort];
  planc_candidate_free(&p->own);
  p->own = (planc_candidate){0};
  PLANC_TRY(set_up(p));
  if (is_pointless(p)) return NULL;
  int64_t before_ns = p->best_ns;
  planc_status status = search(p);
  p->n_judged += p->search.work / pl_rehearsal_work(&p->search.rehearsal);
  if (!status && p->best_ns < before_ns && pl_goes_on(p->watch)) status = receive(p);
  return status;
}

/* No plan is faster, in whatever order was looked at. */
static int64_t least_of(const planning *p) {
  return pl_min(p->bound_ns[0], p->bound_ns[1]);
}

/* No search is begun for what no plan can be. */
static bool is_pointless(const planning *p) {
  int64_t beat_ns = p->evaluator->problem->terms.beat_ns;
  return p->has_room && beat_ns > 0 && least_of(p) >= beat_ns;
}

static int64_t values_for(const planning *p, const pl_bound_model *model) {
  enum { LEAST = 64 };
  if (!p->has_room) return 1;
  return pl_clamp(p->work->bound / (model->n + model->n_gaps + 1), LEAST, p->work->most_values);
}

static planc_status start_walk(pl_walk *walk, const planc_problem *problem, bool early, pl_walk_room room,
                               planc_candidate *out) {
  PLANC_TRY(planc_candidate_rounds(problem, pl_sub_batch_asked(problem), out));
  if (early) {
    planc_order_free(out->order);
    out->order = NULL;
    PLANC_TRY(pl_early_order(out->trace, &out->order));
  }
  return pl_walk_start(walk, problem, room, out);
}

static planc_status set_up(planning *p) {
  const planc_problem *problem = p->evaluator->problem;
  pl_bound_model model;
  pl_bound_prices prices;
  pl_bound_found found;
  p->room = pl_max(pl_arena_room(&problem->terms, problem->job.profile), 0);
  const pl_walk_room room = {p->room, PL_RECEIVES_LATE};
  PLANC_TRY(start_walk(&p->walk, problem, p->early, room, &p->own));
  PLANC_TRY(pl_bound_model_make(&p->own, &problem->terms.settings, &p->arena, &model));
  p->has_room = pl_bound_least_bytes(&model, &(int32_t){0}) <= p->room;
  PLANC_TRY(pl_bound_ascend(&model, p->room, PL_BOUND_LEADS, values_for(p, &model), &p->arena, &prices, &found));
  int64_t *bound = &p->bound_ns[p->early];
  *bound = *bound == INT64_MAX ? found.ns : pl_max(*bound, found.ns);
  PLANC_TRY(pl_auto_gaps_make(&p->walk, &model, &p->arena, &p->gaps));
  PLANC_TRY(pl_auto_search_new(&p->gaps, &prices, &found, &p->arena, &p->search));
  p->search.watch = p->watch;
  return NULL;
}

/* --- Search and placement ----------------------------------------------------------------------------------------- */

static planc_status try_found(planning *p, bool *out_holds);

static void tell_done(const planning *p, int64_t done_ppm) {
  int64_t others_ns = p->evaluator->problem->terms.beat_ns, own_ns = p->best_ns;
  int64_t fastest_ns = others_ns > 0 && others_ns < own_ns ? others_ns : own_ns;
  pl_tell_asked(p->watch, "priced", done_ppm, fastest_ns < INT64_MAX ? fastest_ns : 0);
}

/* The room that the search is without: as much as placement wastes. */
typedef struct room_step {
  int64_t lacking, step, finest;
  int64_t too_much; /* nothing is found without so much */
  bool bracketed;   /* it has been as much as it can be at least once */
  int32_t missed;   /* how often in turn nothing was found */
} room_step;

/* More where what is found does not hold, twice as much each time until it is enough, or nothing is found; then by
 * halves. Where nothing is found it is too much only if that is so again, in a longer search. */
static void step_room(room_step *room, bool found, bool holds) {
  enum { TOO_MUCH = 2 };
  bool less = holds || !found;
  if (!found && ++room->missed < TOO_MUCH) return;
  if (!found) room->too_much = room->lacking;
  room->missed = 0;
  room->bracketed |= less;
  if (room->bracketed) room->step = pl_max(room->step / 2, room->finest);
  if (less)
    room->lacking = pl_max(room->lacking - room->step, 0);
  else if (room->lacking + room->step < room->too_much)
    room->lacking += room->step;
  if (!room->bracketed) room->step *= 2;
}

/* Once something holds in all of the room, it goes on there as long as that finds what is faster; where nothing has
 * been found that fits, for longer. Where much runs again a rehearsal takes many times its work: the search ends with
 * so many steps as well. */
static planc_status search(planning *p) {
  enum { FIRST_PART = 2000, LATER_PART = 8000, FINEST = 128, LONGER = 3, MOST_STEPS = 12 };
  pl_auto_search *s = &p->search;
  const planc_terms *terms = &p->evaluator->problem->terms;
  pl_auto_search_in(s, p->room);
  s->most_steps = s->rehearsal.steps + MOST_STEPS * p->work->changes + p->work->start;
  pl_auto_search_start(s, p->has_room ? p->work->start : 0);
  if (!p->has_room) return NULL;
  int64_t n_changes =
      pl_min(p->work->changes / pl_rehearsal_work(&s->rehearsal), p->work->of_candidate * s->n_candidates);
  int32_t times = n_changes < FEW ? FEW_TIMES : TIMES;
  s->most_steps = s->rehearsal.steps + MOST_STEPS * n_changes * pl_rehearsal_work(&s->rehearsal);
  room_step room = {.step = p->room / FINEST, .finest = p->room / FINEST, .too_much = INT64_MAX};
  int64_t held_ns = INT64_MAX;
  tell_done(p, 0);
  pl_auto_search_improve(s, n_changes, FIRST_PART);
  for (int32_t k = 0; k < times || (p->best_ns == INT64_MAX && k < LONGER * times); k++) {
    if (p->best_ns < INT64_MAX && terms->first_will_do) break;
    bool found = pl_auto_search_found(s), holds = false;
    if (found) PLANC_TRY(try_found(p, &holds));
    tell_done(p, (int64_t)(LATER + pl_min(k, times)) * PL_PPM / (LATER + times));
    bool holds_in_all = holds && room.lacking == 0;
    if ((holds_in_all && s->best_score.ns >= held_ns) || !pl_goes_on(p->watch) || s->rehearsal.steps >= s->most_steps)
      break;
    if (holds_in_all) held_ns = s->best_score.ns;
    step_room(&room, found, holds);
    pl_auto_search_without(s, pl_min(room.lacking, p->room));
    if (n_changes < FEW || !found) pl_auto_search_start(s, n_changes < FEW ? p->work->start : 0);
    pl_auto_search_improve(s, found ? n_changes / LATER : n_changes / 2, found ? LATER_PART : FIRST_PART);
  }
  return p->best_ns < INT64_MAX ? NULL : try_found(p, &(bool){false});
}

static planc_status make(const planc_problem *problem, const void *choice, pl_walk_room room, planc_candidate *out) {
  const priced_choice *of = choice;
  pl_walk walk;
  PLANC_TRY(start_walk(&walk, problem, of->early, room, out));
  out->room = pl_max(pl_arena_room(&problem->terms, problem->job.profile), 0);
  return pl_walk_absences(&walk, &of->absences);
}

static planc_status compact(const planning *p, planc_candidate *candidate, planc_taken *taken);

/* Places and simulates what the search has found, or else has least beyond the room, and keeps it if it is the fastest
 * that fits: that may fit all the same, with less workspace, or with moves. It holds if it is that and needs none, or
 * takes no more time than the search has it either: where memory is short ops may wait for the places that they are
 * given. */
static planc_status try_found(planning *p, bool *out_holds) {
  enum { NEAR = 50, FAR = 10 };
  int64_t found_ns = p->search.best_score.ns;
  const planc_evaluator *evaluator = p->evaluator;
  priced_choice choice = {.early = p->early, .n_gaps = p->gaps.n - p->gaps.n_fed};
  planc_candidate next = {0};
  planc_taken taken = {.fits = false};
  bool fits_host = true;
  PLANC_TRY(pl_auto_search_state(&p->search, &p->arena, &choice.absences));
  const pl_walk_room room = {pl_auto_search_found(&p->search) ? p->search.rehearsal.limit : PL_ROOM_NONE,
                             PL_RECEIVES_LATE};
  planc_status status = make(evaluator->problem, &choice, room, &next);
  p->n_simulated++;
  if (!status) status = evaluator->simulate(evaluator, &next, NULL, NULL, &taken);
  bool has_places = taken.fits;
  if (!status && !has_places && found_ns - found_ns / FAR < p->best_ns) status = compact(p, &next, &taken);
  if (!status && taken.fits) status = pl_if_fits(evaluator->hold_to_host(evaluator, &next), &fits_host);
  taken.fits = taken.fits && fits_host && planc_is_within(&evaluator->problem->terms, taken.peak_bytes);
  bool is_best = !status && taken.fits && taken.period_ns < p->best_ns;
  if (is_best) {
    planc_candidate_free(p->best);
    *p->best = next;
    next = (planc_candidate){0};
    p->of_best = choice;
    p->best_ns = taken.period_ns;
    p->room_of_best = room;
  }
  planc_candidate_free(&next);
  *out_holds = (is_best && has_places) || (taken.fits && taken.period_ns <= pl_add_saturate(found_ns, found_ns / NEAR));
  return status;
}

/* Places it with moves, if it has no places without. */
static planc_status compact(const planning *p, planc_candidate *candidate, planc_taken *taken) {
  const planc_evaluator *evaluator = p->evaluator;
  bool fits;
  PLANC_TRY(pl_compact(evaluator, p->room, candidate, &fits));
  return fits ? evaluator->simulate(evaluator, candidate, NULL, NULL, taken) : NULL;
}

/* What comes after, of another order or more effort, must be faster than that. */
static planc_status receive(planning *p) {
  PLANC_TRY(pl_walk_receive(p->evaluator, make, &p->of_best, p->best, &p->room_of_best));
  if (p->room_of_best.reception == PL_RECEIVES_LATE) return NULL;
  return p->evaluator->time(p->evaluator, p->best, &p->best_ns);
}

static planc_status finish(planning *p) {
  /* A bound beside the code of algorithms that this plan may not have is none. */
  if (p->evaluator->problem->terms.code_bytes == 0) p->best->bound_ns = p->bound_ns[p->of_best.early];
  return explain(p);
}

static planc_status explain_moves(const planning *p);

static planc_status explain(const planning *p) {
  int32_t n_copied = 0, n_dropped = 0;
  for (int32_t k = 0; k < p->of_best.absences.n; k++) {
    const pl_absence *absence = &p->of_best.absences.items[k];
    n_copied += absence->copy != PL_NO_COPY;
    n_dropped += absence->copy == PL_NO_COPY && absence->leave >= 0;
  }
  if (!pl_goes_on(p->watch)) PLANC_TRY(planc_candidate_explain(p->best, "the search was interrupted"));
  if (p->of_best.early) PLANC_TRY(planc_candidate_explain(p->best, "updates run early and other ops late"));
  PLANC_TRY(explain_moves(p));
  return planc_candidate_explain(p->best,
                                 "%" PRId32 " of %" PRId32 " gaps are spent on the host by a copy and %" PRId32
                                 " without one; the best of %" PRId64 " choices, %" PRId32 " of which were simulated",
                                 n_copied, p->of_best.n_gaps, n_dropped, p->n_judged, p->n_simulated);
}

static planc_status explain_moves(const planning *p) {
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
static planc_status state_least_or_refuse(planning *p) {
  if (p->has_room && is_pointless(p))
    return planc_error(PLANC_INFEASIBLE,
                       "no plan takes less than %" PRId64 " ns, but less than %" PRId64 " is asked for", least_of(p),
                       p->evaluator->problem->terms.beat_ns);
  priced_choice choice = {.early = p->early};
  PLANC_TRY(pl_auto_search_state(&p->search, &p->arena, &choice.absences));
  PLANC_TRY(make(p->evaluator->problem, &choice, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, p->best));
  p->best->room = 0;
  return NULL;
}
