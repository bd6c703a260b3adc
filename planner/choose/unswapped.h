/* An iteration in which nothing is swapped: what swapping policies measure or predict first. */
#ifndef PLANC_CHOOSE_UNSWAPPED_H
#define PLANC_CHOOSE_UNSWAPPED_H

#include "planner/choose/peaks.h"
#include "planner/choose/walk.h"

typedef struct pl_unswapped {
  int64_t *start; /* per position and one more: when it begins, nanoseconds from the period's start */
  pl_peaks peaks; /* of live bytes and workspaces, by position */
} pl_unswapped;

/* With the fastest algorithms whose workspaces are within `timed_room` for the times, within `live_room` for the bytes.
 */
planc_status pl_unswapped_make(const pl_walk *walk, int64_t timed_room, int64_t live_room, pl_arena *arena,
                               pl_unswapped *out);
/* The last position between `from` and `to` that begins at `ns` or before; `from` where there is none. */
int32_t pl_unswapped_last(const pl_unswapped *unswapped, int32_t from, int32_t to, int64_t ns);

#endif
