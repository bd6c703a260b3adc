/* Which of the candidates that a walk can make is taken (walk.h): by room, reception and time. */
#include <assert.h>

#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/choose/room_search.h"
#include "planner/choose/walk.h"

enum { NOT_KNOWN = -1 };

static bool receives(const planc_problem *problem);

planc_status pl_walk_fit(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                         planc_candidate *out) {
  const pl_walk_attempt attempts[] = {
      {.context = context, .room = PL_ROOM_UNLIMITED},
      {.context = context, .room = pl_arena_room(&evaluator->problem->terms, evaluator->problem->job.profile)}};
  static const char *const algorithms[] = {"every op has its fastest algorithm",
                                           "ops have the fastest algorithms that find room beside the data",
                                           "ops have their baseline algorithms, as faster ones do not fit"};
  pl_walk_found found;
  PLANC_TRY(pl_walk_first(evaluator, maker, attempts, 2, out, &found));
  assert(found.number >= 0 && found.number <= 2);
  return planc_candidate_explain(out, "%s", algorithms[found.number]);
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

static planc_status try_attempt(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempt,
                                planc_candidate *out, pl_walk_room *out_room, bool *out_fits);
static planc_status live_without_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                                      int64_t *out_bytes);
static planc_status make_without_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                                      planc_candidate *out, pl_walk_room *out_room);
static planc_status take_faster(const planc_evaluator *evaluator, planc_candidate *best, int64_t *best_ns,
                                planc_candidate *other, bool *out_is);
static void exchange(planc_candidate *a, planc_candidate *b);

planc_status pl_walk_first(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempts,
                           int32_t n, planc_candidate *out, pl_walk_found *found) {
  bool fits = false;
  for (found->number = 0; found->number < n; found->number++) {
    PLANC_TRY(try_attempt(evaluator, maker, &attempts[found->number], out, &found->room, &fits));
    if (fits) break;
  }
  if (!fits) return make_without_room(evaluator, maker, attempts[n - 1].context, out, &found->room);
  const void *context = attempts[found->number].context;
  int64_t best_ns = NOT_KNOWN;
  for (int32_t k = found->number + 1; k < n && attempts[k].context == context; k++) {
    planc_candidate other = {0};
    pl_walk_room room;
    bool faster = false;
    if (!receives(evaluator->problem) || evaluator->problem->terms.first_will_do) break;
    planc_status status = try_attempt(evaluator, maker, &attempts[k], &other, &room, &fits);
    if (!status && fits) status = take_faster(evaluator, out, &best_ns, &other, &faster);
    planc_candidate_free(&other);
    PLANC_TRY(status);
    if (faster) *found = (pl_walk_found){k, room};
  }
  return NULL;
}

static planc_status try_attempt(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempt,
                                planc_candidate *out, pl_walk_room *out_room, bool *out_fits) {
  int64_t least = 0;
  *out_fits = false;
  if (attempt->least_without_room) PLANC_TRY(live_without_room(evaluator, maker, attempt->context, &least));
  if (least > evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE]) return NULL;
  return pl_walk_try(evaluator, maker, attempt->context, attempt->room, out, out_room, out_fits);
}

static planc_status live_without_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                                      int64_t *out_bytes) {
  planc_candidate candidate = {0};
  planc_status status = maker(evaluator->problem, context, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, &candidate);
  if (!status) status = evaluator->live(evaluator, &candidate, out_bytes);
  planc_candidate_free(&candidate);
  return status;
}

/* Exchanges the two if the other one takes less time. */
static planc_status take_faster(const planc_evaluator *evaluator, planc_candidate *best, int64_t *best_ns,
                                planc_candidate *other, bool *out_is) {
  int64_t ns;
  if (*best_ns == NOT_KNOWN) PLANC_TRY(evaluator->time(evaluator, best, best_ns));
  PLANC_TRY(evaluator->time(evaluator, other, &ns));
  *out_is = ns < *best_ns;
  if (!*out_is) return NULL;
  exchange(best, other);
  *best_ns = ns;
  return NULL;
}

static void exchange(planc_candidate *a, planc_candidate *b) {
  planc_candidate c = *a;
  *a = *b;
  *b = c;
}

/* --- One attempt -------------------------------------------------------------------------------------------------- */

static bool is_limited(int64_t room);
static planc_status judge(const planc_evaluator *evaluator, int64_t room, const planc_candidate *candidate,
                          bool *out_fits, int64_t *out_peak);
static planc_status receive(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                            planc_candidate *best, pl_walk_room *room, bool *fits);
static planc_status take_if_better(const planc_evaluator *evaluator, planc_candidate *best, int64_t *best_ns,
                                   planc_candidate *other, int64_t room, bool *best_fits, bool *out_taken);

/* What is received late takes the fewest live bytes. */
planc_status pl_walk_try(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                         planc_candidate *out, pl_walk_room *out_room, bool *out_fits) {
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE], peak;
  pl_room_search search = pl_room_search_from(room, 0, 1);
  do {
    *out_room = (pl_walk_room){search.room, PL_RECEIVES_LATE};
    PLANC_TRY(maker(evaluator->problem, context, *out_room, out));
    PLANC_TRY(judge(evaluator, search.room, out, out_fits, &peak));
    if (*out_fits || peak > budget) PLANC_TRY(receive(evaluator, maker, context, out, out_room, out_fits));
    if (*out_fits) return NULL;
    planc_candidate_free(out);
    /* Less room does not help where it is the host that lacks memory. */
  } while (is_limited(room) && peak > budget && pl_room_search_down(&search, peak - budget));
  return NULL;
}

static planc_status make_without_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                                      planc_candidate *out, pl_walk_room *out_room) {
  bool fits;
  int64_t peak;
  *out_room = (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE};
  PLANC_TRY(maker(evaluator->problem, context, *out_room, out));
  if (!receives(evaluator->problem)) return NULL;
  PLANC_TRY(judge(evaluator, PL_ROOM_NONE, out, &fits, &peak));
  return receive(evaluator, maker, context, out, out_room, &fits);
}

static bool is_limited(int64_t room) {
  return room != PL_ROOM_UNLIMITED && room != PL_ROOM_NONE;
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

static bool receives(const planc_problem *problem) {
  return problem->terms.gpus > 1 && planc_graph_has_backward(problem->job.graph);
}

planc_status pl_walk_receive(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                             planc_candidate *late, pl_walk_room *room) {
  bool fits = true;
  return receive(evaluator, maker, context, late, room, &fits);
}

/* pl_walk_receive of a candidate that need not fit: *fits, of it and then of what is taken. Where it does not,
 * addresses may have left gaps that they do not leave for what is received otherwise. */
static planc_status receive(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                            planc_candidate *best, pl_walk_room *room, bool *fits) {
  static const pl_reception ways[] = {PL_RECEIVES_FIRST, PL_RECEIVES_EARLY, PL_RECEIVES_BESIDE};
  const planc_terms *terms = &evaluator->problem->terms;
  int64_t best_ns = NOT_KNOWN, live = 0;
  if (!receives(evaluator->problem)) return NULL;
  if (!*fits) PLANC_TRY(evaluator->live(evaluator, best, &live));
  if (live > terms->budgets[PLANC_MEMORY_DEVICE]) return NULL;
  for (size_t k = 0; !(*fits && terms->first_will_do) && k < sizeof ways / sizeof *ways; k++) {
    pl_walk_room by = {room->bytes, ways[k]};
    planc_candidate other = {0};
    bool taken = false;
    if (by.reception == PL_RECEIVES_FIRST && !is_limited(by.bytes)) continue; /* it is early then */
    planc_status status = maker(evaluator->problem, context, by, &other);
    if (!status) status = take_if_better(evaluator, best, &best_ns, &other, by.bytes, fits, &taken);
    planc_candidate_free(&other);
    PLANC_TRY(status);
    if (taken) *room = by;
  }
  return NULL;
}

/* Exchanges the two if the other one fits, and `best` does not or takes more time. */
static planc_status take_if_better(const planc_evaluator *evaluator, planc_candidate *best, int64_t *best_ns,
                                   planc_candidate *other, int64_t room, bool *best_fits, bool *out_taken) {
  int64_t peak;
  bool fits;
  PLANC_TRY(judge(evaluator, room, other, &fits, &peak));
  if (!fits) return NULL;
  if (*best_fits) return take_faster(evaluator, best, best_ns, other, out_taken);
  exchange(best, other);
  *best_fits = *out_taken = true;
  return NULL;
}
