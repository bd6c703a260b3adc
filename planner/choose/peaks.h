/* Bytes live at each position of an order, as spans of positions are relieved of some: a tree over the positions in
 * which every question and every change takes logarithmic time. */
#ifndef PLANC_CHOOSE_PEAKS_H
#define PLANC_CHOOSE_PEAKS_H

#include "util/arena.h"

typedef struct pl_peaks {
  int32_t leaves;        /* a power of two, at least the number of positions */
  int64_t *most, *added; /* per node, the root at 1: the most below it; what was added to all below it, in `most` too */
} pl_peaks;

planc_status pl_peaks_make(pl_arena *arena, const int64_t *live, int32_t n_positions, pl_peaks *out);
/* Spans are given by their first and last position, and may be empty. */
void pl_peaks_add(pl_peaks *peaks, int32_t first, int32_t last, int64_t bytes);
/* The last position of the span with more than `limit` bytes; -1 if there is none. */
int32_t pl_peaks_last_above(const pl_peaks *peaks, int32_t first, int32_t last, int64_t limit);

#endif
