/* Taking turns (turns.h). */
#include "planner/colocate/interleave/turns.h"

#include <assert.h>

#include "planner/base/if_fits.h"
#include "planner/choose/room_search.h"
#include "planner/colocate/interleave/beside.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct taking_turns {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;
  const pl_turn_rules *rules;
  int32_t iterations[PLANC_MIX_MAX_JOBS];
  int64_t alone_ns; /* all iterations of a period, each job with all memory */
  pl_beside beside;
  bool first_will_do; /* the jobs' plans need not be the fastest */
  bool leaves_host;   /* what is too much for the host counts as fitting: what is parked later may be less */
} taking_turns;

static planc_status make_best(taking_turns *t, planc_candidate *out);
static planc_status make_fit(taking_turns *t, planc_candidate *out, bool *out_fits);
static planc_status make_kind(taking_turns *t, planc_candidate *out, bool *out_made, bool *out_fits);
static planc_status make_smaller(taking_turns *t, planc_candidate *out, bool *out_fits);
static planc_status make(taking_turns *t, int64_t budget_bytes, planc_candidate *out, int64_t *out_excess);
static planc_status make_with_less(taking_turns *t, int64_t excess, planc_candidate *out, int64_t *out_excess);
static planc_status fits_both(const taking_turns *t, const planc_candidate *all, int64_t excess, bool *out);
static planc_status tell_excess(taking_turns *t, planc_candidate *out);

planc_status pl_turns_make(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                           const pl_turn_rules *rules, planc_candidate *out) {
  const planc_mix *mix = evaluator->mix;
  taking_turns t = {.evaluator = evaluator, .mix = mix, .rules = rules};
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    t.iterations[j] = shares[j].iterations;
    t.alone_ns = pl_add_saturate(t.alone_ns, pl_mul_saturate(shares[j].alone_ns, shares[j].iterations));
  }
  planc_status status = pl_beside_new(evaluator, &t.beside);
  if (!status) status = make_best(&t, out);
  pl_beside_free(&t.beside);
  return status;
}

/* How good a candidate is. */
typedef struct judgement {
  int64_t late_ns; /* 0 where it is in time */
  int64_t ns;      /* of a period */
  int64_t excess;  /* bytes beyond the device's budget; INT64_MAX: a job does not fit alone */
  bool fits;       /* the host's as well */
} judgement;

static planc_status make_less_late(taking_turns *t, planc_candidate *best, judgement *of_best);
static planc_status make_parked(taking_turns *t, planc_candidate *best, judgement *of_best);
static planc_status make_in(taking_turns *t, int64_t room, planc_candidate *out, judgement *out_is);
static bool is_better(judgement a, judgement b);
static bool is_sooner(judgement a, judgement b);
static void take(planc_candidate *next, judgement of_next, planc_candidate *best, judgement *of_best);
static planc_status judge(const taking_turns *t, const planc_candidate *all, int64_t excess, judgement *out);
static pl_turn_takers takers_of(const taking_turns *t);

static planc_status make_best(taking_turns *t, planc_candidate *out) {
  judgement best;
  bool fits;
  PLANC_TRY(make_fit(t, out, &fits));
  if (!fits && t->mix->terms.budgets[PLANC_MEMORY_HOST] >= 0) {
    t->leaves_host = true;
    PLANC_TRY(make_fit(t, out, &fits));
    t->leaves_host = false;
  }
  if (!fits) return tell_excess(t, out);
  PLANC_TRY(judge(t, out, 0, &best));
  PLANC_TRY(make_less_late(t, out, &best));
  return t->mix->terms.first_will_do && best.fits ? NULL : make_parked(t, out, &best);
}

/* What is late is planned with less for each job, so that they wait less for each other's copies. */
static planc_status make_less_late(taking_turns *t, planc_candidate *best, judgement *of_best) {
  enum { PARTS = 8, LEAST = 2 };
  for (int64_t k = PARTS - 1; of_best->late_ns > 0 && k >= LEAST; k--) {
    planc_candidate next = {0};
    judgement of_next;
    planc_status status =
        make_in(t, pl_muldiv_floor(t->mix->terms.budgets[PLANC_MEMORY_DEVICE], k, PARTS), &next, &of_next);
    if (!status && of_next.fits && is_better(of_next, *of_best)) take(&next, of_next, best, of_best);
    planc_candidate_free(&next);
    PLANC_TRY(status);
  }
  return NULL;
}

/* Where turns take much longer than they would with all memory, since each job has only what the others keep free, they
 * are planned as if the others kept nothing: with all memory, and with less for each by what is too much together, a
 * 64th of the budget at the least and an eighth at the most. The first that fits is taken for the fastest of these, and
 * the search ends where less memory makes turns too slow. So they are where what is parked so far is too much for the
 * host. */
static planc_status make_parked(taking_turns *t, planc_candidate *best, judgement *of_best) {
  enum { TRIES = 8, FEW = 64, MANY = 8, SLOW = 9, FAST = 8 };
  int64_t budget = t->mix->terms.budgets[PLANC_MEMORY_DEVICE];
  bool goes_on = !of_best->fits || of_best->ns > pl_muldiv_floor(t->alone_ns, SLOW, FAST);
  planc_status status = NULL;
  t->first_will_do = false;
  for (int k = 0; !status && goes_on && k < TRIES; k++) {
    planc_candidate next = {0};
    judgement of_next;
    status = make_in(t, INT64_MAX, &next, &of_next);
    bool lacks = of_next.excess > 0 && of_next.excess < INT64_MAX;
    goes_on = !status && lacks && (!of_best->fits || is_sooner(of_next, *of_best));
    if (!status && of_next.fits && is_better(of_next, *of_best)) take(&next, of_next, best, of_best);
    planc_candidate_free(&next);
    t->beside.most -= pl_clamp(of_next.excess, budget / FEW, budget / MANY);
    goes_on = goes_on && t->beside.most > 0;
  }
  t->beside.most = budget;
  return status;
}

/* Where a job does not fit, *out_is is worse than all else. */
static planc_status make_in(taking_turns *t, int64_t room, planc_candidate *out, judgement *out_is) {
  int64_t excess;
  bool made;
  *out_is = (judgement){.late_ns = INT64_MAX, .ns = INT64_MAX, .excess = INT64_MAX};
  PLANC_TRY(pl_if_fits(make(t, room, out, &excess), &made));
  return made ? judge(t, out, excess, out_is) : NULL;
}

static bool is_better(judgement a, judgement b) {
  return a.fits != b.fits ? a.fits : is_sooner(a, b);
}

static bool is_sooner(judgement a, judgement b) {
  return a.late_ns < b.late_ns || (a.late_ns == b.late_ns && a.ns < b.ns);
}

static void take(planc_candidate *next, judgement of_next, planc_candidate *best, judgement *of_best) {
  planc_candidate_free(best);
  *best = *next;
  *next = (planc_candidate){0};
  *of_best = of_next;
}

static planc_status judge(const taking_turns *t, const planc_candidate *all, int64_t excess, judgement *out) {
  const pl_turn_takers takers = takers_of(t);
  const planc_evaluator *evaluator = &t->evaluator->all;
  out->late_ns = 0;
  if (t->rules->lateness) PLANC_TRY(t->rules->lateness(&takers, all, &out->late_ns));
  if (out->late_ns < 0) out->late_ns = 0;
  out->excess = excess;
  PLANC_TRY(fits_both(t, all, excess, &out->fits));
  return evaluator->time(evaluator, all, &out->ns);
}

static pl_turn_takers takers_of(const taking_turns *t) {
  return (pl_turn_takers){t->evaluator, t->mix, t->beside.problems, t->beside.solos.candidates, t->iterations};
}

/* Jobs that fit one by one, each in what the others leave it, may not fit together: then less is tried for each. If
 * that fails too, all is tried again with the other kind of plans: the first that will do instead of the fastest, or
 * the fastest instead of the first that will do. What fails then as well is tried with plans for less and less memory,
 * which park more. */
static planc_status make_fit(taking_turns *t, planc_candidate *out, bool *out_fits) {
  bool made_any = false, made;
  for (int32_t attempt = 0; attempt < 2; attempt++) {
    t->first_will_do = t->mix->terms.first_will_do != (attempt > 0);
    PLANC_TRY(make_kind(t, out, &made, out_fits));
    if (*out_fits) return NULL;
    made_any = made_any || made;
  }
  return made_any ? make_smaller(t, out, out_fits) : NULL;
}

/* With plans of one kind. *out_made says that each job fits beside the others, *out_fits that all do together. */
static planc_status make_kind(taking_turns *t, planc_candidate *out, bool *out_made, bool *out_fits) {
  int64_t excess = 0;
  *out_fits = false;
  PLANC_TRY(pl_if_fits(make(t, t->mix->terms.budgets[PLANC_MEMORY_DEVICE], out, &excess), out_made));
  if (!*out_made) return NULL;
  bool with_less = excess > 0 && !t->beside.stretched, made = true;
  if (with_less) PLANC_TRY(pl_if_fits(make_with_less(t, excess, out, &excess), &made));
  return made ? fits_both(t, out, excess, out_fits) : NULL;
}

/* The host as well, where what is parked there may be too much. */
static planc_status fits_both(const taking_turns *t, const planc_candidate *all, int64_t excess, bool *out) {
  const planc_evaluator *evaluator = &t->evaluator->all;
  *out = excess <= 0;
  return *out && !t->leaves_host ? pl_if_fits(evaluator->hold_to_host(evaluator, all), out) : NULL;
}

/* No job gets more than a part of the budget, be the rest free: one that is planned with all of it may keep so much
 * that the others have no room. So more memory is no reason to refuse what fits in less. A job that does not fit in one
 * part does not fit in a smaller one either. */
static planc_status make_smaller(taking_turns *t, planc_candidate *out, bool *out_fits) {
  enum { PARTS = 8 };
  int64_t budget = t->mix->terms.budgets[PLANC_MEMORY_DEVICE], excess;
  planc_status status = NULL;
  bool made = true;
  t->first_will_do = true;
  for (int64_t k = PARTS - 1; !status && k > 0 && made && !*out_fits; k--) {
    t->beside.most = pl_muldiv_floor(budget, k, PARTS);
    status = pl_if_fits(make(t, budget, out, &excess), &made);
    if (!status && made) status = fits_both(t, out, excess, out_fits);
  }
  t->beside.most = budget;
  return status;
}

/* *out_excess is by how much it is too large. */
static planc_status make(taking_turns *t, int64_t budget_bytes, planc_candidate *out, int64_t *out_excess) {
  int64_t peak;
  pl_arena arena = {0};
  planc_candidate_free(out);
  PLANC_TRY(pl_beside_make(&t->beside, budget_bytes, t->first_will_do));
  const pl_turn_takers takers = takers_of(t);
  pl_merge merge = {.n_jobs = t->mix->n_jobs, .jobs = takers.jobs, .iterations = t->iterations};
  planc_status status = t->rules->list(&takers, &arena, &merge);
  if (!status) status = pl_merge_candidates(&merge, out);
  pl_arena_free(&arena);
  PLANC_TRY(status);
  PLANC_TRY(t->evaluator->all.peak(&t->evaluator->all, out, &peak));
  *out_excess = peak - t->mix->terms.budgets[PLANC_MEMORY_DEVICE];
  return NULL;
}

/* Gives each job less, for placement may leave useless pieces. */
static planc_status make_with_less(taking_turns *t, int64_t excess, planc_candidate *out, int64_t *out_excess) {
  pl_room_search search = pl_room_search_from(t->mix->terms.budgets[PLANC_MEMORY_DEVICE], 0, 1);
  *out_excess = excess;
  while (*out_excess > 0 && pl_room_search_down(&search, *out_excess)) PLANC_TRY(make(t, search.room, out, out_excess));
  return NULL;
}

/* Tells which job does not fit beside what the others leave, or leaves what fits only one by one to whoever holds it to
 * the budget. What is needed is what the smallest plan known takes. */
static planc_status tell_excess(taking_turns *t, planc_candidate *out) {
  int64_t budget = t->mix->terms.budgets[PLANC_MEMORY_DEVICE], excess;
  PLANC_TRY(make(t, budget, out, &excess));
  if (!t->beside.stretched) return NULL;
  planc_shortage shortage = {PLANC_MEMORY_DEVICE, pl_add_saturate(budget, excess)};
  planc_status failed = pl_beside_make_in(&t->beside, budget, t->first_will_do);
  assert(failed);
  if (planc_status_code(failed) != PLANC_INFEASIBLE) return failed;
  planc_status told = planc_infeasible(shortage, "%s; with some of these on the host all jobs take %lld bytes",
                                       planc_status_message(failed), (long long)shortage.bytes);
  planc_status_free(failed);
  return told;
}
