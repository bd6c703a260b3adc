/* Where everything of a schedule lies: the blanks that a policy left, filled by placement. */
#ifndef PLANC_LOWER_ADDRESSES_H
#define PLANC_LOWER_ADDRESSES_H

#include "planc/schedule.h"
#include "util/arena.h"

/* The GPU that a job runs on: each replica has its own. */
static inline int32_t planc_gpu_of(const planc_trace *trace, int32_t job) {
  return trace->jobs[job].replica;
}

/* A place on the host for a copy, from one command to another. */
typedef struct planc_host_slot {
  int32_t buffer;
  int64_t address;
  int32_t opens;  /* before this command; PLANC_AT_BOUNDARY: it is there when the period starts */
  int32_t closes; /* after this command; PLANC_AT_BOUNDARY: at once, PLANC_STAYS: it is there when the period ends */
} planc_host_slot;

enum { PLANC_AT_BOUNDARY = -1, PLANC_STAYS = INT32_MAX, PLANC_NO_SLOT = -1 };

typedef struct planc_addresses {
  const int64_t *residencies; /* device address by residency; 0 for what is parked on the host */
  const int64_t *workspaces;  /* by command, of execs */
  /* Those of what is parked on the host come first, by residency. */
  const planc_host_slot *slots;
  int32_t n_slots;
  const int32_t
      *slot_of; /* by command: of an offload or prefetch, PLANC_NO_SLOT with the user or where nothing reads it */
  int32_t gpus;
  int64_t arena_bytes, host_arena_bytes; /* of each GPU; of the host */
} planc_addresses;

/* Everything is allocated in `arena`. INTERNAL when addresses that the policy stated overlap or a boundary buffer does
 * not come back to its place. */
planc_status planc_assign_addresses(planc_arena *arena, const planc_schedule *schedule, planc_addresses *out);

#endif
