/* Latencies: what a plan takes for each op, algorithm and batch, what a run measured, and the weighted mean of both. */
#ifndef PLANC_MEASURED_LATENCIES_H
#define PLANC_MEASURED_LATENCIES_H

#include "plan/copies.h"
#include "planc/update.h"
#include "util/vec.h"

/* Of an op by an algorithm at a batch: sums over the instructions that run it, and the mean of one. */
typedef struct pl_latency {
  int32_t op;
  const char *algorithm; /* the plan's */
  int64_t batch;
  planc_latency_sum sum;
  int64_t new_ns;
  int64_t workspace_bytes, busy_ppm; /* the most of any */
} pl_latency;

typedef struct pl_latencies {
  VEC(pl_latency) ops;         /* by op, algorithm and batch */
  planc_latency_sum all, adds; /* of all instructions that compute; of those that add up gradients */
  int64_t add_bytes;           /* that all of these add */
  int64_t least_ns;            /* the shortest new one of all */
  planc_latency_sum copies[PLANC_N_ROUTES];
} pl_latencies;

/* `acquired` is the plan's; `times_ns` what was measured, by timed instruction of the timeline. *out is freed by
 * pl_latencies_free, also after a failure. */
planc_status pl_latencies_find(const planc_update_options *options, const pl_acquired *acquired,
                               const int64_t *times_ns, pl_latencies *out);
void pl_latencies_free(pl_latencies *latencies);

#endif
