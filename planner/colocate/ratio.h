/* The scheduling ratio of a mix: how many iterations of each job make a period (Zico, 7.2). */
#ifndef PLANC_COLOCATE_RATIO_H
#define PLANC_COLOCATE_RATIO_H

#include <stdint.h>

typedef struct pl_ratio_job {
  int64_t alone_ns;   /* of an iteration, over the weight of the job */
  int32_t iterations; /* as given, 0 = free */
} pl_ratio_job;

/* Chooses each job's iterations, at most `most` where they are free, so that all jobs take about as long alone, for
 * their weights, as the longest one whose iterations are given. Where none are given, the slowest job gets the fewest
 * iterations with which no job falls short of the longest by more than a tenth; where no number achieves that, the
 * fewest with the smallest shortfall. */
void pl_choose_ratio(const pl_ratio_job *jobs, int32_t n, int32_t most, int32_t *out);

#endif
