/* Pairs of node groups become the turns of a plan, and memory flows from pair to pair: addresses are those of
 * Waterwave's allocator as it follows the turns (stream_chunks.h). To the allocator each job is a stream: the groups of
 * a pair are of two jobs, and pairs come one after the other, so it does not matter which of the paper's two streams a
 * group is in. */
#ifndef PLANC_COLOCATE_FLOW_H
#define PLANC_COLOCATE_FLOW_H

#include "planner/colocate/interleave/pairing.h"
#include "planner/colocate/jobs/merge.h"

typedef struct pl_flow {
  const pl_timing *timing;
  const pl_pairing_pass *passes;
  const pl_pairs *pairs;
  const int64_t *const *kept;         /* by job: places by residency of what persists, blank of everything else */
  int64_t kept_bytes, capacity_bytes; /* of all that is kept; of the allocator, behind it */
  bool blank;                         /* addresses are left to lowering */
  bool barriers; /* jobs wait for each other before each pair, and where the allocator synchronises; else only for what
                    they need of each other */
} pl_flow;

/* Sets turns of `merge`, and addresses unless they are blank; *out_fits is false where the allocator has no place.
 * Allocated in `arena`. */
planc_status pl_flow_make(pl_arena *arena, const pl_flow *flow, pl_merge *merge, bool *out_fits);

#endif
