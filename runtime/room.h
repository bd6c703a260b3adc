/* What a run takes of the machine's memory, told before it takes any. */
#ifndef PLANRT_ROOM_H
#define PLANRT_ROOM_H

#include "runtime/session.h"

/* The arenas of all replicas in memories of a kind; INT64_MAX where they are beyond it. */
int64_t rt_arenas(const planc_plan *plan, planc_memory_kind kind);
/* DEVICE where the machine has less memory than the run takes of it: the system may promise more than there is, and end
 * the program when it is touched. For a session that has its trace and its options. */
planc_status rt_room_check(const planrt_session *session);

#endif
