/* The tables of an updated profile: every op of the plan's graph, by algorithm and batch. */
#ifndef PLANC_MEASURED_UPDATE_TABLES_H
#define PLANC_MEASURED_UPDATE_TABLES_H

#include "cost/profile.h"
#include "planner/measured/latencies.h"

/* How much longer things take than was known of them; base_ns 0: nothing is known. */
typedef struct pl_update_ratio {
  int64_t new_ns, base_ns;
} pl_update_ratio;

/* A time in this ratio, within what a profile can say. */
int64_t pl_update_scale(int64_t ns, pl_update_ratio by);

/* `job` is the one that was measured, or one of several that are alike; `base` what was known of it, or NULL. Makes the
 * tables in `made`, whose constants are set, and says how the times of elementwise ops have changed. */
planc_status pl_update_tables(const planc_profile *base, const planc_job *job, const pl_latencies *latencies,
                              planc_profile *made, pl_update_ratio *out_elementwise);

#endif
