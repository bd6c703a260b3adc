/* Which of the candidates that a walk can make is taken (walk.h): by room, reception and time. */
#include <assert.h>

#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/choose/room_search.h"
#include "planner/choose/walk.h"

enum { NOT_KNOWN = -1 };

/* The fastest of all that was tried and fits. */
typedef struct choice {
  const planc_evaluator *evaluator;
  pl_walk_maker maker;
  int32_t trying;        /* the attempt that is tried now */
  planc_candidate *best; /* the caller's */
  pl_walk_found found;   /* what `best` was made with */
  bool fits;             /* there is one */
  int64_t ns;            /* of its period, or NOT_KNOWN */
} choice;

static choice choice_of(const planc_evaluator *evaluator, pl_walk_maker maker, planc_candidate *best);
static planc_status tell_algorithms(int32_t attempt, planc_candidate *out);

planc_status pl_walk_fit(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                         planc_candidate *out) {
  const pl_walk_attempt attempts[] = {
      {.context = context, .room = PL_ROOM_UNLIMITED},
      {.context = context, .room = pl_arena_room(&evaluator->problem->terms, evaluator->problem->job.profile)}};
  pl_walk_found found;
  PLANC_TRY(pl_walk_first(evaluator, maker, attempts, 2, out, &found));
  return tell_algorithms(found.number, out);
}

static planc_status tell_algorithms(int32_t attempt, planc_candidate *out) {
  static const char *const algorithms[] = {
      "every op has its fastest algorithm", "ops have the fastest algorithms that find room beside the data",
      "ops have their baseline algorithms, as no choice of faster ones that was tried fits"};
  assert(attempt >= 0 && attempt <= 2);
  return planc_candidate_explain(out, "%s", algorithms[attempt]);
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

static bool receives(const planc_problem *problem);
static planc_status try_attempt(choice *c, const pl_walk_attempt *attempt, bool *out_fits_late);
static planc_status make_without_room(choice *c, const void *context);
static planc_status live_without_room(const choice *c, const void *context, int64_t *out_bytes);

planc_status pl_walk_first(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempts,
                           int32_t n, planc_candidate *out, pl_walk_found *found) {
  const planc_terms *terms = &evaluator->problem->terms;
  bool compares = receives(evaluator->problem) && !terms->first_will_do;
  const pl_walk_attempt *first = NULL; /* that fits when it receives late */
  choice c = choice_of(evaluator, maker, out);
  for (c.trying = 0; c.trying < n && !(c.fits && terms->first_will_do); c.trying++) {
    const pl_walk_attempt *attempt = &attempts[c.trying];
    bool fits_late;
    if (first && (!compares || attempt->context != first->context)) break;
    PLANC_TRY(try_attempt(&c, attempt, &fits_late));
    if (fits_late && !first) first = attempt;
  }
  if (!c.fits) PLANC_TRY(make_without_room(&c, attempts[n - 1].context));
  *found = c.found;
  return NULL;
}

/* Only then have candidates anything to receive. */
static bool receives(const planc_problem *problem) {
  return problem->terms.gpus > 1 && planc_graph_has_backward(problem->job.graph);
}

static planc_status try_rooms(choice *c, const void *context, int64_t room, bool *out_fits_late);

static planc_status try_attempt(choice *c, const pl_walk_attempt *attempt, bool *out_fits_late) {
  int64_t least = 0;
  *out_fits_late = false;
  if (attempt->least_without_room) PLANC_TRY(live_without_room(c, attempt->context, &least));
  if (least > c->evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE]) return NULL;
  return try_rooms(c, attempt->context, attempt->room, out_fits_late);
}

static planc_status live_without_room(const choice *c, const void *context, int64_t *out_bytes) {
  planc_candidate candidate = {0};
  planc_status status =
      c->maker(c->evaluator->problem, context, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, &candidate);
  if (!status) status = c->evaluator->live(c->evaluator, &candidate, out_bytes);
  planc_candidate_free(&candidate);
  return status;
}

/* --- One attempt -------------------------------------------------------------------------------------------------- */

static planc_status try_ways(choice *c, const void *context, int64_t room, planc_candidate *late, bool *out_fits_late,
                             int64_t *out_peak);
static bool is_limited(int64_t room);

planc_status pl_walk_try(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                         planc_candidate *out, pl_walk_room *out_room, bool *out_fits) {
  choice c = choice_of(evaluator, maker, out);
  bool fits_late;
  PLANC_TRY(try_rooms(&c, context, room, &fits_late));
  *out_fits = c.fits;
  *out_room = c.found.room;
  return NULL;
}

/* What fits received otherwise alone may be faster received late in less room. */
static planc_status try_rooms(choice *c, const void *context, int64_t room, bool *out_fits_late) {
  const planc_terms *terms = &c->evaluator->problem->terms;
  int64_t budget = terms->budgets[PLANC_MEMORY_DEVICE], peak;
  pl_room_search search = pl_room_search_from(room, 0, 1);
  bool goes_on;
  do {
    planc_candidate late = {0};
    planc_status status = try_ways(c, context, search.room, &late, out_fits_late, &peak);
    planc_candidate_free(&late);
    PLANC_TRY(status);
    /* Less room does not help where it is the host that lacks memory. */
    goes_on = !*out_fits_late && !(c->fits && terms->first_will_do) && is_limited(room) && peak > budget;
  } while (goes_on && pl_room_search_down(&search, peak - budget));
  return NULL;
}

static bool is_limited(int64_t room) {
  return room != PL_ROOM_UNLIMITED && room != PL_ROOM_NONE;
}

static planc_status make_without_room(choice *c, const void *context) {
  planc_candidate late = {0};
  bool fits_late;
  int64_t peak;
  planc_status status;
  if (receives(c->evaluator->problem))
    status = try_ways(c, context, PL_ROOM_NONE, &late, &fits_late, &peak);
  else
    status = c->maker(c->evaluator->problem, context, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, &late);
  if (!status && !c->fits) {
    *c->best = late;
    late = (planc_candidate){0};
    c->found = (pl_walk_found){c->trying, {PL_ROOM_NONE, PL_RECEIVES_LATE}};
  }
  planc_candidate_free(&late);
  return status;
}

/* --- Ways to receive ---------------------------------------------------------------------------------------------- */

static planc_status judge(const planc_evaluator *evaluator, int64_t room, const planc_candidate *candidate,
                          bool *out_fits, int64_t *out_peak);
static planc_status offer(choice *c, planc_candidate *other, pl_walk_room room);
static planc_status offer_other_ways(choice *c, const void *context, int64_t room);

/* In a room. What is received late has the fewest live bytes; but its addresses may leave gaps, and those of what is
 * received otherwise none. *late is empty where it is the fastest. */
static planc_status try_ways(choice *c, const void *context, int64_t room, planc_candidate *late, bool *out_fits_late,
                             int64_t *out_peak) {
  const planc_terms *terms = &c->evaluator->problem->terms;
  const pl_walk_room by = {room, PL_RECEIVES_LATE};
  int64_t budget = terms->budgets[PLANC_MEMORY_DEVICE], live = 0;
  PLANC_TRY(c->maker(c->evaluator->problem, context, by, late));
  PLANC_TRY(judge(c->evaluator, room, late, out_fits_late, out_peak));
  if (*out_fits_late) PLANC_TRY(offer(c, late, by));
  if (!receives(c->evaluator->problem) || (*out_fits_late && terms->first_will_do)) return NULL;
  if (!*out_fits_late) PLANC_TRY(c->evaluator->live(c->evaluator, late, &live));
  bool lacks_host = !*out_fits_late && *out_peak <= budget;
  return lacks_host || live > budget ? NULL : offer_other_ways(c, context, room);
}

planc_status pl_walk_receive(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                             planc_candidate *late, pl_walk_room *room) {
  if (!receives(evaluator->problem) || evaluator->problem->terms.first_will_do) return NULL;
  choice c = choice_of(evaluator, maker, late);
  c.found.room = *room;
  c.fits = true;
  PLANC_TRY(offer_other_ways(&c, context, room->bytes));
  *room = c.found.room;
  return NULL;
}

static choice choice_of(const planc_evaluator *evaluator, pl_walk_maker maker, planc_candidate *best) {
  return (choice){.evaluator = evaluator, .maker = maker, .best = best, .ns = NOT_KNOWN};
}

static planc_status offer_other_ways(choice *c, const void *context, int64_t room) {
  static const pl_reception ways[] = {PL_RECEIVES_FIRST, PL_RECEIVES_EARLY, PL_RECEIVES_BESIDE};
  const planc_problem *problem = c->evaluator->problem;
  for (size_t k = 0; !(c->fits && problem->terms.first_will_do) && k < sizeof ways / sizeof *ways; k++) {
    const pl_walk_room by = {room, ways[k]};
    planc_candidate other = {0};
    bool fits;
    int64_t peak;
    if (by.reception == PL_RECEIVES_FIRST && !is_limited(room)) continue; /* it is early then */
    planc_status status = c->maker(problem, context, by, &other);
    if (!status) status = judge(c->evaluator, room, &other, &fits, &peak);
    if (!status && fits) status = offer(c, &other, by);
    planc_candidate_free(&other);
    PLANC_TRY(status);
  }
  return NULL;
}

/* Takes what fits, which is left empty then, if it is the first that does or takes less time than the best so far. */
static planc_status offer(choice *c, planc_candidate *other, pl_walk_room room) {
  int64_t ns = NOT_KNOWN;
  if (c->fits && c->ns == NOT_KNOWN) PLANC_TRY(c->evaluator->time(c->evaluator, c->best, &c->ns));
  if (c->fits) PLANC_TRY(c->evaluator->time(c->evaluator, other, &ns));
  if (c->fits && ns >= c->ns) return NULL;
  planc_candidate_free(c->best);
  *c->best = *other;
  *other = (planc_candidate){0};
  c->found = (pl_walk_found){c->trying, room};
  c->fits = true;
  c->ns = ns;
  return NULL;
}

/* Measures what a candidate takes on the device, and whether it fits the budgets. */
static planc_status judge(const planc_evaluator *evaluator, int64_t room, const planc_candidate *candidate,
                          bool *out_fits, int64_t *out_peak) {
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE];
  PLANC_TRY(evaluator->live(evaluator, candidate, out_peak));
  /* Only placement tells by how much the room must shrink. Where the room does not matter, live bytes above the
   * budget already show that the candidate does not fit. */
  if (is_limited(room) || *out_peak <= budget) PLANC_TRY(evaluator->peak(evaluator, candidate, out_peak));
  *out_fits = *out_peak <= budget;
  if (*out_fits) PLANC_TRY(pl_if_fits(evaluator->hold_to_host(evaluator, candidate), out_fits));
  return NULL;
}
