/* Rounds of one job side by side (Zico, 2.2): a round that leaves part of the GPU idle shares it with the others, as
 * jobs do. Their gradients are summed in the order of the rounds, and the optimizer comes once, after all. */
#ifndef PLANC_COLOCATE_SIDE_BY_SIDE_H
#define PLANC_COLOCATE_SIDE_BY_SIDE_H

#include "planner/colocate/jobs/solo.h"

/* Of each job whose problem asks for it and that keeps all it needs on the device, the candidate is replaced by one
 * whose rounds run side by side, each on a compute stream of its own, where that is faster within the budget. The
 * candidates' explanations tell which it is. The problems are those that the solos were made for. */
planc_status pl_solos_side_by_side(const planc_mix_evaluator *evaluator, const planc_problem *problems,
                                   pl_solos *solos);

#endif
