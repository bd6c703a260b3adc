/* What can be restored by running its writer again, and until when. */
#ifndef PLANC_CHOOSE_RESTORABLE_H
#define PLANC_CHOOSE_RESTORABLE_H

#include "planc/order.h"
#include "util/arena.h"

/* latest[i] is the last position before which instance i can still run again; -1: never, as for whatever is not of the
 * forward pass; the number of positions: to the end. Up to there its inputs are unchanged or can be restored. Whoever
 * `keeps` what it cannot drop while something is restored from it can read the last version of that to the end as well.
 * The order is one without recomputes. */
planc_status pl_mark_restorable(const planc_order *order, bool keeps, pl_arena *arena, int32_t *latest);
/* Whether every writer of the buffer can be run again until the last use of it, and nothing asks for it once the
 * iteration has ended. */
bool pl_can_drop(const planc_order *order, const int32_t *latest, int32_t buffer);
/* The instance that writes `version` of `buffer`; -1 if none does. */
int32_t pl_writer_of(const planc_trace *trace, int32_t buffer, int32_t version);

#endif
