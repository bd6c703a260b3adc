/* `temporal`: jobs take turns, each with all its iterations of a period, and whoever's turn it is has the GPU and all
 * memory but what the others keep for their next turn. A turn begins without a switch: no cost is charged (Zico, 7.1,
 * and Waterwave, 5.1, where it is the baseline).
 *
 * A job may keep all its parameters and state, or less, where its plan parks some on the host. How much is known when
 * it is planned, for what the others leave: so jobs are first planned as if the others kept everything, and where one
 * does not fit so, all are planned as if the GPU had as much more; what comes of it then must fit. */
#include "planner/choose/room_search.h"
#include "planner/colocate/merge.h"
#include "planner/colocate/mix_policies.h"
#include "planner/colocate/solo.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct taking_turns {
  const planc_mix *mix;
  pl_arena arena;
  int64_t *kept;           /* by job: parameters and state */
  planc_problem *problems; /* by job: with what the others leave it */
  pl_solos solos;
  bool first_will_do; /* their plans need not be the fastest */
  bool stretched;     /* they were planned as if the GPU had more than was asked for */
} taking_turns;

static int64_t kept_by_others(const taking_turns *t, int32_t job) {
  int64_t sum = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++)
    if (j != job) sum = pl_add_saturate(sum, t->kept[j]);
  return sum;
}

/* What a job alone would need is not enough in the mix. */
static planc_status beside_others(const taking_turns *t, int32_t job, planc_status status) {
  int64_t kept = kept_by_others(t, job);
  planc_shortage shortage = planc_status_shortage(status);
  if (planc_status_code(status) != PLANC_INFEASIBLE || t->mix->n_jobs == 1) return status;
  if (shortage.memory == PLANC_MEMORY_DEVICE && shortage.bytes > 0)
    shortage.bytes = pl_add_saturate(shortage.bytes, kept);
  planc_status told =
      planc_infeasible(shortage, "job %d (%s), beside %lld bytes of the other jobs' parameters and state: %s", job,
                       t->mix->jobs[job].graph->name, (long long)kept, planc_status_message(status));
  planc_status_free(status);
  return told;
}

/* As if the GPU had `room`; none gets more than there is. */
static planc_status make_solos_in(taking_turns *t, int64_t room) {
  int32_t failed;
  pl_solos_free(&t->solos);
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    int64_t left = room - kept_by_others(t, j), all = t->mix->jobs[j].budget_bytes;
    t->problems[j] = t->mix->jobs[j];
    t->problems[j].first_will_do = t->first_will_do;
    t->problems[j].budget_bytes = left < 0 ? 0 : left < all ? left : all;
  }
  planc_status status = pl_solos_make(t->problems, t->mix->n_jobs, &t->solos, &failed);
  return beside_others(t, failed, status);
}

static bool asks_for_more(planc_status status, int64_t room) {
  planc_shortage shortage = planc_status_shortage(status);
  return planc_status_code(status) == PLANC_INFEASIBLE && shortage.memory == PLANC_MEMORY_DEVICE &&
         shortage.bytes > room;
}

/* In that room, or in as much more as those lack that do not fit; where that does not help either, the first failure.
 */
static planc_status make_solos(taking_turns *t, int64_t room) {
  enum { TRIES = 4 };
  planc_status first = make_solos_in(t, room), last = first;
  t->stretched = first != NULL;
  for (int32_t k = 1; k < TRIES && asks_for_more(last, room); k++) {
    room = planc_status_shortage(last).bytes;
    if (last != first) planc_status_free(last);
    last = make_solos_in(t, room);
  }
  planc_status told = planc_status_code(last) == PLANC_INFEASIBLE ? first : last;
  if (first != told) planc_status_free(first);
  if (last != told && last != first) planc_status_free(last);
  return told;
}

static planc_status start(taking_turns *t) {
  PLANC_TRY(PL_NEW(&t->arena, &t->kept, t->mix->n_jobs));
  PLANC_TRY(PL_NEW(&t->arena, &t->problems, t->mix->n_jobs));
  for (int32_t j = 0; j < t->mix->n_jobs; j++) PLANC_TRY(pl_solo_kept(&t->mix->jobs[j], &t->kept[j]));
  return NULL;
}

static planc_status list_turns(taking_turns *t, const planc_mix_share *shares, pl_merge *merge) {
  int32_t *iterations;
  pl_turn *turns;
  int64_t n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) n += shares[j].iterations;
  PLANC_TRY(PL_NEW(&t->arena, &turns, n));
  PLANC_TRY(PL_NEW(&t->arena, &iterations, t->mix->n_jobs));
  *merge = (pl_merge){
      .n_jobs = t->mix->n_jobs, .jobs = t->solos.candidates, .iterations = iterations, .n_turns = n, .turns = turns};
  n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    iterations[j] = shares[j].iterations;
    int32_t end = planc_schedule_n_commands(t->solos.candidates[j].schedule);
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
  PLANC_TRY(make_solos(t, budget_bytes));
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
  planc_status failed = make_solos_in(t, budget_bytes);
  if (planc_status_code(failed) != PLANC_INFEASIBLE) return failed;
  planc_status told = planc_infeasible(shortage, "%s", planc_status_message(failed));
  planc_status_free(failed);
  return told;
}

/* Where the jobs fit with what each leaves the others, but not together: with less for each; and then with the plans
 * that are not the fastest, or that are, whichever was not asked for. The last that was made tells who has no place,
 * or the job that did not even fit beside what the others leave. */
static planc_status make_fit(taking_turns *t, const planc_mix_share *shares, const planc_evaluator *evaluator,
                             planc_candidate *out) {
  int64_t excess;
  for (int32_t attempt = 0; attempt < 2; attempt++) {
    t->first_will_do = evaluator->problem->first_will_do != (attempt > 0);
    PLANC_TRY(make(t, shares, evaluator, evaluator->problem->budget_bytes, out, &excess));
    if (excess <= 0) return NULL;
    planc_status status = t->stretched ? NULL : make_with_less(t, shares, evaluator, excess, out, &excess);
    if (status && planc_status_code(status) != PLANC_INFEASIBLE) return status;
    if (!status && excess <= 0) return NULL;
    planc_status_free(status);
  }
  if (t->stretched) return tell_excess(t, evaluator->problem->budget_bytes, excess);
  return make(t, shares, evaluator, evaluator->problem->budget_bytes, out, &excess);
}

planc_status pl_mix_temporal(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                             planc_candidate *out) {
  taking_turns t = {.mix = mix};
  planc_status status = start(&t);
  if (!status) status = make_fit(&t, shares, evaluator, out);
  pl_solos_free(&t.solos);
  pl_arena_free(&t.arena);
  return status;
}
