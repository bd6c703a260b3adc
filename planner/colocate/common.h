/* What the jobs of a mix have in common. */
#ifndef PLANC_COLOCATE_COMMON_H
#define PLANC_COLOCATE_COMMON_H

#include "cost/profile.h"
#include "planc/colocate.h"

/* The problem that all jobs pose together: budgets and settings are the first job's. What is reserved is what any of
 * their profiles reserves at most, and an algorithm's code is what any of them says that it takes at most. */
typedef struct pl_common {
  planc_problem problem;
  planc_profile profile; /* as the first job's otherwise */
  pl_arena arena;
} pl_common;

/* A job's problem with the budgets, the settings and what else is asked of `first`. */
planc_problem pl_common_terms(const planc_problem *first, const planc_problem *job);

/* A common problem stays where it is while it is used. Freed with pl_common_free, whatever the outcome. */
planc_status pl_common_make(const planc_mix *mix, pl_common *out);
void pl_common_free(pl_common *common);

#endif
