/* moDNN's ideal (V) for some of the ops. */
#ifndef PLANC_COST_IDEAL_H
#define PLANC_COST_IDEAL_H

#include "planc/cost.h"

/* planc_costs_ideal without the ops that `left_out` marks, by op; NULL: of all. */
int64_t pl_ideal_but_for(const planc_costs *costs, const planc_graph *graph, int64_t batch, const bool *left_out);

#endif
