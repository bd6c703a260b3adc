/* What can be restored by running its writer again, and until when. */
#ifndef PLANC_CHOOSE_RESTORABLE_H
#define PLANC_CHOOSE_RESTORABLE_H

#include "planc/order.h"
#include "util/arena.h"

/* What is kept for as long as something is restored from it, so that its last version can be read to the end. */
typedef enum pl_kept {
  PL_KEPT_NOTHING,
  PL_KEPT_UNDROPPED, /* buffers that cannot be dropped */
  PL_KEPT_ANYTHING   /* whatever ends with the iteration; then ops of other passes run again as well, if their results
                        are much larger than what they read */
} pl_kept;

/* Sets latest[i], the last position before which instance i can run again: up to there its inputs are unchanged, or can
 * be restored as well. It is the number of positions where that is so to the end, and -1 where the instance never runs
 * again, which is so of most that are not of the forward pass. The order has no recomputes. */
planc_status pl_mark_restorable(const planc_order *order, pl_kept kept, pl_arena *arena, int32_t *latest);
/* Whether every writer of the buffer can be run again until the last use of it, and nothing asks for it once the
 * iteration has ended. */
bool pl_can_drop(const planc_order *order, const int32_t *latest, int32_t buffer);
/* The instance that writes `version` of `buffer`; -1 if none does. */
int32_t pl_writer_of(const planc_trace *trace, int32_t buffer, int32_t version);

#endif
