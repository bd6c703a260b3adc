/* `prefetch-1`: what the backward pass reads of the forward pass is swapped out at its last forward use, and back in
 * one op ahead (Out-of-core training, 2, on vDNN, SuperNeurons and layer-centric reuse, which it compares with).
 *
 * The copy out begins when the last forward reader, or the writer where nothing reads, has ended. It runs beside the op
 * that follows and is over, and the place free, when that has ended. The copy in runs beside the op ahead of the first
 * backward reader; from then on the data stays until its last use. All that is made in the forward pass takes part, and
 * what is fed, which needs no copy out; parameters, state and gradients stay. Branches: a buffer that several forward
 * ops read, as the input of a residual block, stays until the last of them has run. */
#include "planner/choose/absences.h"
#include "planner/policies/policies.h"

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);

planc_status pl_policy_prefetch_one(const planc_evaluator *evaluator, planc_candidate *out) {
  pl_absence_rule rule = {.choose = choose};
  return pl_walk_fit(evaluator, pl_make_absences, &rule, out);
}

static bool crosses(const planc_order *order, const planc_gap *gap) {
  planc_kind kind = order->trace->buffers[gap->buffer].kind;
  bool data = kind == PLANC_KIND_activation || kind == PLANC_KIND_temp || kind == PLANC_KIND_input;
  return data && planc_order_phase(order, gap->from) == PLANC_PHASE_forward &&
         planc_order_phase(order, gap->to) != PLANC_PHASE_forward;
}

static bool leave_beside_ops(const planc_order *order, const planc_gap *gap, pl_absence *absence) {
  absence->copy = gap->from;
  absence->leave = gap->from + 1;
  absence->fetch = gap->to - 1;
  return crosses(order, gap) && absence->leave < absence->fetch;
}

static planc_status choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out) {
  (void)context;
  return pl_absences_of_gaps(walk->order, leave_beside_ops, arena, out);
}
