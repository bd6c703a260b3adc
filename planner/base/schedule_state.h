/* What a schedule's builder knows: the commands so far, and what every residency holds after them.
 *
 * A buffer's open residencies on the device form a list, the one opened last in front, and so do those away from it;
 * both are short (rarely more than two), so that every command takes constant time. */
#ifndef PLANC_BASE_SCHEDULE_STATE_H
#define PLANC_BASE_SCHEDULE_STATE_H

#include "planc/schedule.h"
#include "planner/base/memory_table.h"
#include "util/vec.h"

enum { SCHEDULE_NONE = -1, SCHEDULE_EMPTY = -1 };

/* What a residency holds, beside planc_residency. */
typedef struct schedule_residency {
  int32_t content;      /* version, or SCHEDULE_EMPTY */
  int32_t older, newer; /* neighbours in the buffer's list; newer: only on the device */
  bool open;            /* those away always are */
  bool copied;          /* on the device: a copy was started on it */
} schedule_residency;

typedef struct schedule_buffer {
  int32_t newest_open, newest_away;
  int32_t starts_away; /* its residency when the period starts, SCHEDULE_NONE = it is not away from the device then */
  bool boundary, delivered;
} schedule_buffer;

struct planc_schedule {
  const planc_trace *trace;
  pl_memories memories;
  const planc_costs **costs; /* by job */
  int32_t *n_compute;        /* by job: its compute streams */
  VEC(planc_command) commands;
  VEC(planc_residency) residencies;
  VEC(schedule_residency) states; /* by residency */
  VEC(int32_t) uses;
  planc_virtual_memory memory;
  VEC(planc_mapping) mappings;
  int32_t n_boundary, n_away;
  int32_t n_executed;
  schedule_buffer *buffers; /* by buffer */
  int32_t *ran;             /* by instance: the variant of its first run, SCHEDULE_NONE = it has not run */
};

/* The residency that `version` can be copied to the device from, or SCHEDULE_NONE: for the gradients of other replicas,
 * that of the own one. */
int32_t pl_schedule_find_source(const planc_schedule *s, int32_t buffer, int32_t version);
/* Whether `version` comes from the user. */
bool pl_schedule_user_holds(const planc_schedule *s, int32_t buffer, int32_t version);
/* Whether a residency can still be read: the last version of a buffer that starts the period away takes over its place.
 */
bool pl_schedule_is_there(const planc_schedule *s, int32_t residency);

#endif
