/* What the device holds behind each command of a schedule, or of those that are of interest: data that is open, as far
 * as it counts, and the workspace of what runs. */
#ifndef PLANC_BASE_HELD_H
#define PLANC_BASE_HELD_H

#include "planc/schedule.h"
#include "util/math.h"

typedef struct pl_held {
  const planc_schedule *schedule;
  int64_t unit;                               /* sizes count as whole units */
  bool (*counts)(const planc_buffer *buffer); /* NULL: all data counts */
  int64_t data;                               /* behind the last command */
  int64_t workspace;                          /* of the last command; 0 unless that is an exec */
} pl_held;

/* Sets what is held when the period starts. */
void pl_held_start(pl_held *held);
void pl_held_follow(pl_held *held, const planc_command *command);

static inline int64_t pl_held_bytes(const pl_held *held) {
  return pl_add_saturate(held->data, held->workspace);
}

#endif
