/* Which places of the device are taken later on, by the commands of a schedule: until when something else may lie at an
 * address without being in the way. */
#ifndef PLANC_CHOOSE_LATER_PLACES_H
#define PLANC_CHOOSE_LATER_PLACES_H

#include "planc/schedule.h"
#include "util/arena.h"

typedef struct pl_later_place {
  int32_t command; /* that takes it: an acquire, or an exec with a workspace */
  int64_t address, bytes;
} pl_later_place;

typedef struct pl_later_places {
  const pl_later_place *items; /* by command */
  const int32_t *first_from;   /* by command and one more: the first place that it or a later one takes */
  int32_t n;
} pl_later_places;

/* Of residencies on the device and of workspaces, by the addresses that they are to have: by residency, and by command.
 * In memory of `arena`, which has nothing of the schedule. */
planc_status pl_later_places_make(const planc_schedule *schedule, const int64_t *residencies, const int64_t *workspaces,
                                  pl_arena *arena, pl_later_places *out);
/* The first command behind `command` that takes some of these bytes, or `end` if none ahead of it does. Few hundred
 * places are looked at: where all of those are others', the command of the next one. */
int32_t pl_later_places_until(const pl_later_places *later, int32_t command, int64_t address, int64_t bytes,
                              int32_t end);

#endif
