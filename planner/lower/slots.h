/* Where what is away from the devices lies: slots on the host and in storage, and the copies between these two. */
#ifndef PLANC_LOWER_SLOTS_H
#define PLANC_LOWER_SLOTS_H

#include "planc/policy.h"
#include "util/arena.h"

/* A place for a copy. It opens with what is written to it and closes behind a command. */
typedef struct planc_slot {
  int32_t buffer;
  bool stored; /* in storage; else on the host */
  int64_t address;
  int32_t opens;  /* the command at which it is written; PLANC_AT_BOUNDARY: it is there when the period starts */
  int32_t closes; /* PLANC_AT_BOUNDARY: at once, PLANC_STAYS: it is there when the period ends */
} planc_slot;

enum { PLANC_AT_BOUNDARY = -1, PLANC_STAYS = INT32_MAX, PLANC_NO_SLOT = -1 };

/* A copy between host and storage: to storage behind its command, an offload; to the host ahead of it. */
typedef struct planc_tier_copy {
  int32_t from, to; /* slots */
  int32_t command;
  bool load; /* to the host */
} planc_tier_copy;

typedef struct planc_slots {
  const planc_slot *slots; /* those of what is parked come first, by residency */
  int32_t n;
  /* By command: the host slot of an offload or prefetch, PLANC_NO_SLOT with the user or where nothing reads it. */
  const int32_t *of_command;
  const planc_tier_copy *copies; /* by command, at one those ahead of it first */
  int32_t n_copies;
  int64_t host_bytes, storage_bytes; /* of the arenas */
} planc_slots;

enum { PLANC_STORAGE_ALIGNMENT = 4096 }; /* the block of most file systems */

/* Everything is allocated in `arena`; `problem` may be NULL. */
planc_status planc_slots_make(planc_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                              planc_slots *out);

#endif
