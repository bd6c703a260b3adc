/* An iteration in which nothing is swapped: what swapping policies measure or predict first. */
#ifndef PLANC_CHOOSE_PREDICTED_H
#define PLANC_CHOOSE_PREDICTED_H

#include "planner/choose/peaks.h"
#include "planner/choose/walk.h"

typedef struct pl_predicted {
  int64_t *start; /* per position and one more: when it begins, nanoseconds from the period's start */
  pl_peaks peaks; /* of live bytes and workspaces, by position */
} pl_predicted;

/* With the fastest algorithms whose workspaces are within `timed_room` for the times, within `live_room` for the bytes.
 */
planc_status pl_predicted_make(const pl_walk *walk, int64_t timed_room, int64_t live_room, pl_arena *arena,
                               pl_predicted *out);
/* The last position between `from` and `to` that begins at `ns` or before; `from` where there is none. */
int32_t pl_predicted_last(const pl_predicted *predicted, int32_t from, int32_t to, int64_t ns);

#endif
