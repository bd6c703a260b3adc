/* The evaluator that policies are handed: it lowers candidates and simulates their plans. */
#ifndef PLANC_PLANNER_EVALUATE_H
#define PLANC_PLANNER_EVALUATE_H

#include "planc/evaluator.h"

/* Of candidates of a job alone. The problem is borrowed; there is nothing to free. */
planc_evaluator pl_evaluator_of(const planc_problem *problem);
/* Of candidates of several jobs. What the target borrows outlives the evaluator. */
planc_evaluator pl_evaluator_of_all(const planc_target *target);

/* A lower bound of the candidate's period, of one replica: its ops one after the other, recomputes included. */
int64_t pl_candidate_least_time(const planc_candidate *candidate);

#endif
