/* `cheap`: keeps the outputs of convolutions and matrix products and recomputes the rest, as SuperNeurons does with its
 * cheap layers (Wang et al., PPoPP 2018). Branches need no rule: what is dropped is restored from what its writer
 * reads. */
#include "graph/optypes.h"
#include "planner/choose/recompute.h"
#include "planner/policies/policies.h"

static planc_status keep_dear(const planc_order *order, bool *keep);

planc_status pl_policy_cheap(const planc_evaluator *evaluator, planc_candidate *out) {
  return pl_recompute_plan(evaluator, keep_dear, out);
}

static planc_status keep_dear(const planc_order *order, bool *keep) {
  const planc_trace *trace = order->trace;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    planc_class class_ = pl_op_class(planc_trace_op(trace, i));
    if (class_ != PLANC_CLASS_conv && class_ != PLANC_CLASS_gemm) continue;
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      if (trace->accesses[a].write >= 0) keep[trace->accesses[a].buffer] = true;
    }
  }
  return NULL;
}
