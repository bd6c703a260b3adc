/* Where everything of a schedule lies: the blanks that a policy left, filled by placement. */
#ifndef PLANC_LOWER_ADDRESSES_H
#define PLANC_LOWER_ADDRESSES_H

#include "planner/lower/slots.h"
#include "util/arena.h"

/* The GPU that a job runs on: each replica has its own. */
static inline int32_t planc_gpu_of(const planc_trace *trace, int32_t job) {
  return trace->jobs[job].replica;
}

typedef struct planc_addresses {
  const int64_t *residencies; /* device address by residency; 0 for what is parked */
  const int64_t *workspaces;  /* by command, of execs */
  planc_slots away;           /* what is parked has the slots of its residencies' numbers */
  int32_t gpus;
  int64_t arena_bytes; /* of each GPU */
} planc_addresses;

static inline bool planc_has_storage(const planc_addresses *addresses) {
  return addresses->away.storage_bytes > 0;
}

/* The memories of the GPUs come first, then the host's, then the storage's. */
static inline int32_t planc_memory_of_slot(const planc_addresses *addresses, int32_t slot) {
  return addresses->gpus + addresses->away.slots[slot].stored;
}

enum { PLANC_N_STORAGE_STREAMS = 2 }; /* of a job: to the storage, and from it */

/* Everything is allocated in `arena`. Where `problem` is given and has a storage, what is more than the host's budget
 * is kept there. INTERNAL when addresses that the policy stated overlap or a boundary buffer does not come back to its
 * place. */
planc_status planc_assign_addresses(planc_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                                    planc_addresses *out);

#endif
