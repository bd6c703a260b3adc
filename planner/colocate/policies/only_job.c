/* One job (only_job.h). */
#include "planner/colocate/policies/only_job.h"

#include <assert.h>

#include "planner/colocate/interleave/side_by_side.h"
#include "planner/colocate/jobs/merge.h"

typedef struct only_job {
  const planc_mix_evaluator *evaluator;
  planc_problem problem;
  int32_t iterations;
  pl_arena arena;
  pl_solos solos;
} only_job;

static planc_status make(only_job *o, planc_candidate *out);
static planc_status repeat(only_job *o, planc_candidate *out);

planc_status pl_only_job_make(const planc_mix_evaluator *evaluator, int32_t iterations, planc_candidate *out) {
  assert(evaluator->mix->n_jobs == 1);
  only_job o = {.evaluator = evaluator, .problem = planc_mix_problem(evaluator->mix, 0), .iterations = iterations};
  planc_status status = make(&o, out);
  pl_solos_free(&o.solos);
  pl_arena_free(&o.arena);
  return status;
}

static planc_status make(only_job *o, planc_candidate *out) {
  int32_t failed;
  PLANC_TRY(pl_solos_make(o->evaluator, &o->problem, NULL, &o->solos, &failed));
  PLANC_TRY(pl_solos_side_by_side(o->evaluator, &o->problem, &o->solos));
  if (o->iterations > 1) return repeat(o, out);
  *out = o->solos.made[0].candidate;
  o->solos.made[0].candidate = (planc_candidate){0};
  return NULL;
}

/* All with the places that one iteration has, so that they take no more memory. */
static planc_status repeat(only_job *o, planc_candidate *out) {
  const planc_candidate *own = &o->solos.candidates[0];
  const planc_evaluator alone = o->evaluator->alone(o->evaluator, &o->problem);
  int32_t n_commands = planc_schedule_n_commands(own->schedule);
  int64_t *of_residencies, *of_workspaces, **residencies, **workspaces, arena_bytes;
  pl_turn *turns;
  PLANC_TRY(PL_NEW(&o->arena, &of_residencies, planc_schedule_n_residencies(own->schedule)));
  PLANC_TRY(PL_NEW(&o->arena, &of_workspaces, n_commands));
  PLANC_TRY(alone.place(&alone, own, (planc_placing){0}, of_residencies, of_workspaces, &arena_bytes));
  PLANC_TRY(pl_merge_repeat(&o->arena, 1, &o->iterations, &of_residencies, &residencies));
  PLANC_TRY(pl_merge_repeat(&o->arena, 1, &o->iterations, &of_workspaces, &workspaces));
  PLANC_TRY(PL_NEW(&o->arena, &turns, o->iterations));
  for (int32_t k = 0; k < o->iterations; k++) turns[k] = (pl_turn){.iteration = k, .end = n_commands, .leader = -1};
  pl_merge merge = {.n_jobs = 1,
                    .jobs = own,
                    .iterations = &o->iterations,
                    .n_turns = o->iterations,
                    .turns = turns,
                    .residencies = residencies,
                    .workspaces = workspaces};
  PLANC_TRY(pl_merge_candidates(&merge, out));
  return own->explanation ? planc_candidate_explain(out, "%s", own->explanation) : NULL;
}
