/* `temporal`: jobs take turns, each with all its iterations of a period, and whoever's turn it is has the GPU and all
 * memory but what the others keep for their next turn. A turn begins without a switch: no cost is charged (Zico, 7.1,
 * and Waterwave, 5.1, where it is the baseline). */
#include "planner/colocate/interleave/turns.h"
#include "planner/colocate/policies/mix_policies.h"

static planc_status list_turns(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge);

planc_status pl_mix_temporal(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                             planc_candidate *out) {
  static const pl_turn_rules rules = {.list = list_turns};
  return pl_turns_make(evaluator, shares, &rules, out);
}

static planc_status list_turns(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge) {
  int32_t n_jobs = of->mix->n_jobs;
  int64_t n = 0;
  pl_turn *turns;
  for (int32_t j = 0; j < n_jobs; j++) n += of->iterations[j];
  PLANC_TRY(PL_NEW(arena, &turns, n));
  merge->turns = turns;
  merge->n_turns = n;
  n = 0;
  for (int32_t j = 0; j < n_jobs; j++) {
    int32_t end = planc_schedule_n_commands(of->jobs[j].schedule), before = (j > 0 ? j : n_jobs) - 1;
    for (int32_t k = 0; k < of->iterations[j]; k++)
      turns[n++] = (pl_turn){.job = j, .iteration = k, .end = end, .leader = k == 0 && before != j ? before : -1};
  }
  return NULL;
}
