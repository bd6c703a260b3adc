/* Rounds of one job side by side (Zico, 2.2): a round that leaves part of the GPU idle shares it with the others, as
 * jobs do, while their gradients are summed in the order of the rounds and the optimizer comes once, after all. */
#ifndef PLANC_COLOCATE_SIDE_BY_SIDE_H
#define PLANC_COLOCATE_SIDE_BY_SIDE_H

#include "planc/policy.h"

/* `candidate` is of one iteration of a job that keeps all it needs on the device. It is replaced by one whose rounds
 * run side by side, each on a compute stream of its own, where that is faster within the budget. The explanation tells
 * which it is. */
planc_status pl_rounds_side_by_side(const planc_evaluator *evaluator, planc_candidate *candidate);

#endif
