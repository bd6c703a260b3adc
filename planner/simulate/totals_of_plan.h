/* What of a simulation follows from the plan's instructions alone. */
#ifndef PLANC_SIMULATE_TOTALS_OF_PLAN_H
#define PLANC_SIMULATE_TOTALS_OF_PLAN_H

#include "plan/copies.h"
#include "planc/simulate.h"

/* Sets peaks, bytes copied, compute and recompute time of *out, of a plan whose streams are right. */
planc_status pl_plan_totals(const planc_plan *plan, const pl_acquired *acquired, planc_simulation *out);

#endif
