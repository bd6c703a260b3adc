/* Reuse: what of an op's traffic the device's cache still holds.
 *
 * An operand that was read or written at most a cache's size of traffic ago, counted from the start of the op that did
 * so, is still there; from there to a third more the share that is left falls to none. The ops before are those of
 * the graph's order, whatever a plan makes of it. Only the last PL_REUSE_OPS are looked at. */
#ifndef PLANC_COST_REUSE_H
#define PLANC_COST_REUSE_H

#include "cost/profile.h"

enum { PL_REUSE_OPS = 256 };

/* Bytes of the op's traffic at `batch` that the cache holds; 0 where the profile tells of no cache. */
int64_t pl_reused_bytes(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch);

#endif
