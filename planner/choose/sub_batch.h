/* Sub-batch size selection of moDNN (IV-A), used by `modnn` and `vdnn+`. */
#ifndef PLANC_CHOOSE_SUB_BATCH_H
#define PLANC_CHOOSE_SUB_BATCH_H

#include "planc/problem.h"

/* The sub-batch for the problem's budget: the user's, the whole batch where the graph may not be split, else the fixed
 * point of Eq. 3. INFEASIBLE names the op that does not fit even with one sample (or the whole batch) and no workspace.
 */
planc_status pl_sub_batch_select(const planc_problem *problem, int64_t *out_sub_batch);

/* The sub-batch of a policy that chooses none: the user's, else the whole batch. */
static inline int64_t pl_sub_batch_asked(const planc_problem *problem) {
  return problem->job.sub_batch ? problem->job.sub_batch : problem->job.batch;
}

/* Whether the policy may choose to run the problem's graph in rounds: the graph can (planc_check_rounds), the user has
 * not fixed the rounds, and the samples of a batch are not coupled or may be parted. */
planc_status pl_may_split(const planc_problem *problem, bool *out);

#endif
