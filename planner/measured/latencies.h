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

/* Of the jobs that share a table. */
typedef struct pl_latencies {
  VEC(pl_latency) ops;         /* by op, algorithm and batch */
  planc_latency_sum all, adds; /* of all instructions that compute; of those that add up gradients */
  int64_t n_adds;              /* sums that the latter make: an exchange makes one for each other replica */
  int64_t add_bytes;           /* of all these sums */
  int64_t least_ns;            /* the shortest new one of all ops and adds */
} pl_latencies;

/* What is found: tables of latencies, and sums over the jobs. */
typedef struct pl_latency_tables {
  const int32_t *table_of; /* by job: its table; tables are numbered in the order of their first jobs */
  pl_latencies *tables;
  planc_latency_sum *jobs; /* by job: of all that computes */
  planc_latency_sum copies[PLANC_N_ROUTES];
} pl_latency_tables;

/* `acquired` is the plan's; `times_ns` what was measured, by timed instruction of the timeline. `out` has room for the
 * jobs and their tables, all zero, which pl_latencies_free frees, also after a failure. */
planc_status pl_latencies_find(const planc_update_options *options, const pl_acquired *acquired,
                               const int64_t *times_ns, pl_latency_tables *out);
void pl_latencies_free(pl_latencies *latencies);

void pl_latency_sum_add(planc_latency_sum *to, const planc_latency_sum *what);

/* Time of a copy of the plan alone on a link; one from other replicas copies from each of them. */
int64_t pl_copy_ns(const planc_plan *plan, const planc_link *link, const planc_instr *copy);

#endif
