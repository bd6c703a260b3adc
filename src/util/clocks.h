/* Vector clocks of which thousands are kept although streams are many: a clock is a tree that never changes, and one
 * that is made from another shares with it all that stays the same. A clock says of each stream up to which step
 * somebody knows that it has ended. */
#ifndef PLANC_UTIL_CLOCKS_H
#define PLANC_UTIL_CLOCKS_H

#include <stdint.h>

#include "util/vec.h"

enum { PL_CLOCK_BITS = 3, PL_CLOCK_NONE = -1 };

/* Above the lowest level children are nodes, on it they are steps. PL_CLOCK_NONE: nothing is known of these streams.
 */
struct pl_clock_node {
  int32_t children[1 << PL_CLOCK_BITS];
};

/* All clocks together. One of them is the number of its root, PL_CLOCK_NONE that of the empty one. */
typedef struct pl_clocks {
  VEC(struct pl_clock_node) nodes;
  int32_t top; /* how many bits of a stream's number are below the root's */
} pl_clocks;

pl_clocks pl_clocks_of(int32_t n_streams);
void pl_clocks_free(pl_clocks *clocks);
/* The step up to which `clock` knows `stream`, or PL_CLOCK_NONE. */
int32_t pl_clock_at(const pl_clocks *clocks, int32_t clock, int32_t stream);
/* Makes *clock one that knows `stream` up to `step`. */
planc_status pl_clock_set(pl_clocks *clocks, int32_t *clock, int32_t stream, int32_t step);
/* Makes *clock one that knows what either knows. */
planc_status pl_clock_join(pl_clocks *clocks, int32_t *clock, int32_t other);

#endif
