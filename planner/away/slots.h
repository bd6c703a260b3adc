/* Where what is away from the devices lies: slots in the other memories, and the copies that lowering adds between
 * these.
 */
#ifndef PLANC_AWAY_SLOTS_H
#define PLANC_AWAY_SLOTS_H

#include "planc/schedule.h"
#include "planner/base/memory_table.h"
#include "planner/memory/placement.h"
#include "util/arena.h"

/* A place for a copy. It opens with what is written to it and closes behind a command. */
typedef struct pl_slot {
  int32_t buffer;
  int32_t memory;
  int64_t address;
  int32_t opens;  /* the command at which it is written; PL_AT_BOUNDARY: it is there when the period starts */
  int32_t closes; /* PL_AT_BOUNDARY: at once, PL_STAYS: it is there when the period ends */
} pl_slot;

enum { PL_AT_BOUNDARY = -1, PL_STAYS = INT32_MAX, PL_NO_SIDE = -1 };

/* What a command copies from and to, of what is away: contents or slots, or PL_NO_SIDE. */
typedef struct pl_sides {
  int32_t source, target;
} pl_sides;

/* Command c stands at position c + 1, the boundary at 0 and behind all. */
static inline pl_lifetime pl_slot_lifetime(int32_t opens, int32_t closes, int32_t n_commands) {
  int32_t end = closes == PL_STAYS ? n_commands + 2 : closes == PL_AT_BOUNDARY ? 1 : closes + 2;
  return (pl_lifetime){opens == PL_AT_BOUNDARY ? 0 : opens + 1, end};
}

/* A copy that no command states, between two memories: outwards behind its command, which writes what is copied;
 * towards the device ahead of it. */
typedef struct pl_slot_copy {
  int32_t from, to; /* slots */
  int32_t command;
  bool load; /* towards the device */
} pl_slot_copy;

typedef struct pl_slots {
  pl_memories memories;
  const pl_slot *slots; /* those of what starts the period away come first, by residency */
  int32_t n;
  const pl_sides *of_command; /* by command: slots; no target where nobody reads what would be written */
  const pl_slot_copy *copies; /* by command, at one those ahead of it first */
  int32_t n_copies;
  int64_t arena_bytes[PL_MAX_MEMORIES]; /* 0 of the device */
} pl_slots;

/* Everything is allocated in `arena`. Terms and profile may be NULL: then no budget limits the host, and nothing is
 * stored. `roomy`: a slot is not written again before what was copied from it is in use, so that nothing waits for it,
 * where the host has room for that. Where there is storage and the host has too little for what the schedule states
 * there, spill.h chooses what is kept in storage; where not enough can be, the host's bytes are more than its budget:
 * the caller holds plans to their budgets. Fails with USAGE if the profile does not tell what copies to storage cost,
 * and the schedule states any or the host has a budget. INTERNAL where schedule and terms have other memories. */
planc_status pl_slots_make(pl_arena *arena, const planc_schedule *schedule, const planc_terms *terms,
                           const planc_profile *profile, bool roomy, pl_slots *out);

#endif
