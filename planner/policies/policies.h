/* The entry points of the policies, one file each (see the table in policy.c). */
#ifndef PLANC_POLICIES_POLICIES_H
#define PLANC_POLICIES_POLICIES_H

#include "planc/policy.h"

/* Makes an order of a trace's instances, all of them once. */
typedef planc_status (*pl_orderer)(const planc_trace *trace, planc_order **out);
/* Rounds of `sub_batch` with all data on the device; where that does not fit, the plan that needs least. In the order
 * of `orderer`; NULL = the trace's. */
planc_status pl_make_resident(const planc_evaluator *evaluator, int64_t sub_batch, pl_orderer orderer,
                              planc_candidate *out);

planc_status pl_policy_ideal(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_none(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_vdnn_all(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_vdnn_conv(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_vdnn_dyn(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_vdnn_plus(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_modnn(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_naive(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_prefetch_one(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_lms(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_priced(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_capuchin(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_superneurons(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_chen(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_cheap(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_tensile(const planc_evaluator *evaluator, planc_candidate *out);
planc_status pl_policy_window(const planc_evaluator *evaluator, planc_candidate *out);

#endif
