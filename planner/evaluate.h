/* The evaluator that policies are handed: it lowers candidates and simulates their plans. */
#ifndef PLANC_PLANNER_EVALUATE_H
#define PLANC_PLANNER_EVALUATE_H

#include "planc/policy.h"

/* There is nothing to free. */
planc_evaluator pl_evaluator_of(const planc_problem *problem);

/* The part of a device's bytes that is reserved, in words that follow the memory: "" where there is none. Returns
 * `text`. */
enum { PL_RESERVED_TEXT = 64 };
const char *pl_reserved_format(planc_memory_kind memory, int64_t bytes, char text[PL_RESERVED_TEXT]);

/* A lower bound of the candidate's iteration, of one replica: its ops one after the other, recomputes included. */
int64_t pl_candidate_least_time(const planc_candidate *candidate);

#endif
