/* Lowering a candidate of a job alone. */
#ifndef PLANC_TESTS_LOWER_FOR_H
#define PLANC_TESTS_LOWER_FOR_H

#include "planc/candidate.h"

/* planc_lower for the target of the problem. */
static inline planc_status lower_for(const planc_problem *problem, const char *policy, const planc_candidate *candidate,
                                     planc_plan **out) {
  const planc_target target = planc_target_of(problem);
  return planc_lower(&target, policy, candidate, out);
}

#endif
