/* The table of policies, and what every policy starts from. */
#include "planc/policy.h"

#include <stdlib.h>
#include <string.h>

#include "planner/policies.h"

const planc_policy *planc_policies(void) {
  static const planc_policy policies[] = {
      {"ideal", "everything on a device without limit; only simulated", PLANC_POLICY_SIMULATED, planc_policy_ideal},
      {"best", "the fastest of all policies that fit",
       PLANC_POLICY_CHOOSES | PLANC_POLICY_ROUNDS | PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_VMM |
           PLANC_POLICY_WINDOW | PLANC_POLICY_SWAP_RATE,
       NULL},
      {"none", "everything resident, no swapping", 0, planc_policy_none},
      {"vdnn-all", "vDNN, offloads the inputs of all layers", PLANC_POLICY_SWAPS, planc_policy_vdnn_all},
      {"vdnn-conv", "vDNN, offloads the inputs of convolutions", PLANC_POLICY_SWAPS, planc_policy_vdnn_conv},
      {"vdnn-dyn", "vDNN, tries offloading and algorithms in the order of its paper", PLANC_POLICY_SWAPS,
       planc_policy_vdnn_dyn},
      {"vdnn+", "vdnn-dyn in moDNN's sub-batches", PLANC_POLICY_SWAPS | PLANC_POLICY_ROUNDS, planc_policy_vdnn_plus},
      {"modnn", "moDNN: sub-batches, offloading, prefetching and algorithms chosen together",
       PLANC_POLICY_SWAPS | PLANC_POLICY_ROUNDS, planc_policy_modnn},
      {"naive", "swaps everything around every op", PLANC_POLICY_SWAPS, planc_policy_naive},
      {"prefetch-1", "swaps out what the backward pass reads, and in one op ahead", PLANC_POLICY_SWAPS,
       planc_policy_prefetch_one},
      {"lms", "Large Model Support: swaps between distant levels of the graph, tuned to the budget", PLANC_POLICY_SWAPS,
       planc_policy_lms},
      {"capuchin", "Capuchin: swaps or recomputes single tensors, by their free time in a measured iteration",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES, planc_policy_capuchin},
      {"tensile", "TENSILE: swaps single tensors, across iterations too, as far as the link leaves time for",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES | PLANC_POLICY_SWAP_RATE, planc_policy_tensile},
      {"superneurons", "SuperNeurons: swaps outputs of convolutions, recomputes those of cheaper layers",
       PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES, planc_policy_superneurons},
      {"chen", "checkpoints every sqrt(n) ops, recomputes the segments between", PLANC_POLICY_RECOMPUTES,
       planc_policy_chen},
      {"cheap", "keeps outputs of convolutions and matrix products, recomputes the rest", PLANC_POLICY_RECOMPUTES,
       planc_policy_cheap},
      {"window", "swaps what lies outside a window of bytes around the op that runs",
       PLANC_POLICY_SWAPS | PLANC_POLICY_VMM | PLANC_POLICY_WINDOW, planc_policy_window},
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

void planc_candidate_free(planc_candidate *candidate) {
  planc_schedule_free(candidate->schedule);
  planc_costs_free(candidate->costs);
  planc_trace_free(candidate->trace);
  *candidate = (planc_candidate){0};
}

/* A trace that no plan file could hold; and the longest of those that policies choose among, of which they make many:
 * longer ones have rounds without number for a batch without measure. */
enum { MOST_INSTANCES = 16 << 20, MOST_CHOSEN = 1 << 20 };

/* Rounds that the user asked for are his mistake; those of a policy come from a budget that allows no larger ones. */
static planc_status check_length(const planc_problem *problem, int64_t sub_batch, int64_t n_rounds) {
  int32_t most = problem->sub_batch ? MOST_INSTANCES : MOST_CHOSEN;
  if (n_rounds <= most / problem->graph->n_ops || n_rounds == 1) return NULL;
  return planc_error(problem->sub_batch ? PLANC_USAGE : PLANC_INFEASIBLE,
                     "sub-batches of %lld make %lld rounds of %d ops, which are more than %dM op instances",
                     (long long)sub_batch, (long long)n_rounds, problem->graph->n_ops, most >> 20);
}

static planc_status expand_rounds(const planc_problem *problem, int64_t sub_batch, int64_t *rounds, int32_t n_rounds,
                                  planc_candidate *out) {
  for (int32_t r = 0; r < n_rounds; r++) rounds[r] = sub_batch;
  int64_t last = problem->batch - sub_batch * (n_rounds - 1);
  rounds[n_rounds - 1] = last;
  planc_job job = {
      .graph = problem->graph, .batch = problem->batch, .n_rounds = n_rounds, .rounds = rounds, .iterations = 1};
  job.replicas = problem->gpus;
  PLANC_TRY(problem->gpus > 1 ? planc_expand_replica(&job, &out->trace) : planc_expand(&job, 1, &out->trace));
  int64_t batches[] = {sub_batch, last, problem->batch};
  return planc_costs_make(problem->profile, problem->graph, 3, batches, &out->costs);
}

planc_status planc_candidate_rounds(const planc_problem *problem, int64_t sub_batch, planc_candidate *out) {
  if (sub_batch < 1 || sub_batch > problem->batch) {
    return planc_error(PLANC_USAGE, "a sub-batch of %lld does not divide a batch of %lld into rounds",
                       (long long)sub_batch, (long long)problem->batch);
  }
  bool parted = sub_batch < problem->batch || problem->gpus > 1;
  if (parted && planc_graph_is_batch_coupled(problem->graph) && !problem->split_batch_norm) {
    return planc_refusal(PLANC_USAGE, PLANC_REMEDY_SPLIT_BATCH_NORM,
                         "graph %s has ops that couple the samples of a batch (batch normalisation): running it in %s "
                         "changes its results",
                         problem->graph->name, problem->gpus > 1 ? "parts on several GPUs" : "sub-batches");
  }
  int64_t n_rounds = (problem->batch + sub_batch - 1) / sub_batch;
  PLANC_TRY(check_length(problem, sub_batch, n_rounds));
  int64_t *rounds = malloc((size_t)n_rounds * sizeof *rounds);
  if (!rounds) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  out->sub_batch = sub_batch;
  planc_status status = expand_rounds(problem, sub_batch, rounds, (int32_t)n_rounds, out);
  free(rounds);
  return status;
}
