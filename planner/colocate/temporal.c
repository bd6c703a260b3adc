/* `temporal`: jobs take turns, an iteration after the other, and whoever's turn it is has the GPU and all memory but
 * what the others keep for their next turn: parameters and state. A turn begins without a switch: no cost is charged
 * (Zico, 7.1, and Waterwave, 5.1, where it is the baseline). */
#include "planner/choose/room_search.h"
#include "planner/colocate/merge.h"
#include "planner/colocate/mix_policies.h"
#include "planner/colocate/solo.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct taking_turns {
  const planc_mix *mix;
  pl_arena arena;
  int64_t *kept; /* by job */
  pl_solo *solos;
  int32_t n_solos;
  planc_candidate *candidates; /* by job: those of the solos, borrowed */
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
  planc_status told = planc_infeasible(shortage, "job %d (%s), beside %lld bytes that the other jobs keep: %s", job,
                                       t->mix->jobs[job].graph->name, (long long)kept, planc_status_message(status));
  planc_status_free(status);
  return told;
}

static planc_status make_solos(taking_turns *t, int64_t budget_bytes) {
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    planc_problem problem = t->mix->jobs[j];
    int64_t kept = kept_by_others(t, j);
    problem.budget_bytes = budget_bytes > kept ? budget_bytes - kept : 0;
    PLANC_TRY(beside_others(t, j, pl_solo_make(&problem, &t->solos[j])));
    t->candidates[t->n_solos++] = t->solos[j].candidate;
  }
  return NULL;
}

static void free_solos(taking_turns *t) {
  while (t->n_solos > 0) pl_solo_free(&t->solos[--t->n_solos]);
}

static planc_status start(taking_turns *t) {
  PLANC_TRY(PL_NEW(&t->arena, &t->kept, t->mix->n_jobs));
  PLANC_TRY(PL_NEW(&t->arena, &t->solos, t->mix->n_jobs));
  PLANC_TRY(PL_NEW(&t->arena, &t->candidates, t->mix->n_jobs));
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
      .n_jobs = t->mix->n_jobs, .jobs = t->candidates, .iterations = iterations, .n_turns = n, .turns = turns};
  n = 0;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    iterations[j] = shares[j].iterations;
    int32_t end = planc_schedule_n_commands(t->candidates[j].schedule);
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
  free_solos(t);
  planc_candidate_free(out);
  PLANC_TRY(make_solos(t, budget_bytes));
  PLANC_TRY(list_turns(t, shares, &merge));
  PLANC_TRY(pl_merge_candidates(&merge, out));
  PLANC_TRY(evaluator->peak(evaluator, out, &peak));
  *out_excess = peak - evaluator->problem->budget_bytes;
  return NULL;
}

/* What fits in turns may not fit together, where pieces are left that are of no use: then the jobs get less. */
planc_status pl_mix_temporal(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                             planc_candidate *out) {
  taking_turns t = {.mix = mix};
  pl_room_search search = pl_room_search_from(evaluator->problem->budget_bytes, 0, 1);
  int64_t excess = 0;
  planc_status status = start(&t);
  do {
    if (!status) status = make(&t, shares, evaluator, search.room, out, &excess);
  } while (!status && excess > 0 && pl_room_search_down(&search, excess));
  free_solos(&t);
  pl_arena_free(&t.arena);
  return status;
}
