/* What the jobs of a mix have in common. */
#ifndef PLANC_COLOCATE_COMMON_H
#define PLANC_COLOCATE_COMMON_H

#include "cost/profile.h"
#include "planc/colocate.h"

/* A mix on common terms: each job with the budgets, the settings and what else is asked of the first, and with one
 * device for all, the first job's; what is reserved is what any of their profiles reserves at most. */
typedef struct pl_common {
  planc_mix mix;         /* on these terms */
  planc_problem problem; /* of all jobs together: an algorithm's code is the most that any of them says it takes, all
                            else is the first job's */
  planc_profile profile; /* of that */
  planc_problem *jobs;
  planc_profile *profiles; /* by job; empty where an earlier job's serves */
  pl_arena arena;
} pl_common;

/* A common problem stays where it is while it is used. Freed with pl_common_free, whatever the outcome. */
planc_status pl_common_make(const planc_mix *mix, pl_common *out);
void pl_common_free(pl_common *common);

/* The job with what else is asked of `problem`, which is the common one or differs from it in budgets. */
planc_problem pl_common_job(const pl_common *common, int32_t job, const planc_problem *problem);

#endif
