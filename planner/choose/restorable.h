/* What can be restored by running its writer again, and until when. */
#ifndef PLANC_CHOOSE_RESTORABLE_H
#define PLANC_CHOOSE_RESTORABLE_H

#include "planc/order.h"
#include "util/arena.h"

/* latest[i]: the last position ahead of which instance i can be run again, one that is not forward never, which is -1:
 * until then what it reads of persistent and fed buffers is the same, and of others the writer can be run again. The
 * number of positions where that is so to the end. Whoever `keeps` what it cannot drop, for as long as something is to
 * be restored from it, can read the last version of that to the end as well. The order is one without recomputes. */
planc_status pl_mark_restorable(const planc_order *order, bool keeps, pl_arena *arena, int32_t *latest);
/* Whether every writer of the buffer can be run again until the last use of it, and nothing asks for it once the
 * iteration has ended. */
bool pl_can_drop(const planc_order *order, const int32_t *latest, int32_t buffer);
/* The instance that writes `version` of `buffer`; -1 if none does. */
int32_t pl_writer_of(const planc_trace *trace, int32_t buffer, int32_t version);

#endif
