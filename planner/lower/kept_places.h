/* Places that are kept longer than what lies there lives, so that copies, and who comes there next, need not wait. */
#ifndef PLANC_LOWER_KEPT_PLACES_H
#define PLANC_LOWER_KEPT_PLACES_H

#include "planc/schedule.h"
#include "planner/memory/placement.h"

/* Lets items live longer, those of residencies being the first and command c standing at position c + 1: what the user
 * feeds ahead of the first op from the end of the period before on, as long as its copies take; and what is copied out
 * at the end of the period up to where the next one is when these copies end; and what the user gets, if it is small,
 * up to the period's end. Times are those of ops one after the other. The most that lives at a time does not grow:
 * where it would, what is fed lives no longer than it does, and the others up to there. */
planc_status pl_keep_places(pl_arena *arena, const planc_schedule *s, pl_item *items, int32_t n);

#endif
