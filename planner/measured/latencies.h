/* Latencies: what a plan takes for each op, algorithm and batch, what a run measured, and the weighted mean of both. */
#ifndef PLANC_MEASURED_LATENCIES_H
#define PLANC_MEASURED_LATENCIES_H

#include "plan/layout.h"
#include "planc/update.h"
#include "util/vec.h"

/* Of an op by an algorithm at a batch: sums over the instructions that run it, and the mean of one. */
typedef struct planc_latency {
  int32_t op;
  const char *algorithm; /* the plan's */
  int64_t batch;
  planc_latency_sum sum;
  int64_t new_ns;
  int64_t workspace_bytes, busy_ppm; /* the most of any */
} planc_latency;

typedef struct planc_latencies {
  VEC(planc_latency) ops;      /* by op, algorithm and batch */
  planc_latency_sum all, adds; /* of all instructions that compute; of those that add up gradients */
  int64_t add_bytes;           /* that all of these add */
  int64_t least_ns;            /* the shortest new one of all */
  planc_latency_sum copies[2]; /* to the device, to the host */
} planc_latencies;

/* `acquired` is the plan's; `times_ns` what was measured, by timed instruction of the timeline. *out is freed by
 * planc_latencies_free, also after a failure. */
planc_status planc_latencies_find(const planc_update_options *options, const planc_acquired *acquired,
                                  const int64_t *times_ns, planc_latencies *out);
void planc_latencies_free(planc_latencies *latencies);

#endif
