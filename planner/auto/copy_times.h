/* When the copies of a rehearsed iteration are made, and how long it takes with them. Copies out are made as early as
 * they can, in the order in which their gaps begin. Copies in are made in the order in which they are needed, each as
 * late as still hides it, and only where memory has room. */
#ifndef PLANC_AUTO_COPY_TIMES_H
#define PLANC_AUTO_COPY_TIMES_H

#include "planner/auto/rehearsal.h"

typedef struct pl_copy_times {
  const pl_rehearsal *rehearsal; /* borrowed */
  int64_t begin_ns, period_ns;
  int64_t in_ns, out_ns;         /* that the links are busy */
  int32_t *copy, *leave, *fetch; /* by gap that is not spent on the device, as in pl_absence */
  int32_t *in_order;             /* gaps that end with a copy in, in the order of these */
  int32_t n_in;
  /* By position: when it begins if nothing waits, one more at the end; when it ends; bytes that are left. */
  int64_t *start, *ends, *slack;
  int32_t *away; /* gaps that are not spent on the device: first what users feed, then by position */
  int32_t n_away;
  int32_t *first_needed, *also_needed; /* by position, by gap: what is needed there first and next, -1 = none; */
  pl_number_set needed;                /* and positions at which something is */
  int32_t *leaving;                    /* gaps whose copies out may not have ended, in their order */
  int64_t *out_end, *in_end;           /* by gap */
  const int32_t *fed;                  /* buffers that the user feeds to the first op */
  int32_t n_fed;
} pl_copy_times;

/* In memory of `arena`; borrows `rehearsal`. */
planc_status pl_copy_times_new(const pl_rehearsal *rehearsal, pl_arena *arena, pl_copy_times *out);
/* Of the ways that were rehearsed last, which leave room at every position or more is found than fits. */
void pl_copy_times_find(pl_copy_times *t, const uint8_t *ways);

#endif
