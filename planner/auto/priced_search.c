/* The search of policy priced (priced_search.h): what it finds is placed and simulated, and it goes on in less or more
 * room, as addresses want it. */
#include "planner/auto/priced_search.h"

#include <string.h>

#include "planner/auto/auto_anneal.h"
#include "planner/auto/auto_start.h"
#include "planner/auto/room_steps.h"
#include "planner/base/code.h"
#include "planner/base/goes_on.h"
#include "planner/base/if_fits.h"
#include "planner/choose/compact.h"
#include "planner/choose/early_order.h"
#include "planner/choose/sub_batch.h"
#include "util/math.h"

/* How often the search goes on in less or more room behind its first changes, and with how many. */
enum {
  TIMES = 12,
  LONGER = 3,    /* while nothing fits, so many times as often; */
  MOST_IDLE = 5, /* once something does, no more when so many in turn have found nothing that is faster */
  LATER = 8,     /* one in so many of the first changes is made again each time */
  FEW = 1000,    /* with fewer first changes, as for large graphs, where a search begins matters most: */
  FEW_TIMES = 4  /* each time it begins anew, which takes long, so that it does less often */
};
/* A change may lose at first that part of the ideal time (pl_auto_search_improve); less where a search goes on from
 * what it has found, so that it does not go far from there. */
enum { FIRST_PART = 2000, LATER_PART = 8000 };
enum {
  FORCED = 2,           /* one in so many of the first changes is made beside gaps that are forced into other ways, */
  FORCED_CHANGES = 200, /* so many beside each; without so many all are made without */
  FORCED_PART = 500     /* in place of FIRST_PART: forcing a gap loses more at first */
};
/* A time is little longer than another one by one part in so many at most. */
enum { LITTLE = 50 };
/* Where much runs again a rehearsal takes many times its work: a search ends with so many steps of its work as well. */
enum { MOST_STEPS = 12 };

int64_t pl_priced_least_ns(const pl_priced *p) {
  return pl_min(p->bounds[false].ns, p->bounds[true].ns);
}

bool pl_priced_is_beyond(const pl_priced *p, int64_t ns, int32_t parts) {
  return ns - ns / parts > pl_priced_least_ns(p);
}

static int64_t changes_for(const pl_auto_search *s, int64_t work);
static planc_status search_rooms(pl_priced *p, int64_t n_changes);
static planc_status try_found(pl_priced *p, bool *out_holds);

planc_status pl_priced_search(pl_priced *p) {
  pl_auto_search *s = &p->search;
  const pl_priced_work *work = p->work;
  pl_auto_search_in(s, p->room, p->tails);
  s->most_steps = s->rehearsal.steps + MOST_STEPS * work->changes + work->start;
  pl_auto_search_start(s, p->has_room ? work->start : 0);
  if (!p->has_room) return NULL;
  const int64_t of_one = pl_rehearsal_work(&s->rehearsal);
  const int64_t n_changes = pl_min(changes_for(s, work->changes), work->of_candidate * s->n_candidates);
  s->most_steps = s->rehearsal.steps + MOST_STEPS * n_changes * of_one;
  PLANC_TRY(search_rooms(p, n_changes));
  return p->best.ns < INT64_MAX ? NULL : try_found(p, &(bool){false});
}

/* So many as the work is enough for if each goes through everything; but more where it goes through little, as it does
 * as long as few tensors leave. */
static int64_t changes_for(const pl_auto_search *s, int64_t work) {
  enum { SPARSE = 4 /* part of the work that those are made for */, MOST = 3 };
  const int64_t n = work / pl_rehearsal_work(&s->rehearsal), sparse = work / SPARSE / pl_max(s->rehearsal.work, 1);
  return pl_clamp(sparse, n, MOST * n);
}

static void tell_done(const pl_priced *p, int64_t done_ppm) {
  int64_t others_ns = p->evaluator->problem->terms.beat_ns, own_ns = p->best.ns;
  int64_t fastest_ns = others_ns > 0 && others_ns < own_ns ? others_ns : own_ns;
  pl_tell_asked(p->watch, "priced", done_ppm, fastest_ns < INT64_MAX ? fastest_ns : 0);
}

static void make_first_changes(pl_priced *p, int64_t n_changes);
static bool may_be_faster(const pl_priced *p);
static bool is_enough(const pl_priced *p, int64_t least_ns);
static bool is_promising(const pl_priced *p, int64_t least_ns);

/* Once something holds in all of the room, it goes on there as long as that finds what is faster. Where nothing has for
 * long, what is needed at least may leave less than a step: they become as fine as addresses are. It begins anew as
 * long as it has found nothing; what fits in a little less room is mostly near what has been found in more. */
static planc_status search_rooms(pl_priced *p, int64_t n_changes) {
  pl_auto_search *s = &p->search;
  const bool begins_anew = n_changes < FEW, first_will_do = p->evaluator->problem->terms.first_will_do;
  const int32_t times = begins_anew ? FEW_TIMES : TIMES;
  pl_room_steps room = pl_room_steps_in(p->room);
  uint8_t *kept;
  bool found = false, has_found = false;
  int64_t held_ns = INT64_MAX;  /* as the search has it, of the last that has held in all of the room */
  int64_t least_ns = INT64_MAX; /* of all that it has had */
  int32_t idle = 0;             /* rounds since one has found what is faster */
  PLANC_TRY(PL_NEW(&p->arena, &kept, p->gaps.n));
  tell_done(p, 0);
  make_first_changes(p, n_changes);
  if (pl_auto_search_found(s) && !may_be_faster(p)) return NULL;
  for (int32_t k = 0; k < times || (p->best.ns == INT64_MAX && k < LONGER * times); k++) {
    bool holds = false;
    const int64_t before_ns = p->best.ns;
    if (p->best.ns < INT64_MAX && (first_will_do || idle == MOST_IDLE)) break;
    if (k > 0) {
      pl_auto_search_without(s, pl_min(room.lacking, p->room));
      if (room.goes_back) memcpy(s->ways, kept, (size_t)p->gaps.n);
      if (begins_anew || !has_found) pl_auto_search_start(s, begins_anew ? p->work->start : 0);
      pl_auto_search_improve(s, found ? n_changes / LATER : n_changes / 2, found ? LATER_PART : FIRST_PART);
    }
    found = pl_auto_search_found(s);
    has_found |= found;
    const bool is_tried = found && may_be_faster(p);
    if (is_tried) PLANC_TRY(try_found(p, &holds));
    if (found) least_ns = pl_min(least_ns, s->best_score.ns);
    idle = p->best.ns < before_ns ? 0 : idle + !is_promising(p, least_ns);
    tell_done(p, (int64_t)(LATER + pl_min(k, times)) * PL_PPM / (LATER + times));
    bool holds_in_all = holds && room.lacking == 0;
    bool is_no_faster = holds_in_all && s->best_score.ns >= held_ns;
    if (is_no_faster || (holds && is_enough(p, least_ns))) break;
    if (!pl_goes_on(p->watch) || s->rehearsal.steps >= s->most_steps) break;
    if (holds_in_all) held_ns = s->best_score.ns;
    if (k >= times) room.finest = PLANC_ALIGNMENT;
    const pl_room_outcome outcome = {.ns = found ? s->best_score.ns : INT64_MAX,
                                     .is_tried = is_tried,
                                     .holds = holds,
                                     .beyond = is_tried ? p->beyond : 0};
    pl_room_steps_on(&room, &outcome);
    if (room.keeps) memcpy(kept, s->best, (size_t)p->gaps.n);
  }
  return NULL;
}

/* Where what they find is very far from what no plan is faster than, memory is short nearly everywhere, and what is
 * found differs much by chance: so they are made several times. */
static void make_first_changes(pl_priced *p, int64_t n_changes) {
  enum { AGAIN = 4 };
  pl_auto_search *s = &p->search;
  const int64_t n_forced = n_changes / FORCED / FORCED_CHANGES;
  const int64_t n_first = n_forced > 0 ? n_changes - n_changes / FORCED : n_changes;
  memcpy(p->begun, s->ways, (size_t)p->gaps.n);
  pl_auto_search_improve_often(s, 1, n_first, FIRST_PART);
  if (p->work->repeats && pl_priced_is_beyond(p, s->best_score.ns, PL_PRICED_VERY_FAR)) {
    memcpy(s->ways, p->begun, (size_t)p->gaps.n);
    pl_auto_search_improve_often(s, AGAIN, n_first / 2, FIRST_PART);
  }
  pl_auto_search_force(s, n_forced, FORCED_CHANGES, FORCED_PART);
}

/* What the search has found, by its own time of it, which a plan may be a little faster than. */
static bool may_be_faster(const pl_priced *p) {
  const int64_t found_ns = p->search.best_score.ns;
  return found_ns - found_ns / LITTLE < p->best.ns;
}

/* Near what the search has had at best, and what no plan is faster than: more rounds find hardly more. */
static bool is_enough(const pl_priced *p, int64_t least_ns) {
  return p->best.ns - p->best.ns / p->work->enough <= least_ns && !pl_priced_is_beyond(p, p->best.ns, LITTLE);
}

/* The search has had what is much faster than what has held so far. */
static bool is_promising(const pl_priced *p, int64_t least_ns) {
  return pl_is_much_slower(p->best.ns, least_ns);
}

planc_status pl_priced_make(const planc_problem *problem, const void *choice, pl_walk_room room, planc_candidate *out) {
  const pl_priced_choice *of = choice;
  pl_walk walk;
  PLANC_TRY(pl_priced_start_walk(&walk, problem, of->early, room, out));
  out->room = pl_max(pl_arena_room(&problem->terms, problem->job.profile), 0);
  return pl_walk_absences(&walk, &of->absences);
}

static planc_status state_found(pl_priced *p, pl_priced_best *out);
static planc_status judge(pl_priced *p, pl_priced_best *next);
static planc_status compact(const pl_priced *p, planc_candidate *candidate, planc_taken *taken);

/* States what the search has found, or else has least beyond the room, and keeps it if it is the fastest that fits. It
 * holds if it is that and takes little more time than the search has it, or hardly more whatever it is: ops may wait
 * for the places that they are given. */
static planc_status try_found(pl_priced *p, bool *out_holds) {
  enum { HARDLY = 200 }; /* one part in so many of that time */
  const int64_t found_ns = p->search.best_score.ns;
  pl_priced_best next = {.budget = p->problem.terms.budgets[PLANC_MEMORY_DEVICE], .ns = INT64_MAX};
  planc_status status = state_found(p, &next);
  p->n_simulated++;
  if (!status) status = judge(p, &next);
  bool is_best = !status && next.ns < p->best.ns;
  bool is_little = next.ns <= pl_add_saturate(found_ns, found_ns / LITTLE);
  bool is_hardly = next.ns < INT64_MAX && next.ns <= pl_add_saturate(found_ns, found_ns / HARDLY);
  pl_priced_best slower = is_best ? p->best : next;
  if (is_best) p->best = next;
  pl_priced_best_free(&slower);
  *out_holds = (is_best && is_little) || is_hardly;
  return status;
}

void pl_priced_best_free(pl_priced_best *best) {
  planc_candidate_free(&best->candidate);
  pl_arena_free(&best->memory);
}

static planc_status state_found(pl_priced *p, pl_priced_best *out) {
  pl_priced_choice *choice = &out->choice;
  bool found = pl_auto_search_found(&p->search);
  *choice = (pl_priced_choice){.early = p->early, .n_gaps = p->gaps.n - p->gaps.n_fed - p->gaps.n_tails};
  out->room = (pl_walk_room){found ? p->search.rehearsal.limit : PL_ROOM_NONE, PL_RECEIVES_LATE};
  PLANC_TRY(pl_auto_search_state(&p->search, &out->memory, &choice->absences));
  for (int32_t b = 0; b < p->gaps.trace->n_buffers; b++)
    choice->n_kept += choice->absences.until[b] > planc_order_last(p->gaps.order, b);
  return pl_priced_make(p->evaluator->problem, choice, out->room, &out->candidate);
}

/* Places and simulates it, with moves where it has no places without, unless it can be hardly faster so: finding moves
 * takes long. The time stays INT64_MAX where it does not fit. */
static planc_status judge(pl_priced *p, pl_priced_best *next) {
  enum { HARDLY = 100 };
  const planc_evaluator *evaluator = p->evaluator;
  const int64_t page_bytes = pl_arena_chunk(&evaluator->problem->terms);
  planc_taken taken = {.fits = false};
  bool fits_host = true;
  PLANC_TRY(evaluator->simulate(evaluator, &next->candidate, NULL, NULL, &taken));
  p->beyond =
      page_bytes > 0 ? pl_align_up(pl_max(taken.peak_bytes[PLANC_MEMORY_DEVICE] - next->budget, 0), page_bytes) : 0;
  if (!taken.fits && p->search.best_score.ns < p->best.ns - p->best.ns / HARDLY)
    PLANC_TRY(compact(p, &next->candidate, &taken));
  if (taken.fits) PLANC_TRY(pl_if_fits(evaluator->hold_to_host(evaluator, &next->candidate), &fits_host));
  if (taken.fits && fits_host && planc_is_within(&evaluator->problem->terms, taken.peak_bytes))
    next->ns = taken.period_ns;
  return NULL;
}

static planc_status compact(const pl_priced *p, planc_candidate *candidate, planc_taken *taken) {
  const planc_evaluator *evaluator = p->evaluator;
  bool fits;
  PLANC_TRY(pl_compact(evaluator, p->room, candidate, &fits));
  return fits ? evaluator->simulate(evaluator, candidate, NULL, NULL, taken) : NULL;
}

planc_status pl_priced_receive(pl_priced *p) {
  PLANC_TRY(pl_walk_receive(p->evaluator, pl_priced_make, &p->best.choice, &p->best.candidate, &p->best.room));
  if (p->best.room.reception == PL_RECEIVES_LATE) return NULL;
  return p->evaluator->time(p->evaluator, &p->best.candidate, &p->best.ns);
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
