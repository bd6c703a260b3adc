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

/* INFEASIBLE where the plan's predicted peaks are more than the problem's budgets. */
planc_status planc_hold_to_budgets(const planc_problem *problem, const planc_plan *plan);

/* INFEASIBLE where the candidate, of one replica, takes more of the host than the problem's budget. */
planc_status planc_candidate_hold_to_host(const planc_problem *problem, const planc_candidate *candidate);

/* Whether `a` is the better thing to ask for: a host that is too small comes before a device that is, as the device's
 * budget is then met. Less is better, where it is known. */
bool planc_asks_for_less(planc_shortage a, planc_shortage b);

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
