/* The table of policies for mixes. */
#include <string.h>

#include "planner/colocate/policies/mix_policies.h"

const planc_mix_policy *planc_mix_policies(void) {
  static const planc_mix_policy policies[] = {
      {.name = "temporal",
       .summary = "the jobs take turns, each alone on the GPU",
       .supports = PLANC_MIX_TURNS,
       .make = pl_mix_temporal},
      {.name = "preemptive",
       .summary = "the same, interrupted between ops by jobs with a deadline",
       .supports = PLANC_MIX_DEADLINES | PLANC_MIX_TURNS,
       .make = pl_mix_preemptive},
      {.name = "mps",
       .summary = "MPS with unified memory: pools of their own, pages migrate on demand; compared only",
       .estimate = pl_mix_mps},
      {.name = "zico",
       .summary = "Zico: side by side, iterations shifted until what they hold in regions fits",
       .supports = PLANC_MIX_REGIONS | PLANC_MIX_ROUNDS,
       .falls_back = "temporal",
       .make = pl_mix_zico},
      {.name = "waterwave",
       .summary = "Waterwave: side by side in node groups, one takes what another lets go",
       .supports = PLANC_MIX_GROUPS | PLANC_MIX_BARRIERS,
       .falls_back = "temporal",
       .make = pl_mix_waterwave},
      {.name = "waterwave-s",
       .summary = "the same with iterations cut in two",
       .supports = PLANC_MIX_BARRIERS,
       .falls_back = "temporal",
       .make = pl_mix_waterwave_s},
      {.name = "tensile",
       .summary = "TENSILE: side by side, each job with memory of its own, swapping what the link has time for",
       .supports = PLANC_POLICY_SWAP_RATE | PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES,
       .make = pl_mix_tensile},
      {.name = "vdnn-conv",
       .summary = "vDNN, for convolutions: side by side, each job planned as if alone, with memory of its own",
       .supports = PLANC_POLICY_SWAPS,
       .make = pl_mix_vdnn_conv},
      {.name = "capuchin",
       .summary = "Capuchin: the same",
       .supports = PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES,
       .make = pl_mix_capuchin},
      {.name = "auto",
       .summary = "the fastest of those that fit",
       .supports = PLANC_MIX_CHOOSES | PLANC_MIX_REGIONS | PLANC_MIX_ROUNDS | PLANC_MIX_GROUPS | PLANC_MIX_BARRIERS |
                   PLANC_POLICY_SWAP_RATE | PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES,
       .make = pl_mix_auto},
      {0},
  };
  return policies;
}

const planc_mix_policy *planc_mix_policy_find(const char *name) {
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++)
    if (strcmp(policy->name, name) == 0) return policy;
  return NULL;
}
