/* The links that a profile tells of: a GPU's to and from the host, and the storage's. Which copies go by each follows
 * from the kinds of memory alone. */
#ifndef PLANC_PLAN_ROUTES_H
#define PLANC_PLAN_ROUTES_H

#include "planc/plan.h"

/* The route from a memory of one kind to another memory, and its link as a profile has it. */
planc_route pl_route_between(planc_memory_kind from, planc_memory_kind to);
planc_link *pl_route_link(planc_device *device, planc_route route);

/* How a profile describes the plan's first GPU and its links to the host; the storage if links lead there and back. */
planc_device pl_plan_describe(const planc_plan *plan);

#endif
