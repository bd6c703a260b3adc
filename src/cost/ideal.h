/* moDNN's ideal (V) for some of the ops, and for rounds. */
#ifndef PLANC_COST_IDEAL_H
#define PLANC_COST_IDEAL_H

#include "planc/cost.h"

/* planc_costs_ideal without the ops that `left_out` marks, by op; NULL: of all. */
int64_t pl_ideal_but_for(const planc_costs *costs, const planc_graph *graph, int64_t batch, const bool *left_out);

/* The ideal of `batch` samples in rounds of `size`, 1 to `batch`, the last one of what is left, and of the optimizer's
 * ops once, for the whole batch: no plan in such rounds takes less. In ns. */
planc_status pl_ideal_of_rounds(const planc_profile *profile, const planc_graph *graph, int64_t batch, int64_t size,
                                int64_t *out_ns);
/* The same, from costs that were made for the batch and for the rounds' sizes, which is the caller's to see to. */
int64_t pl_ideal_in_rounds(const planc_costs *costs, const planc_graph *graph, int64_t batch, int64_t size);

#endif
