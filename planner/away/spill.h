/* What of the contents that are stated on the host is kept in storage. */
#ifndef PLANC_AWAY_SPILL_H
#define PLANC_AWAY_SPILL_H

#include <stdbool.h>

#include "planner/away/staging.h"

typedef struct pl_spilling {
  pl_staging staging;
  struct pl_host_stretch *stretches; /* by first position */
  int32_t n_stretches;
  int32_t *heap; /* of stretches: the first is the one to be stored first */
  int32_t n_heap;
  int64_t *change; /* by position: of what lives on the host, from the position before */
  int32_t position;
  int64_t live;         /* there */
  pl_content *kept_all; /* the best choice while others are tried: it and the contents' own change places */
  pl_read *kept_reads;
} pl_spilling;

/* Everything is allocated in `arena`. */
planc_status pl_spilling_make(pl_arena *arena, const planc_schedule *schedule, const pl_memories *memories,
                              const planc_device *device, pl_contents *contents, pl_spilling *out);

/* What a choice costs: how long a period takes, about, and what it copies to storage and back. */
typedef struct pl_spill_cost {
  int64_t ns, bytes;
} pl_spill_cost;

/* Chooses what is stored and when it is on the host: the versions that nothing reads for the longest time leave it, so
 * that what has to live there at a time is at most `host_bytes`, as far as that can be had. Up to `room_bytes` are used
 * for copies to storage that take longer than the offloads before them, and for copies back ahead of time; less may be
 * kept for that. */
pl_spill_cost pl_spill(pl_spilling *spilling, int64_t host_bytes, int64_t room_bytes);

static inline bool pl_spill_is_cheaper(pl_spill_cost a, pl_spill_cost b) {
  return a.ns != b.ns ? a.ns < b.ns : a.bytes < b.bytes;
}

#endif
