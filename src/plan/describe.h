/* What a plan says of the device it was made for. */
#ifndef PLANC_PLAN_DESCRIBE_H
#define PLANC_PLAN_DESCRIBE_H

#include "planc/plan.h"

/* How a profile describes the plan's first GPU and its links to the host; the storage if links lead there and back. */
planc_device pl_plan_describe(const planc_plan *plan);

#endif
