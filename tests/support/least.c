#include "tests/support/least.h"

planc_status find_least_bytes(const planc_problem *problem, const planc_policy *policy, int64_t *out_bytes) {
  planc_least least;
  PLANC_TRY(planc_find_least(problem, policy, PLANC_MEMORY_DEVICE, NULL, &least));
  planc_plan_free(least.plan);
  *out_bytes = least.bytes;
  return NULL;
}
