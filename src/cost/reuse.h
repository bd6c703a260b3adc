/* Reuse: what of an op's traffic the device's cache still holds.
 *
 * An operand that was read or written at most a cache's size of traffic ago, counted from the start of the op that did
 * so, is still there; from there to a third more the share that is left falls to none. The ops before are those of
 * the graph's order, whatever a plan makes of it. Only the last PL_REUSE_OPS are looked at. */
#ifndef PLANC_COST_REUSE_H
#define PLANC_COST_REUSE_H

#include "cost/profile.h"
#include "util/arena.h"

enum { PL_REUSE_OPS = 256 };

/* A walk through a graph's ops in their order, at several batches at once. */
typedef struct pl_reuse {
  const planc_graph *graph;
  int64_t cache_bytes;
  int32_t n_batches;
  const int64_t *batches;
  int32_t op;      /* that comes next */
  int32_t *last;   /* by storage: the last op that touched it, -1 = none yet; NULL where there is no cache */
  uint64_t *since; /* by storage and batch: `moved` when that op began */
  uint64_t *moved; /* by batch: the traffic of all ops so far, of each no more than makes the cache forget */
} pl_reuse;

/* A walk that comes to the first op. The batches stay the caller's, the memory the arena's. */
planc_status pl_reuse_start(const planc_profile *profile, const planc_graph *graph, int32_t n_batches,
                            const int64_t *batches, pl_arena *arena, pl_reuse *out);
/* Goes on to the next op. */
void pl_reuse_pass(pl_reuse *reuse);
/* Bytes of the op's traffic that the cache holds at a batch of the walk; 0 where the profile tells of no cache. */
int64_t pl_reused_bytes(const pl_reuse *reuse, int64_t batch);

/* The same of one op, without a walk: looks back from it once for each operand. */
int64_t pl_reused_by(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch);

#endif
