/* Which of the candidates that a walk can make is taken (walk.h): by room, reception and time. */
#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/choose/room_search.h"
#include "planner/choose/walk.h"

planc_status pl_walk_fit(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                         planc_candidate *out) {
  const pl_walk_attempt attempts[] = {
      {.context = context, .room = PL_ROOM_UNLIMITED},
      {.context = context, .room = pl_arena_room(&evaluator->problem->terms, evaluator->problem->job.profile)}};
  static const char *const algorithms[] = {"every op has its fastest algorithm",
                                           "ops have the fastest algorithms that find room beside the data",
                                           "ops have their baseline algorithms, as faster ones do not fit"};
  int32_t number;
  PLANC_TRY(pl_walk_first(evaluator, maker, attempts, 2, out, &number));
  return planc_candidate_explain(out, "%s", algorithms[number]);
}

static planc_status try_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                             planc_candidate *out, int64_t *out_peak);
static planc_status judge(const planc_evaluator *evaluator, bool by_room, planc_candidate *candidate,
                          int64_t *out_peak);
static planc_status take_faster(const planc_evaluator *evaluator, planc_candidate *best, planc_candidate *other,
                                bool *out_is);

planc_status pl_walk_try(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                         planc_candidate *out, bool *out_fits) {
  bool by_room = room != PL_ROOM_UNLIMITED && room != PL_ROOM_NONE;
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE], peak;
  pl_room_search search = pl_room_search_from(room, 0, 1);
  do {
    PLANC_TRY(try_room(evaluator, maker, context, search.room, out, &peak));
    *out_fits = out->schedule != NULL;
    /* Less room does not help where it is the host that lacks memory. */
  } while (!*out_fits && by_room && peak > budget && pl_room_search_down(&search, peak - budget));
  return NULL;
}

/* *out_peak is the peak of the last one tried. */
static planc_status try_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                             planc_candidate *out, int64_t *out_peak) {
  bool by_room = room != PL_ROOM_UNLIMITED && room != PL_ROOM_NONE, faster;
  for (int r = (int)pl_first_reception(evaluator->problem, room); r >= PL_RECEIVES_LATE; r--) {
    if (out->schedule && r < PL_RECEIVES_EARLY) break;
    planc_candidate tried = {0};
    planc_status status = maker(evaluator->problem, context, (pl_walk_room){room, (pl_reception)r}, &tried);
    if (!status) status = judge(evaluator, by_room, &tried, out_peak);
    if (!status && tried.schedule) status = take_faster(evaluator, out, &tried, &faster);
    planc_candidate_free(&tried);
    PLANC_TRY(status);
  }
  return NULL;
}

/* Measures what a candidate takes on the device. One that does not fit the budgets is freed. */
static planc_status judge(const planc_evaluator *evaluator, bool by_room, planc_candidate *candidate,
                          int64_t *out_peak) {
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE];
  PLANC_TRY(evaluator->live(evaluator, candidate, out_peak));
  /* Only placement tells by how much the room must shrink. Where the room does not matter, live bytes above the
   * budget already show that the candidate does not fit. */
  if (by_room || *out_peak <= budget) PLANC_TRY(evaluator->peak(evaluator, candidate, out_peak));
  bool fits = *out_peak <= budget;
  if (fits) PLANC_TRY(pl_if_fits(evaluator->hold_to_host(evaluator, candidate), &fits));
  if (!fits) planc_candidate_free(candidate);
  return NULL;
}

/* Exchanges the two if there is no best yet, or if the other one takes less time. */
static planc_status take_faster(const planc_evaluator *evaluator, planc_candidate *best, planc_candidate *other,
                                bool *out_is) {
  int64_t best_ns, other_ns;
  *out_is = !best->schedule;
  if (best->schedule) {
    PLANC_TRY(evaluator->time(evaluator, best, &best_ns));
    PLANC_TRY(evaluator->time(evaluator, other, &other_ns));
    *out_is = other_ns < best_ns;
  }
  if (!*out_is) return NULL;
  planc_candidate slower = *best;
  *best = *other;
  *other = slower;
  return NULL;
}

static planc_status try_attempt(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempt,
                                planc_candidate *out, bool *out_fits);

planc_status pl_walk_first(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempts,
                           int32_t n, planc_candidate *out, int32_t *out_number) {
  bool fits = false, compares = pl_first_reception(evaluator->problem, PL_ROOM_UNLIMITED) != PL_RECEIVES_LATE;
  for (*out_number = 0; *out_number < n; ++*out_number) {
    PLANC_TRY(try_attempt(evaluator, maker, &attempts[*out_number], out, &fits));
    if (fits) break;
  }
  if (!fits)
    return maker(evaluator->problem, attempts[n - 1].context, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, out);
  const void *context = attempts[*out_number].context;
  for (int32_t k = *out_number + 1; compares && k < n && attempts[k].context == context; k++) {
    planc_candidate other = {0};
    bool faster = false;
    planc_status status = try_attempt(evaluator, maker, &attempts[k], &other, &fits);
    if (!status && fits) status = take_faster(evaluator, out, &other, &faster);
    planc_candidate_free(&other);
    PLANC_TRY(status);
    if (faster) *out_number = k;
  }
  return NULL;
}

static planc_status live_without_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                                      int64_t *out_bytes) {
  planc_candidate candidate = {0};
  planc_status status = maker(evaluator->problem, context, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, &candidate);
  if (!status) status = evaluator->live(evaluator, &candidate, out_bytes);
  planc_candidate_free(&candidate);
  return status;
}

static planc_status try_attempt(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempt,
                                planc_candidate *out, bool *out_fits) {
  int64_t least = 0;
  *out_fits = false;
  if (attempt->least_without_room) PLANC_TRY(live_without_room(evaluator, maker, attempt->context, &least));
  if (least > evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE]) return NULL;
  return pl_walk_try(evaluator, maker, attempt->context, attempt->room, out, out_fits);
}
