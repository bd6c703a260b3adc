/* The search of policy priced (priced_search.h): what it finds is placed and simulated, and it goes on in less or more
 * room, as addresses want it. */
#include "planner/auto/priced_search.h"

#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/base/if_fits.h"
#include "planner/choose/compact.h"
#include "planner/choose/early_order.h"
#include "planner/choose/sub_batch.h"
#include "util/math.h"

/* How often the search goes on for less or more room, with how many changes of those of the first time. */
enum {
  TIMES = 12,
  FEW_TIMES = 4, /* where there are few changes in one */
  FEW = 1000,
  LATER = 8
};

static planc_status try_found(pl_priced *p, bool *out_holds);

static void tell_done(const pl_priced *p, int64_t done_ppm) {
  int64_t others_ns = p->evaluator->problem->terms.beat_ns, own_ns = p->best_ns;
  int64_t fastest_ns = others_ns > 0 && others_ns < own_ns ? others_ns : own_ns;
  pl_tell_asked(p->watch, "priced", done_ppm, fastest_ns < INT64_MAX ? fastest_ns : 0);
}

/* The room that the search is without: as much as placement wastes. */
typedef struct room_step {
  int64_t lacking, step, finest;
  int64_t too_much; /* nothing is found without so much */
  bool bracketed;   /* it has been as much as it can be at least once */
  int32_t n_more;   /* how often it has been more until then */
  int32_t missed;   /* how often in turn nothing was found */
} room_step;

/* More where what is found does not hold, a few times by as much and then by twice that, until it is enough, or nothing
 * is found; then by halves: what is found in much less room at once is slower. Where nothing is found it is too much
 * only if that is so again, in a longer search. */
static void step_room(room_step *room, bool found, bool holds) {
  enum { TOO_MUCH = 2, ALIKE = 3 };
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
  if (!room->bracketed && ++room->n_more % ALIKE == 0) room->step *= 2;
}

/* Once something holds in all of the room, it goes on there as long as that finds what is faster; where nothing has
 * been found that fits, for longer. Where much runs again a rehearsal takes many times its work: the search ends with
 * so many steps as well. */
planc_status pl_priced_search(pl_priced *p) {
  enum { FIRST_PART = 2000, LATER_PART = 8000, FINEST = 128, LONGER = 3, MOST_STEPS = 12 };
  pl_auto_search *s = &p->search;
  const planc_terms *terms = &p->evaluator->problem->terms;
  pl_auto_search_in(s, p->room, p->tails == PL_TAILS_FIRST);
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
  if (p->tails != PL_TAILS_NEVER) pl_auto_search_allow_tails(s, true);
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

planc_status pl_priced_make(const planc_problem *problem, const void *choice, pl_walk_room room, planc_candidate *out) {
  const pl_priced_choice *of = choice;
  pl_walk walk;
  PLANC_TRY(pl_priced_start_walk(&walk, problem, of->early, room, out));
  out->room = pl_max(pl_arena_room(&problem->terms, problem->job.profile), 0);
  return pl_walk_absences(&walk, &of->absences);
}

static planc_status compact(const pl_priced *p, planc_candidate *candidate, planc_taken *taken);

/* Places and simulates what the search has found, or else has least beyond the room, and keeps it if it is the fastest
 * that fits: that may fit all the same, with less workspace, or with moves. It holds if it is that and needs none, or
 * takes no more time than the search has it either: where memory is short ops may wait for the places that they are
 * given. */
static planc_status try_found(pl_priced *p, bool *out_holds) {
  enum { NEAR = 200, FAR = 10 };
  int64_t found_ns = p->search.best_score.ns;
  const planc_evaluator *evaluator = p->evaluator;
  pl_priced_choice choice = {.early = p->early, .n_gaps = p->gaps.n - p->gaps.n_fed - p->gaps.n_tails};
  planc_candidate next = {0};
  planc_taken taken = {.fits = false};
  pl_arena memory = {0};
  bool fits_host = true;
  planc_status status = pl_auto_search_state(&p->search, &memory, &choice.absences);
  if (status) {
    pl_arena_free(&memory);
    return status;
  }
  for (int32_t b = 0; b < p->gaps.trace->n_buffers; b++)
    choice.n_kept += choice.absences.until[b] > planc_order_last(p->gaps.order, b);
  const pl_walk_room room = {pl_auto_search_found(&p->search) ? p->search.rehearsal.limit : PL_ROOM_NONE,
                             PL_RECEIVES_LATE};
  status = pl_priced_make(evaluator->problem, &choice, room, &next);
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
    pl_arena_free(&p->of_best_memory);
    p->of_best_memory = memory;
    memory = (pl_arena){0};
    p->of_best = choice;
    p->budget_of_best = p->problem.terms.budgets[PLANC_MEMORY_DEVICE];
    p->best_ns = taken.period_ns;
    p->room_of_best = room;
  }
  planc_candidate_free(&next);
  pl_arena_free(&memory);
  *out_holds = (is_best && has_places) || (taken.fits && taken.period_ns <= pl_add_saturate(found_ns, found_ns / NEAR));
  return status;
}

/* Places it with moves, if it has no places without. */
static planc_status compact(const pl_priced *p, planc_candidate *candidate, planc_taken *taken) {
  const planc_evaluator *evaluator = p->evaluator;
  bool fits;
  PLANC_TRY(pl_compact(evaluator, p->room, candidate, &fits));
  return fits ? evaluator->simulate(evaluator, candidate, NULL, NULL, taken) : NULL;
}

planc_status pl_priced_receive(pl_priced *p) {
  PLANC_TRY(pl_walk_receive(p->evaluator, pl_priced_make, &p->of_best, p->best, &p->room_of_best));
  if (p->room_of_best.reception == PL_RECEIVES_LATE) return NULL;
  return p->evaluator->time(p->evaluator, p->best, &p->best_ns);
}

planc_status pl_priced_start_walk(pl_walk *walk, const planc_problem *problem, bool early, pl_walk_room room,
                                  planc_candidate *out) {
  PLANC_TRY(planc_candidate_rounds(problem, pl_sub_batch_asked(problem), out));
  if (early) {
    planc_order_free(out->order);
    out->order = NULL;
    PLANC_TRY(pl_early_order(out->trace, &out->order));
  }
  return pl_walk_start(walk, problem, room, out);
}
