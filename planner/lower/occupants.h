/* What is in a memory and when, for messages where something has no place there (no_place.h). */
#ifndef PLANC_LOWER_OCCUPANTS_H
#define PLANC_LOWER_OCCUPANTS_H

#include "planner/lower/addresses.h"
#include "planner/memory/no_place.h"

/* By position of addresses.c, the instance that runs there or next; -1 = none does. */
planc_status pl_instances_at(pl_arena *arena, const planc_schedule *schedule, const int32_t **out);

/* As pl_occupants_tell, of a schedule with addresses: of the device's memory or of the host's. Empty also for
 * virtual memory, where an address says nothing of the room that is left. */
planc_status pl_schedule_no_place(const planc_schedule *schedule, const pl_addresses *addresses,
                                  planc_memory_kind memory, int64_t room, char **out_text);
/* The same of a plan that is right, in its memory of a kind with the largest peak. */
planc_status pl_plan_no_place(const planc_plan *plan, planc_memory_kind memory, int64_t room, char **out_text);

#endif
