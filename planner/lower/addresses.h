/* Where everything of a schedule lies: the blanks that a policy left, filled by placement. */
#ifndef PLANC_LOWER_ADDRESSES_H
#define PLANC_LOWER_ADDRESSES_H

#include "planc/schedule.h"
#include "util/arena.h"

/* The GPU that a job runs on: each replica has its own. */
static inline int32_t planc_gpu_of(const planc_trace *trace, int32_t job) {
  return trace->jobs[job].replica;
}

typedef struct planc_addresses {
  /* Device address by residency; of what is at home on the host, that of its first residency in the period. */
  const int64_t *residencies;
  const int64_t *homes; /* host address by residency of what is at home */
  /* By command: the workspace of an exec on the device; the slot of an offload or prefetch on the host, PLANC_USER for
   * the user's memory, PLANC_DROPPED for an offload that nothing reads. 0 for others. */
  const int64_t *commands;
  int32_t gpus;
  int64_t arena_bytes, host_arena_bytes; /* of each GPU */
} planc_addresses;

enum { PLANC_DROPPED = -2 };

/* Everything is allocated in `arena`. INTERNAL when addresses that the policy stated overlap or a boundary buffer does
 * not come back to its place. */
planc_status planc_assign_addresses(planc_arena *arena, const planc_schedule *schedule, planc_addresses *out);

#endif
