/* What a policy may ask of a candidate while it chooses: its peak, its time, whether it fits. */
#ifndef PLANC_PLANNER_EVALUATE_H
#define PLANC_PLANNER_EVALUATE_H

#include "planc/policy.h"

/* The physical peak that the candidate's plan would have, reserved bytes included. */
planc_status planc_candidate_peak(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_bytes);

/* A lower bound of that peak, in linear time: what is open at a time, without gaps between. */
planc_status planc_candidate_live(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_bytes);

/* A lower bound of the candidate's iteration, of one replica: its ops one after the other, recomputes included. */
int64_t planc_candidate_least_time(const planc_candidate *candidate);

/* INFEASIBLE where what a GPU of the candidate's plan takes by itself is more than the problem's budgets, or than that
 * of the host: for policies that can choose another candidate. */
planc_status planc_candidate_hold(const planc_problem *problem, const planc_candidate *candidate);
planc_status planc_candidate_hold_to_host(const planc_problem *problem, const planc_candidate *candidate);

/* Of two reasons why something is INFEASIBLE, *kept (NULL: none yet) and a new one, keeps the one that asks for less
 * and frees the other. Of those that ask for the same, or do not know, the first stays. */
void planc_keep_lesser(planc_status *kept, planc_status reason);

/* The iteration time that the simulator gives the candidate's plan. */
planc_status planc_candidate_time(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_ns);

#endif
