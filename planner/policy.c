/* The table of policies. */
#include "planc/policy.h"

#include <string.h>

#include "planner/policies/policies.h"

/* What a policy can do that chooses among all. */
enum {
  ANY = PLANC_POLICY_CHOOSES | PLANC_POLICY_ROUNDS | PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_VMM |
        PLANC_POLICY_PAGED | PLANC_POLICY_WINDOW | PLANC_POLICY_SWAP_RATE
};

const planc_policy *planc_policies(void) {
  static const planc_policy policies[] = {
      {"ideal", "everything on a device without limit; only simulated", PLANC_POLICY_SIMULATED, pl_policy_ideal},
      {"auto", "the fastest of all policies that fit", PLANC_POLICY_SEARCHES | ANY, NULL},
      {"best", "the fastest of all policies that fit but priced, which takes longer", ANY, NULL},
      {"none", "everything resident, no swapping", PLANC_POLICY_RESIDENT | PLANC_POLICY_PAGED, pl_policy_none},
      {"vdnn-all", "vDNN, offloads the inputs of all layers", PLANC_POLICY_SWAPS | PLANC_POLICY_PAGED,
       pl_policy_vdnn_all},
      {"vdnn-conv", "vDNN, offloads the inputs of convolutions", PLANC_POLICY_SWAPS | PLANC_POLICY_PAGED,
       pl_policy_vdnn_conv},
      {"vdnn-dyn", "vDNN, tries offloading and algorithms in the order of its paper",
       PLANC_POLICY_SWAPS | PLANC_POLICY_PAGED, pl_policy_vdnn_dyn},
      {"vdnn+", "vdnn-dyn in moDNN's sub-batches", PLANC_POLICY_SWAPS | PLANC_POLICY_ROUNDS | PLANC_POLICY_PAGED,
       pl_policy_vdnn_plus},
      {"modnn", "moDNN: sub-batches, offloading, prefetching and algorithms chosen together",
       PLANC_POLICY_SWAPS | PLANC_POLICY_ROUNDS, pl_policy_modnn},
      {"naive", "swaps everything around every op", PLANC_POLICY_SWAPS | PLANC_POLICY_PAGED, pl_policy_naive},
      {"prefetch-1", "swaps out what the backward pass reads, and in one op ahead",
       PLANC_POLICY_SWAPS | PLANC_POLICY_PAGED, pl_policy_prefetch_one},
      {"lms", "Large Model Support: swaps between distant levels of the graph, tuned to the budget", PLANC_POLICY_SWAPS,
       pl_policy_lms},
      {"capuchin", "Capuchin: swaps or recomputes single tensors, by their free time in a measured iteration",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_PAGED, pl_policy_capuchin},
      {"tensile", "TENSILE: swaps single tensors, across iterations too, as far as the link leaves time for",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_SWAP_RATE | PLANC_POLICY_PAGED, pl_policy_tensile},
      {"superneurons", "SuperNeurons: swaps outputs of convolutions, recomputes those of cheaper layers",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_PAGED, pl_policy_superneurons},
      {"chen", "checkpoints every sqrt(n) ops, recomputes the segments between",
       PLANC_POLICY_RECOMPUTES | PLANC_POLICY_PAGED, pl_policy_chen},
      {"cheap", "keeps outputs of convolutions and matrix products, recomputes the rest",
       PLANC_POLICY_RECOMPUTES | PLANC_POLICY_PAGED, pl_policy_cheap},
      {"window", "swaps what lies outside a window of bytes around the op that runs",
       PLANC_POLICY_SWAPS | PLANC_POLICY_VMM | PLANC_POLICY_PAGED | PLANC_POLICY_WINDOW, pl_policy_window},
      {"priced", "searches for what to swap and recompute, and for addresses, under the prices of planc bound",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_SEARCHES | PLANC_POLICY_PAGED, pl_policy_priced},
      {0},
  };
  return policies;
}

const planc_policy *planc_policy_find(const char *name) {
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (strcmp(policy->name, name) == 0) return policy;
  }
  return NULL;
}

bool planc_policy_places(const planc_policy *policy, planc_placement placement) {
  uint32_t any = PLANC_POLICY_SIMULATED | (placement == PLANC_PLACEMENT_PAGED ? PLANC_POLICY_PAGED : PLANC_POLICY_VMM);
  return placement == PLANC_PLACEMENT_BEST_FIT || (policy->supports & any) > 0;
}

bool planc_policy_is_resident(const char *name) {
  const planc_policy *policy = planc_policy_find(name);
  return policy && (policy->supports & PLANC_POLICY_RESIDENT);
}
