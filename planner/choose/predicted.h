/* An iteration in which nothing is swapped: what swapping policies measure or predict first. */
#ifndef PLANC_CHOOSE_PREDICTED_H
#define PLANC_CHOOSE_PREDICTED_H

#include "planner/choose/peaks.h"
#include "planner/choose/walk.h"

typedef struct planc_predicted {
  int64_t *start;    /* per instance and one more: when it begins, nanoseconds from the period's start */
  planc_peaks peaks; /* of live bytes and workspaces, by instance */
} planc_predicted;

/* With the fastest algorithms whose workspaces are within `timed_room` for the times, within `live_room` for the bytes.
 */
planc_status planc_predicted_make(const planc_walk *walk, int64_t timed_room, int64_t live_room, planc_arena *arena,
                                  planc_predicted *out);
/* The last instance between `from` and `to` that begins at `ns` or before; `from` where there is none. */
int32_t planc_predicted_last(const planc_predicted *predicted, int32_t from, int32_t to, int64_t ns);

#endif
