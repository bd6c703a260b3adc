/* Which waits make a body of instructions safe under any timing (hazards on bytes become waits on events). */
#ifndef PLANC_PLANNER_EVENTS_H
#define PLANC_PLANNER_EVENTS_H

#include "access_map.h"

/* Something that runs on a stream. Device and host bytes are one space of ranges. */
typedef struct planc_step {
  int32_t stream;
  int32_t first_touch, n_touches; /* slice of the touches */
  int32_t await;                  /* only waits: the end of this earlier step; -1 = an ordinary step */
} planc_step;

typedef struct planc_work {
  int32_t n_ranges;
  const planc_range *ranges;
  const planc_touch *touches;
  /* The body's steps, and a last one that is not part of it: what the epilogue does. */
  int32_t n_steps;
  const planc_step *steps;
} planc_work;

typedef struct planc_wait {
  int32_t step, producer; /* before `step`, its stream waits for the end of `producer` */
  int32_t lag;            /* 0: in this body; 1: in the one before (the last one, for the epilogue) */
} planc_wait;

typedef VEC(planc_wait) planc_waits;

/* Appends the waits in order of `step`. Each stream runs its steps in order. A wait that follows from others is left
 * out. */
planc_status planc_find_waits(const planc_work *work, planc_waits *out);

#endif
