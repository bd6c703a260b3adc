/* Bytes live while each instance runs, as spans of instances are relieved of some: a tree over the instances in which
 * every question and every change takes logarithmic time. */
#ifndef PLANC_CHOOSE_PEAKS_H
#define PLANC_CHOOSE_PEAKS_H

#include "util/arena.h"

typedef struct planc_peaks {
  int32_t leaves;        /* a power of two, at least the number of instances */
  int64_t *most, *added; /* per node, the root at 1: the most below it; what was added to all below it, in `most` too */
} planc_peaks;

planc_status planc_peaks_make(planc_arena *arena, const int64_t *live, int32_t n_instances, planc_peaks *out);
/* Spans are given by their first and last instance, and may be empty. */
void planc_peaks_add(planc_peaks *peaks, int32_t first, int32_t last, int64_t bytes);
/* The last instance of the span with more than `limit` bytes; -1 if there is none. */
int32_t planc_peaks_last_above(const planc_peaks *peaks, int32_t first, int32_t last, int64_t limit);

#endif
