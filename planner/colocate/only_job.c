/* One job (only_job.h). */
#include "planner/colocate/only_job.h"

#include "planner/colocate/merge.h"
#include "planner/lower/addresses.h"

static planc_status make(const planc_problem *job, int32_t iterations, pl_solos *solos, planc_candidate *out);
static planc_status repeat(pl_arena *arena, const planc_candidate *own, int32_t iterations, planc_candidate *out);

planc_status pl_only_job_make(const planc_problem *job, int32_t iterations, planc_candidate *out) {
  pl_solos solos = {0};
  planc_status status = make(job, iterations, &solos, out);
  pl_solos_free(&solos);
  return status;
}

static planc_status make(const planc_problem *job, int32_t iterations, pl_solos *solos, planc_candidate *out) {
  int32_t failed;
  pl_arena arena = {0};
  PLANC_TRY(pl_solos_make(job, 1, NULL, solos, &failed));
  PLANC_TRY(pl_solos_side_by_side(job, solos));
  if (iterations == 1) {
    *out = solos->made[0].candidate;
    solos->made[0].candidate = (planc_candidate){0};
    return NULL;
  }
  planc_status status = repeat(&arena, &solos->candidates[0], iterations, out);
  pl_arena_free(&arena);
  return status;
}

/* All with the places that one iteration has, so that they take no more memory. */
static planc_status repeat(pl_arena *arena, const planc_candidate *own, int32_t iterations, planc_candidate *out) {
  int32_t n_commands = planc_schedule_n_commands(own->schedule);
  int64_t *of_residencies, *of_workspaces, **residencies, **workspaces;
  pl_addresses placed;
  pl_turn *turns;
  PLANC_TRY(pl_assign_device_addresses(arena, own->schedule, &placed));
  PLANC_TRY(pl_arena_copy(arena, placed.residencies, planc_schedule_n_residencies(own->schedule), sizeof(int64_t),
                          (void *)&of_residencies));
  PLANC_TRY(pl_arena_copy(arena, placed.workspaces, n_commands, sizeof(int64_t), (void *)&of_workspaces));
  PLANC_TRY(pl_merge_repeat(arena, 1, &iterations, &of_residencies, &residencies));
  PLANC_TRY(pl_merge_repeat(arena, 1, &iterations, &of_workspaces, &workspaces));
  PLANC_TRY(PL_NEW(arena, &turns, iterations));
  for (int32_t k = 0; k < iterations; k++) turns[k] = (pl_turn){.iteration = k, .end = n_commands, .leader = -1};
  pl_merge merge = {.n_jobs = 1,
                    .jobs = own,
                    .iterations = &iterations,
                    .n_turns = iterations,
                    .turns = turns,
                    .residencies = residencies,
                    .workspaces = workspaces};
  PLANC_TRY(pl_merge_candidates(&merge, out));
  return own->explanation ? planc_candidate_explain(out, "%s", own->explanation) : NULL;
}
