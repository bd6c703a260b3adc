/* The steps from a mix on common terms to a plan (colocate.c), which the search for the least budget takes as well. */
#ifndef PLANC_COLOCATE_MIX_PLAN_H
#define PLANC_COLOCATE_MIX_PLAN_H

#include "planner/colocate/jobs/common.h"

/* Everything is borrowed. */
typedef struct pl_mix_asked {
  const pl_common *common;
  const planc_mix_policy *policy;
  const planc_mix_share *shares;
} pl_mix_asked;

/* planc_colocate, by a policy that does not choose among others. */
planc_status pl_colocate_by(const planc_mix *mix, const planc_mix_policy *policy, planc_mix_share *shares,
                            planc_plan **out);
/* The plan for a target of all jobs together, held to the budgets and simulated: a pl_plan_maker. */
planc_status pl_mix_make(const void *asked, const planc_target *target, planc_plan **out);
/* Sets the speeds and responses of `shares` to those of a plan of the mix; LATE where requests take longer than their
 * deadline, or a job is slower than it may be. */
planc_status pl_mix_judge(const planc_mix *mix, const planc_plan *plan, planc_mix_share *shares);
/* By how much the job misses what it is asked for that misses most, in parts per million of that; 0: none does. */
int64_t pl_mix_missed(const planc_mix_share *shares, int32_t n_jobs);
/* planc_mix_resolve for such a target. */
planc_status pl_mix_resolve(const pl_common *common, const planc_target *target, planc_mix_share *shares);

#endif
