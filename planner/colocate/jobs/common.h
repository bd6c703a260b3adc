/* One device for the jobs of a mix, each of which has a profile. */
#ifndef PLANC_COLOCATE_COMMON_H
#define PLANC_COLOCATE_COMMON_H

#include "cost/profile.h"
#include "planc/colocate.h"

/* A mix whose jobs have the first one's device, on which is reserved what any of their profiles reserves at most, and
 * copies slow ops down by the mean of what their profiles say. */
typedef struct pl_common {
  planc_mix mix;
  planc_target all;      /* what all jobs together are planned for, on the mix's terms. An algorithm's code is the most
                            that any profile says it takes */
  planc_profile profile; /* of that */
  planc_workload *jobs;
  planc_profile *profiles;    /* by job; empty where an earlier job's serves */
  planc_workload *plain_jobs; /* the same jobs, of which every op has its baseline alone */
  planc_profile *plain_profiles;
  planc_placement_cache *own; /* of the mix's terms; NULL where the caller's are taken */
  planc_watch watch;          /* of them, where there is one: it is not told which policies jobs are asked */
  pl_arena arena;
} pl_common;

/* USAGE for what is no mix (mix_check.h). A common mix stays where it is while it is used. Freed with pl_common_free,
 * whatever the outcome. */
planc_status pl_common_make(const planc_mix *mix, pl_common *out);
/* The mix for a target of all its jobs together. */
planc_mix pl_common_mix(const pl_common *common, const planc_target *target);
void pl_common_free(pl_common *common);

#endif
