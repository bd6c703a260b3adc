/* Plans of small random graphs: of every kind of policy, in virtual memory, for two or three GPUs, and of random
 * schedules that have a third of what persists parked on the host, every other one stated again in less room. */
#ifndef PLANC_TESTS_RANDPLAN_H
#define PLANC_TESTS_RANDPLAN_H

#include "planc/cost.h"
#include "planc/plan.h"

enum { RANDPLANS_OF_ONE = 64, RANDPLANS_OF_POLICIES = RANDPLANS_OF_ONE + 17, RANDPLANS = RANDPLANS_OF_POLICIES + 24 };

/* Plan 0 .. RANDPLANS-1: up to RANDPLANS_OF_ONE a policy's for one GPU, up to RANDPLANS_OF_POLICIES one for two or
 * three, then random schedules. Policies take turns of 16. Both are freed by the caller. */
void randplan_make(int number, const planc_profile *profile, planc_graph **out_graph, planc_plan **out);

#endif
