/* Sub-batch size selection of moDNN (IV-A), used by `modnn` and `vdnn+`. */
#ifndef PLANC_PLANNER_SUB_BATCH_H
#define PLANC_PLANNER_SUB_BATCH_H

#include "planc/policy.h"

/* The sub-batch for the problem's budget: the user's, the whole batch where the graph may not be split, else the fixed
 * point of Eq. 3. INFEASIBLE names the op that does not fit even with one sample (or the whole batch) and no workspace.
 */
planc_status planc_sub_batch_select(const planc_problem *problem, int64_t *out_sub_batch);

/* True when the problem's graph may be run in rounds. */
static inline bool planc_may_split(const planc_problem *problem) {
  return problem->split_batch_norm || !planc_graph_is_batch_coupled(problem->graph);
}

#endif
