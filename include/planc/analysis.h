/* What a plan tells of its memory without being run: what binds its peak, and what of its arena is lost. */
#ifndef PLANC_ANALYSIS_H
#define PLANC_ANALYSIS_H

#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- What binds a plan's peak ------------------------------------------------------------------------------------- */

typedef struct planc_peak_entry {
  const char *name; /* storage, or "workspace" */
  int64_t bytes;
} planc_peak_entry;

/* The moment of the body at which open residencies and workspace are largest, in a memory of a kind. Names are borrowed
 * from the plan; of one with several jobs they have the job before them, "job 1: conv". Fails with INVALID_PLAN where
 * the plan names what there is not. */
typedef struct planc_peak {
  int64_t bytes;
  int32_t instr;  /* index into the body */
  const char *op; /* the op that runs there, or the next one; NULL if none follows */
  int32_t n;
  const planc_peak_entry *entries; /* largest first; equal names summed */
} planc_peak;
planc_status planc_peak_of(const planc_plan *plan, planc_memory_kind memory, planc_peak **out);
void planc_peak_free(planc_peak *peak);

/* --- What of the arena is lost ------------------------------------------------------------------------------------ */

typedef struct planc_fragmentation {
  int64_t live_bytes; /* the most that residencies and workspace ask for at a time */
  int64_t lost_bytes; /* the arena beyond that */
  /* Of virtual memory (papers: out-of-core, 4), else 0. What is larger than a chunk has chunks of its own: */
  int64_t inside_bytes; /* the most that is lost at a time in them, */
  int64_t most_at_once; /* such residencies and workspaces, the boundary as one, and */
  int64_t bound_bytes;  /* that many chunks: no more can be lost in them (Eqs. 1 and 2) */
  int64_t shared_bytes; /* the most that is lost at a time in chunks that hold something smaller */
} planc_fragmentation;
/* Fails with INVALID_PLAN where the plan names what there is not, or its sizes exceed 64 bits. */
planc_status planc_fragmentation_of(const planc_plan *plan, planc_fragmentation *out);

#ifdef __cplusplus
}
#endif

#endif
