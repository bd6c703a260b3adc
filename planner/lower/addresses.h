/* Where everything of a schedule lies: the blanks that a policy left, filled by placement. */
#ifndef PLANC_LOWER_ADDRESSES_H
#define PLANC_LOWER_ADDRESSES_H

#include "planner/lower/slots.h"
#include "util/arena.h"

typedef struct planc_addresses {
  const int64_t *residencies; /* device address by residency; 0 for what is parked */
  const int64_t *workspaces;  /* by command, of execs */
  planc_slots away;           /* what is parked has the slots of its residencies' numbers */
  int64_t arena_bytes;
} planc_addresses;

static inline bool planc_has_storage(const planc_addresses *addresses) {
  return addresses->away.storage_bytes > 0;
}

/* Memories in the order of the plan's table; behind them the user's. */
enum { PLANC_IN_DEVICE, PLANC_IN_HOST, PLANC_IN_STORAGE };
static inline int32_t planc_memory_of_slot(const planc_addresses *addresses, int32_t slot) {
  return addresses->away.slots[slot].stored ? PLANC_IN_STORAGE : PLANC_IN_HOST;
}

enum { PLANC_N_STORAGE_STREAMS = 2 }; /* of a job: to the storage, and from it */

/* Everything is allocated in `arena`. Where `problem` is given and has a storage, what is more than the host's budget
 * is kept there. INTERNAL when addresses that the policy stated overlap or a boundary buffer does not come back to its
 * place. */
planc_status planc_assign_addresses(planc_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                                    planc_addresses *out);

#endif
