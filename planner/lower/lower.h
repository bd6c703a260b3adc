/* A plan of a candidate that has been placed (lower.c). */
#ifndef PLANC_LOWER_LOWER_H
#define PLANC_LOWER_LOWER_H

#include "planc/candidate.h"
#include "planner/lower/addresses.h"

/* planc_lower of a candidate whose schedule has the device addresses `placed`, borrowed; NULL: they are still to be
 * assigned. */
planc_status pl_lower_placed(const planc_target *target, const char *policy, const planc_candidate *candidate,
                             const pl_addresses *placed, planc_plan **out);

#endif
