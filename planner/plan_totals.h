/* What can be told of a plan without running it: what its body moves and computes, and what is live. */
#ifndef PLANC_PLANNER_PLAN_TOTALS_H
#define PLANC_PLANNER_PLAN_TOTALS_H

#include "planc/simulate.h"

/* Sets peaks, bytes moved, compute and recompute time of *out. */
planc_status planc_plan_totals(const planc_plan *plan, planc_simulation *out);

#endif
