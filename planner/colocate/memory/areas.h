/* Zico's areas of memory (papers/000, 6.2 and 6.3): which of a job's tensors go into regions that all jobs share, and
 * where everything else is, which is the job's alone.
 *
 * Feature and gradient maps (planc_tensor_class) are in regions, each class in its own. What is kept, and an area for
 * each job's temporaries, is the job's for all time: it begins at address 0, and the regions behind it. Temporaries as
 * large as a region are in regions, with the feature maps, which the paper's, being small, are not. */
#ifndef PLANC_COLOCATE_AREAS_H
#define PLANC_COLOCATE_AREAS_H

#include "planc/needs.h"
#include "planner/colocate/jobs/timing.h"

/* Whether tensors of a class go into what all jobs share. */
static inline bool pl_is_shared(planc_tensor_class class) {
  return class == PLANC_TENSOR_FEATURE || class == PLANC_TENSOR_GRADIENT;
}
/* Owners of regions (regions.h): each job has one for each shared class. */
static inline int32_t pl_owner_of(int32_t job, planc_tensor_class class) {
  return 2 * job + (class == PLANC_TENSOR_GRADIENT);
}
static inline int32_t pl_n_owners(int32_t n_jobs) {
  return 2 * n_jobs;
}

/* From this command on, a pass holds this many bytes in regions. */
typedef struct pl_demand_step {
  int32_t command;
  int64_t bytes;
} pl_demand_step;

typedef struct pl_job_areas {
  const planc_tensor_class *classes; /* by residency; of a large temporary that of feature maps */
  const int64_t *residencies;        /* by residency: where it is, PLANC_BLANK of what goes into regions */
  int64_t *workspaces;               /* by command: of execs */
  int32_t n_steps;
  const pl_demand_step *steps; /* of a pass that is alone; the last one holds none */
  int64_t most_bytes;          /* that it holds */
} pl_job_areas;

typedef struct pl_areas {
  int64_t region_bytes; /* 0: every tensor is taken by itself */
  int64_t private_bytes;
  const pl_job_areas *jobs;
} pl_areas;

/* Makes tables of addresses, (*out)[pass][residency of the job's candidate]: places of what is private, blanks for what
 * goes into regions. Everything is allocated in `arena`. */
planc_status pl_areas_addresses(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t ***out);

/* Of candidates for one iteration; everything is allocated in `arena`. */
planc_status pl_areas_make(pl_arena *arena, int32_t n_jobs, const planc_candidate *jobs, int64_t region_bytes,
                           pl_areas *out);

#endif
