/* What swapping and recomputing cost and save: the measures that the papers compare policies by. Ratios are in parts
 * per million, rounded towards less. */
#ifndef PLANC_METRICS_H
#define PLANC_METRICS_H

#include "planc/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLANC_NO_METRIC INT64_MIN /* of a measure that is not defined: what it divides by is 0, or is not there */

typedef struct planc_metrics {
  int64_t overhead_ppm;   /* period over ideal, less one (moDNN, V-A) */
  int64_t throughput_ppm; /* samples per second, in millionths of a sample */
  int64_t moved_bytes;    /* copied to GPUs and from them, together */
  /* TENSILE, V-A. Its text has lost the formulas; all complete rows of its tables obey these. */
  int64_t msr_ppm;        /* memory saving rate, 1 - M_e / M_v */
  int64_t eor_ppm;        /* extra overhead rate, T_e / T_v */
  int64_t eor_excess_ppm; /* the same less one, as the authors' programs print it */
  int64_t cbr_ppm;        /* cost-benefit rate, MSR / EOR */
} planc_metrics;

/* What a period of a run comes to, as its plan predicts it or a simulation finds it. It stands alone, without the plan.
 */
typedef struct planc_outcome {
  int64_t period_ns;
  int64_t peak_bytes[PLANC_N_MEMORY_KINDS];
  planc_job_predictions total; /* of all jobs */
} planc_outcome;
/* As the plan predicts it. */
planc_outcome planc_outcome_of(const planc_plan *plan);

/* The measures of a run of `samples` samples, against the one without scheduling (M_v, T_v: peak and period of
 * `vanilla`); NULL leaves what needs that undefined. */
void planc_metrics_of(const planc_outcome *run, int64_t samples, const planc_outcome *vanilla, planc_metrics *out);

/* What a plan does to need less memory, in words: "swaps", "rounds alone (gradient accumulation)". A static string. */
planc_status planc_plan_means(const planc_plan *plan, const char **out);

/* Without scheduling: the whole batch at once, each tensor on the device from its first access to its last, with the
 * fastest algorithms, on a device without limit. */
planc_status planc_vanilla_of(const planc_problem *problem, planc_outcome *out);

#ifdef __cplusplus
}
#endif

#endif
