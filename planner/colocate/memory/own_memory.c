/* Memory of each job's own (own_memory.h). */
#include "planner/colocate/memory/own_memory.h"

#include "util/math.h"

static planc_status place_job(pl_arena *arena, const planc_evaluator *evaluator, const planc_candidate *job,
                              int64_t base, int64_t *out_bytes, int64_t **out_residencies, int64_t **out_workspaces);

planc_status pl_own_memory_place(pl_arena *arena, const planc_mix_evaluator *evaluator, const planc_problem *problems,
                                 pl_merge *merge, int64_t *out_arenas, int64_t *out_bytes) {
  int64_t **residencies, **workspaces, **all_residencies, **all_workspaces;
  int32_t n = merge->n_jobs;
  *out_bytes = 0;
  PLANC_TRY(PL_NEW(arena, &residencies, n));
  PLANC_TRY(PL_NEW(arena, &workspaces, n));
  for (int32_t j = 0; j < n; j++) {
    const planc_evaluator alone = evaluator->alone(evaluator, &problems[j]);
    PLANC_TRY(place_job(arena, &alone, &merge->jobs[j], *out_bytes, &out_arenas[j], &residencies[j], &workspaces[j]));
    *out_bytes = pl_add_saturate(*out_bytes, out_arenas[j]);
  }
  PLANC_TRY(pl_merge_repeat(arena, n, merge->iterations, residencies, &all_residencies));
  PLANC_TRY(pl_merge_repeat(arena, n, merge->iterations, workspaces, &all_workspaces));
  merge->residencies = all_residencies;
  merge->workspaces = all_workspaces;
  return NULL;
}

/* `base` bytes behind the beginning. */
static planc_status place_job(pl_arena *arena, const planc_evaluator *evaluator, const planc_candidate *job,
                              int64_t base, int64_t *out_bytes, int64_t **out_residencies, int64_t **out_workspaces) {
  const planc_schedule *s = job->schedule;
  int64_t *residencies, *workspaces;
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(PL_NEW(arena, &residencies, n_residencies));
  PLANC_TRY(PL_NEW(arena, &workspaces, n_commands));
  PLANC_TRY(evaluator->place(evaluator, job, (planc_placing){0}, residencies, workspaces, out_bytes));
  for (int32_t r = 0; r < n_residencies; r++) residencies[r] += base;
  for (int32_t c = 0; c < n_commands; c++) workspaces[c] += base;
  *out_residencies = residencies;
  *out_workspaces = workspaces;
  *out_bytes = pl_align_up(*out_bytes, PLANC_ALIGNMENT);
  return NULL;
}
