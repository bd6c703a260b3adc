/* The trace that a plan's jobs stand for. */
#ifndef PLANC_PLAN_PLAN_TRACE_H
#define PLANC_PLAN_PLAN_TRACE_H

#include "planc/plan.h"
#include "planc/trace.h"

/* As planc_expand, for a plan that nobody has checked: INVALID_PLAN where its body is too short for its jobs. Freed
 * with planc_trace_free. */
planc_status pl_plan_expand(const planc_plan *plan, planc_trace **out);

#endif
