/* Which waits make a body of instructions safe under any timing (hazards on bytes become waits on events). */
#ifndef PLANC_LOWER_EVENTS_H
#define PLANC_LOWER_EVENTS_H

#include "planner/memory/access_map.h"

/* Something that runs on a stream. The bytes of all memories are in one space of ranges. */
typedef struct pl_step {
  int32_t stream;
  int32_t first_touch, n_touches; /* slice of the touches */
  /* Of a step that does nothing but wait: the step for whose end it waits, one before it in the same body, or one
   * behind it, in the body before. -1 = the step does something. */
  int32_t await;
} pl_step;

typedef struct pl_hazards {
  int32_t n_ranges;
  const pl_range *ranges;
  const pl_range_touch *touches;
  int32_t replicas; /* that do the same, each with streams and bytes of its own */
  int32_t n_streams, n_body, n_steps;
  const pl_step *steps; /* the body's, and from n_body on those that come once after the last body */
} pl_hazards;

typedef struct pl_wait {
  int32_t step, producer; /* before `step`, its stream waits for the end of `producer` */
  bool peers;             /* it waits for the producer of each other replica, not for its own */
  int32_t lag;            /* 0: in this body, or after all bodies; 1: in the body before (the last one, after all) */
} pl_wait;

typedef VEC(pl_wait) pl_waits;

/* Appends the waits in order of `step`. Each stream runs its steps in order. A wait that follows from others is left
 * out. */
planc_status pl_find_waits(const pl_hazards *work, pl_waits *out);

#endif
