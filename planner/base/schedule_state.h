/* What a schedule's builder knows: the commands so far, and what every residency and host copy holds after them.
 *
 * A buffer's open residencies form a list, the one opened last in front, and so do its host copies; both are short
 * (rarely more than two), so that every command takes constant time. */
#ifndef PLANC_BASE_SCHEDULE_STATE_H
#define PLANC_BASE_SCHEDULE_STATE_H

#include "planc/schedule.h"
#include "util/vec.h"

enum { SCHEDULE_NONE = -1, SCHEDULE_EMPTY = -1 };

/* What a residency holds, beside planc_residency. */
typedef struct residency_state {
  int32_t content;      /* version, or SCHEDULE_EMPTY */
  int32_t older, newer; /* neighbours in the buffer's list of open residencies */
  bool open, copied;    /* copied: a copy was started on it */
} residency_state;

typedef struct host_copy {
  int32_t version, command; /* the offload that made it, or PLANC_PARKED */
  int32_t older;
} host_copy;

typedef struct buffer_state {
  int32_t newest_open, newest_copy;
  bool boundary, parked, delivered;
} buffer_state;

struct planc_schedule {
  const planc_trace *trace;
  const planc_costs **costs; /* by job */
  int32_t *n_compute;        /* by job: its compute streams */
  VEC(planc_command) commands;
  VEC(planc_residency) residencies;
  VEC(residency_state) states; /* by residency */
  VEC(host_copy) copies;
  VEC(int32_t) uses;
  planc_virtual_memory memory;
  VEC(planc_mapping) mappings;
  int32_t n_boundary, n_parked;
  int32_t n_executed;
  buffer_state *buffers; /* by buffer */
  int32_t *ran;          /* by instance: the variant of its first run, SCHEDULE_NONE = it has not run */
};

/* The newest host copy of `version`, or SCHEDULE_NONE. */
int32_t pl_schedule_find_host_copy(const planc_schedule *s, int32_t buffer, int32_t version);
/* The host copy that `version` comes from, or SCHEDULE_NONE: for the gradients of other replicas, that of the own one.
 */
int32_t pl_schedule_find_source(const planc_schedule *s, int32_t buffer, int32_t version);
/* Whether `version` comes from the user. */
bool pl_schedule_user_holds(const planc_schedule *s, int32_t buffer, int32_t version);

#endif
