/* Jobs that take turns on the GPU, in an order that a policy lists. Each is planned in what the others leave it, and
 * where they do not fit together, with less for each. */
#ifndef PLANC_COLOCATE_TURNS_H
#define PLANC_COLOCATE_TURNS_H

#include "planc/colocate.h"
#include "planner/colocate/jobs/merge.h"

/* What turns are listed of. Everything is borrowed. */
typedef struct pl_turn_takers {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;          /* its */
  const planc_problem *problems; /* by job: with what the others leave it */
  const planc_candidate *jobs;   /* by job: of one iteration, made for that */
  const int32_t *iterations;     /* by job: in a period */
} pl_turn_takers;

typedef struct pl_turn_rules {
  /* Sets merge->turns, which it allocates in `arena`, and merge->n_turns. */
  planc_status (*list)(const pl_turn_takers *of, pl_arena *arena, pl_merge *merge);
  /* *out_ns is by how much the merged candidate misses its deadlines, at most 0 where it meets them all. Where it
   * misses some, jobs are planned with less memory each, so that they wait less for each other's copies, and the
   * candidate that misses by least is taken. NULL: there are no deadlines. */
  planc_status (*lateness)(const pl_turn_takers *of, const planc_candidate *all, int64_t *out_ns);
} pl_turn_rules;

/* What comes of it, as planc_mix_policy.make. */
planc_status pl_turns_make(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                           const pl_turn_rules *rules, planc_candidate *out);

#endif
