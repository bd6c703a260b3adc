/* The least budget that a test plans with. */
#ifndef PLANC_TESTS_LEAST_H
#define PLANC_TESTS_LEAST_H

#include "planc/policy.h"

/* planc_find_least for the device, without the plan. */
planc_status find_least_bytes(const planc_problem *problem, const planc_policy *policy, int64_t *out_bytes);

#endif
