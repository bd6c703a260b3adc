/* The entry points of the policies, one file each (see the table in policy.c), and what they ask of lowering. */
#ifndef PLANC_PLANNER_POLICIES_H
#define PLANC_PLANNER_POLICIES_H

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

/* INFEASIBLE where the plan's predicted peaks are more than the problem's budgets. */
planc_status planc_hold_to_budgets(const planc_problem *problem, const planc_plan *plan);

/* Rounds of `sub_batch` with all data on the device; where that does not fit, the plan that needs least. */
planc_status planc_make_resident(const planc_problem *problem, int64_t sub_batch, planc_candidate *out);

/* moDNN's ideal (V): the sum of the ops' times, fastest algorithms, whole batch, all data resident. */
planc_status planc_ideal_time(const planc_profile *profile, const planc_graph *graph, int64_t batch, int64_t *out_ns);

/* The iteration time that the simulator gives the candidate's plan. */
planc_status planc_candidate_time(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_ns);

/* The plan of the fastest policy that fits (best.c). */
planc_status planc_make_best(const planc_problem *problem, planc_plan **out);

planc_status planc_policy_ideal(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_none(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_vdnn_all(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_vdnn_conv(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_vdnn_dyn(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_vdnn_plus(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_modnn(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_naive(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_prefetch_one(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_lms(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_capuchin(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_superneurons(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_chen(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_cheap(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_tensile(const planc_problem *problem, planc_candidate *out);
planc_status planc_policy_window(const planc_problem *problem, planc_candidate *out);

#endif
