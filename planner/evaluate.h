/* The evaluator that policies are handed: it lowers candidates and simulates their plans. */
#ifndef PLANC_PLANNER_EVALUATE_H
#define PLANC_PLANNER_EVALUATE_H

#include "planc/policy.h"

/* There is nothing to free. */
planc_evaluator pl_evaluator_of(const planc_problem *problem);

/* What is needed of a memory and what its budget is, in words: `beside` bytes of it are reserved on the device, or
 * storage below the host. Returns `text`. */
enum { PL_SHORTAGE_TEXT = 128 };
const char *pl_shortage_format(planc_shortage shortage, int64_t budget, int64_t beside, char text[PL_SHORTAGE_TEXT]);

/* A lower bound of the candidate's iteration, of one replica: its ops one after the other, recomputes included. */
int64_t pl_candidate_least_time(const planc_candidate *candidate);

#endif
