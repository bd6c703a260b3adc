/* Where everything of a schedule lies: the blanks that a policy left, filled by placement. */
#ifndef PLANC_LOWER_ADDRESSES_H
#define PLANC_LOWER_ADDRESSES_H

#include "planc/candidate.h"
#include "planner/away/slots.h"
#include "util/arena.h"

typedef struct pl_addresses {
  const int64_t *residencies;          /* device address by residency; 0 for what is away */
  const int64_t *workspaces;           /* by command, of execs */
  pl_slots away;                       /* what starts the period away has the slots of its residencies' numbers */
  int64_t arena_bytes;                 /* of the device */
  planc_virtual_memory virtual_memory; /* that addresses of the device are in; without chunks: they are the arena's */
  const pl_item *on_device; /* placed: residencies, and workspaces behind them; no bytes where another has its place */
  const int32_t *what;      /* by item, as in pl_occupants */
  int32_t n_on_device;
} pl_addresses;

/* What is placed in a memory. */
static inline int64_t pl_arena_of(const pl_addresses *addresses, int32_t memory) {
  bool device = addresses->away.memories.rows[memory].kind == PLANC_MEMORY_DEVICE;
  return device ? addresses->arena_bytes : addresses->away.arena_bytes[memory];
}

/* What is placed, and where what is large lies if it is the rest: by residency and by command. */
typedef struct pl_placing {
  planc_placing what;
  const int64_t *residencies, *workspaces;
} pl_placing;

/* Fills all but `away`, which pl_slots_make does. Everything is allocated in `arena`. Of the terms it is what they ask
 * of placement, and their cache, which may know it. `room` is the candidate's: the bytes that its policy counts with,
 * or 0. Where no address is stated and placement needs more than that, addresses within it are searched for; if none
 * are found the arena is larger. INTERNAL when addresses that the policy stated overlap or a boundary buffer does not
 * come back to its place. A part is placed only of what states no address and is to be in one piece; for the rest the
 * room makes no difference. */
planc_status pl_assign_device_addresses(pl_arena *arena, const planc_schedule *schedule, const planc_terms *terms,
                                        int64_t room, const pl_placing *placing, pl_addresses *out);

#endif
