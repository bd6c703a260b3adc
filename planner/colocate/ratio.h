/* The scheduling ratio of a mix: how many iterations of each job make a period (Zico, 7.2). */
#ifndef PLANC_COLOCATE_RATIO_H
#define PLANC_COLOCATE_RATIO_H

#include <stdint.h>

typedef struct pl_ratio_job {
  int64_t alone_ns;   /* of an iteration */
  int32_t iterations; /* as given, 0 = free */
} pl_ratio_job;

/* Iterations by job, at most `most` of those that are free: such that all jobs take about as long alone as the longest
 * one whose iterations are given. Where none are, the slowest job runs as often as it takes for no job to lack more
 * than a tenth of the longest, or else for the least that one can lack; the shorter period wins. */
void pl_choose_ratio(const pl_ratio_job *jobs, int32_t n, int32_t most, int32_t *out);

#endif
