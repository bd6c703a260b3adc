/* What a policy has to decide with, beside what the user rules out. */
#ifndef PLANC_PLANNER_MEANS_H
#define PLANC_PLANNER_MEANS_H

#include "planc/policy.h"

/* USAGE where what the user rules out leaves the policy nothing to do. */
planc_status pl_check_means(const planc_problem *problem, const planc_policy *policy);

#endif
