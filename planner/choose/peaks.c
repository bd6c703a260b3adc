/* A segment tree that adds to spans and finds their last position above a limit. What was added to all of a node's
 * positions is kept at the node and is never moved down. */
#include "planner/choose/peaks.h"

#include <stdbool.h>

static int64_t most_below(const pl_peaks *peaks, int32_t node) {
  const int64_t *children = &peaks->most[2 * (int64_t)node];
  return children[0] > children[1] ? children[0] : children[1];
}

planc_status pl_peaks_make(pl_arena *arena, const int64_t *live, int32_t n_positions, pl_peaks *out) {
  *out = (pl_peaks){.leaves = 1};
  while (out->leaves < n_positions) out->leaves *= 2;
  PLANC_TRY(PL_NEW(arena, &out->most, 2 * (int64_t)out->leaves));
  PLANC_TRY(PL_NEW(arena, &out->added, 2 * (int64_t)out->leaves));
  for (int32_t i = 0; i < out->leaves; i++) out->most[out->leaves + i] = i < n_positions ? live[i] : 0;
  for (int32_t node = out->leaves - 1; node > 0; node--) {
    out->most[node] = most_below(out, node);
  }
  return NULL;
}

static void add_to(pl_peaks *peaks, int32_t node, int64_t bytes) {
  peaks->most[node] += bytes;
  peaks->added[node] += bytes;
}

/* The node's part is positions `low` up to, not including, `high`. */
static void add_below(pl_peaks *peaks, int32_t node, int32_t low, int32_t high, int32_t first, int32_t last,
                      int64_t bytes) {
  if (last < low || high <= first) return;
  if (first <= low && high - 1 <= last) {
    add_to(peaks, node, bytes);
    return;
  }
  int32_t middle = low + (high - low) / 2;
  add_below(peaks, 2 * node, low, middle, first, last, bytes);
  add_below(peaks, 2 * node + 1, middle, high, first, last, bytes);
  peaks->most[node] = most_below(peaks, node) + peaks->added[node];
}

void pl_peaks_add(pl_peaks *peaks, int32_t first, int32_t last, int64_t bytes) {
  if (first <= last) add_below(peaks, 1, 0, peaks->leaves, first, last, bytes);
}

/* `limit` is what is left of it below the nodes above. */
static int32_t last_below(const pl_peaks *peaks, int32_t node, int32_t low, int32_t high, int32_t first, int32_t last,
                          int64_t limit) {
  if (last < low || high <= first || peaks->most[node] <= limit) return -1;
  if (high - low == 1) return low;
  int32_t middle = low + (high - low) / 2;
  limit -= peaks->added[node];
  int32_t found = last_below(peaks, 2 * node + 1, middle, high, first, last, limit);
  return found >= 0 ? found : last_below(peaks, 2 * node, low, middle, first, last, limit);
}

int32_t pl_peaks_last_above(const pl_peaks *peaks, int32_t first, int32_t last, int64_t limit) {
  return first <= last ? last_below(peaks, 1, 0, peaks->leaves, first, last, limit) : -1;
}
