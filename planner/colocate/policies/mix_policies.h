/* The entry points of the policies for mixes, one file each (see the table in mix_policy.c). */
#ifndef PLANC_COLOCATE_MIX_POLICIES_H
#define PLANC_COLOCATE_MIX_POLICIES_H

#include "planc/colocate.h"

/* Whether one that chooses among the others asks a policy: that has plans, of such mixes. */
static inline bool pl_mix_is_asked(const planc_mix *mix, const planc_mix_policy *policy) {
  bool suits = planc_mix_has_deadlines(mix) || !(policy->supports & PLANC_MIX_DEADLINES);
  return policy->make && suits && !(policy->supports & PLANC_MIX_CHOOSES);
}

planc_status pl_mix_temporal(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out);
planc_status pl_mix_preemptive(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                               planc_candidate *out);
planc_status pl_mix_zico(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out);
planc_status pl_mix_waterwave(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                              planc_candidate *out);
planc_status pl_mix_waterwave_s(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                                planc_candidate *out);
planc_status pl_mix_tensile(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out);
planc_status pl_mix_vdnn_conv(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                              planc_candidate *out);
planc_status pl_mix_capuchin(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out);
planc_status pl_mix_auto(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_candidate *out);
planc_status pl_mix_mps(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, planc_mix_estimate *out);

#endif
