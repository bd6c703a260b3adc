/* When memory of a plan is in use, as simulated: how long its tensors live, and what would be live under an allocator
 * that knows no plan. */
#ifndef PLANC_LIFESPANS_H
#define PLANC_LIFESPANS_H

#include "planc/needs.h"
#include "planc/plan.h"
#include "planc/simulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- How long tensors live ---------------------------------------------------------------------------------------- */

/* Of the tensors of a job that are of a class, in a steady period as simulated: one lives from the start of the first
 * op or copy that its place on the device has, to the end of the last. What leaves and comes back lives twice.
 * Workspaces are no tensors. */
typedef struct planc_lifespan {
  int64_t n, bytes; /* tensors, and their sum */
  int64_t mean_ns, median_ns, longest_ns;
} planc_lifespan;
typedef struct planc_lifespans {
  int32_t n_jobs;
  const planc_lifespan (*of)[PLANC_N_TENSOR_CLASSES]; /* by job, by class; of what is kept there is nothing */
} planc_lifespans;
/* USAGE, BAD_INPUT and INVALID_PLAN as planc_simulate. */
planc_status planc_lifespans_of(const planc_plan *plan, planc_lifespans **out);
void planc_lifespans_free(planc_lifespans *lifespans);

/* --- Memory without a plan ---------------------------------------------------------------------------------------- */

/* When an allocator that knows no plan takes memory to be free (Waterwave, papers/003, 3.2): as soon as the last op
 * that uses it has been launched, which is safe on one stream; or when that op has ended. Either takes memory when the
 * first one is about to be launched. */
typedef enum planc_free_at { PLANC_FREE_AT_SCHEDULE, PLANC_FREE_AT_COMPLETION } planc_free_at;

/* Live bytes of a plan's body under such an allocator, on its GPU: what is there over periods always counts, and
 * workspaces do while their ops do. Times are from the first launch of a period, of which none begins before the one
 * before it has ended. */
enum { PLANC_FOOTPRINT_PARTS = 100 };
typedef struct planc_footprint {
  int64_t peak_bytes, peak_ns; /* the first time at which so much is live */
  int64_t mean_bytes, period_ns;
  int64_t backward_ns;                       /* start of the first backward op, -1 where there is none */
  int64_t most_bytes[PLANC_FOOTPRINT_PARTS]; /* the most in each of so many equal parts of the period */
} planc_footprint;
/* `options` say how hosts launch and have no visitors. USAGE where they launch a body as a whole or map memory in it,
 * and of a plan for several GPUs; else as planc_simulate. */
planc_status planc_footprint_of(const planc_plan *plan, const planc_simulate_options *options, planc_free_at free_at,
                                planc_footprint *out);

#ifdef __cplusplus
}
#endif

#endif
