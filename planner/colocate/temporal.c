/* `temporal`: jobs take turns, each with all its iterations of a period, and whoever's turn it is has the GPU and all
 * memory but what the others keep for their next turn. A turn begins without a switch: no cost is charged (Zico, 7.1,
 * and Waterwave, 5.1, where it is the baseline). */
#include <assert.h>

#include "planner/choose/room_search.h"
#include "planner/colocate/beside.h"
#include "planner/colocate/merge.h"
#include "planner/colocate/mix_policies.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct taking_turns {
  const planc_mix *mix;
  pl_arena arena;
  pl_beside beside;
  bool first_will_do; /* the jobs' plans need not be the fastest */
} taking_turns;

static planc_status make_fit(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                             planc_candidate *out);
static planc_status make(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                         int64_t budget_bytes, planc_candidate *out, int64_t *out_excess);
static planc_status make_with_less(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                                   int64_t excess, planc_candidate *out, int64_t *out_excess);
static planc_status tell_excess(taking_turns *t, int64_t budget_bytes, int64_t excess);

planc_status pl_mix_temporal(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                             planc_candidate *out) {
  taking_turns t = {.mix = mix};
  planc_status status = pl_beside_new(mix, &t.beside);
  if (!status) status = make_fit(&t, shares, evaluator, out);
  pl_beside_free(&t.beside);
  pl_arena_free(&t.arena);
  return status;
}

/* Where the jobs fit with what each leaves the others, but not together: with less for each; and then with the plans
 * that are not the fastest, or that are, whichever was not asked for. The last that was made tells who has no place,
 * or the job that did not even fit beside what the others leave. */
static planc_status make_fit(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                             planc_candidate *out) {
  int64_t excess;
  bool stretched = false; /* in the last attempt with the whole budget */
  for (int32_t attempt = 0; attempt < 2; attempt++) {
    t->first_will_do = evaluator->problem->first_will_do != (attempt > 0);
    PLANC_TRY(make(t, shares, evaluator, evaluator->problem->budget_bytes, out, &excess));
    if (excess <= 0) return NULL;
    stretched = t->beside.stretched;
    planc_status status = stretched ? NULL : make_with_less(t, shares, evaluator, excess, out, &excess);
    if (status && planc_status_code(status) != PLANC_INFEASIBLE) return status;
    if (!status && excess <= 0) return NULL;
    planc_status_free(status);
  }
  if (stretched) return tell_excess(t, evaluator->problem->budget_bytes, excess);
  return make(t, shares, evaluator, evaluator->problem->budget_bytes, out, &excess);
}

static planc_status list_turns(taking_turns *t, const planc_mix_share *shares, pl_merge *merge) {
  int32_t *iterations;
  pl_turn *turns;
  int64_t n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) n += shares[j].iterations;
  PLANC_TRY(PL_NEW(&t->arena, &turns, n));
  PLANC_TRY(PL_NEW(&t->arena, &iterations, t->mix->n_jobs));
  *merge = (pl_merge){.n_jobs = t->mix->n_jobs,
                      .jobs = t->beside.solos.candidates,
                      .iterations = iterations,
                      .n_turns = n,
                      .turns = turns};
  n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    iterations[j] = shares[j].iterations;
    int32_t end = planc_schedule_n_commands(t->beside.solos.candidates[j].schedule);
    int32_t before = (j > 0 ? j : t->mix->n_jobs) - 1;
    for (int32_t k = 0; k < iterations[j]; k++)
      turns[n++] = (pl_turn){.job = j, .iteration = k, .end = end, .leader = k == 0 && before != j ? before : -1};
  }
  return NULL;
}

/* *out_excess is by how much it is too large. */
static planc_status make(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                         int64_t budget_bytes, planc_candidate *out, int64_t *out_excess) {
  pl_merge merge;
  int64_t peak;
  planc_candidate_free(out);
  PLANC_TRY(pl_beside_make(&t->beside, budget_bytes, t->first_will_do));
  PLANC_TRY(list_turns(t, shares, &merge));
  PLANC_TRY(pl_merge_candidates(&merge, out));
  PLANC_TRY(evaluator->peak(evaluator, out, &peak));
  *out_excess = peak - evaluator->problem->budget_bytes;
  return NULL;
}

/* What fits in turns may not fit together, where pieces are left that are of no use: then the jobs get less. */
static planc_status make_with_less(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                                   int64_t excess, planc_candidate *out, int64_t *out_excess) {
  pl_room_search search = pl_room_search_from(evaluator->problem->budget_bytes, 0, 1);
  *out_excess = excess;
  while (*out_excess > 0 && pl_room_search_down(&search, *out_excess))
    PLANC_TRY(make(t, shares, evaluator, search.room, out, out_excess));
  return NULL;
}

/* Who does not fit beside what the others leave, with what the smallest plan known takes. */
static planc_status tell_excess(taking_turns *t, int64_t budget_bytes, int64_t excess) {
  planc_shortage shortage = {PLANC_MEMORY_DEVICE, pl_add_saturate(budget_bytes, excess)};
  planc_status failed = pl_beside_make_in(&t->beside, budget_bytes, t->first_will_do);
  assert(failed);
  if (planc_status_code(failed) != PLANC_INFEASIBLE) return failed;
  planc_status told = planc_infeasible(shortage, "%s", planc_status_message(failed));
  planc_status_free(failed);
  return told;
}
