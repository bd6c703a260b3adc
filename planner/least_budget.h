/* The search for the least budget (policy.h), of whatever makes plans. */
#ifndef PLANC_PLANNER_LEAST_BUDGET_H
#define PLANC_PLANNER_LEAST_BUDGET_H

#include "planc/policy.h"

/* Makes the plan for the target's budgets, or fails with INFEASIBLE. */
typedef planc_status (*pl_plan_maker)(const void *user, const planc_target *target, planc_plan **out);

typedef struct pl_least_of {
  pl_plan_maker make;
  const void *user;
  const char *name; /* of who plans, for messages */
  int32_t most;     /* plans that may be made; 0 = PLANC_LEAST_PLANS */
  bool fills;       /* its plans may take whatever there is */
  int64_t first;    /* the budget to begin with where no failure is known; 0 = none */
} pl_least_of;

/* planc_find_least of any maker. */
planc_status pl_find_least(const planc_target *target, const pl_least_of *of, planc_memory_kind memory,
                           planc_status failed, planc_least *out);

#endif
