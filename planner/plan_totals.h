/* What can be told of a plan without running it: what its body moves and computes, and what is live. */
#ifndef PLANC_PLANNER_PLAN_TOTALS_H
#define PLANC_PLANNER_PLAN_TOTALS_H

#include "planc/simulate.h"

/* Sets peaks, bytes moved, compute and recompute time of *out. */
planc_status planc_plan_totals(const planc_plan *plan, planc_simulation *out);

/* INVALID_PLAN when the boundary or the body names a buffer, residency or instance that there is not. Whoever follows a
 * plan that may not have been checked asks first. */
planc_status planc_plan_check_names(const planc_plan *plan, const planc_trace *trace);

#endif
