/* What of the host's contents is kept in storage. */
#ifndef PLANC_LOWER_SPILL_H
#define PLANC_LOWER_SPILL_H

#include "planner/lower/staging.h"

typedef struct planc_spilling {
  planc_staging staging;
  struct planc_stay *gaps; /* by first position */
  int32_t n_gaps;
  int32_t *heap; /* of gaps: the first is the one to be stored first */
  int32_t n_heap;
  int64_t *change; /* by position: of what lives on the host, from the position before */
  int32_t position;
  int64_t live; /* there */
} planc_spilling;

/* Everything is allocated in `arena`. */
planc_status planc_spilling_make(planc_arena *arena, const planc_schedule *schedule, const planc_device *device,
                                 planc_contents *contents, planc_spilling *out);

/* Chooses what is stored and when it is on the host: the versions that nothing reads for the longest time leave it, so
 * that what has to live there at a time is at most `host_bytes`, as far as that can be had. Up to `room_bytes` are used
 * for copies to storage that take longer than the offloads before them, and for copies back ahead of time; less may be
 * kept for that. Returns how long a period takes then, about. */
int64_t planc_spill(planc_spilling *spilling, int64_t host_bytes, int64_t room_bytes);

#endif
