/* Byte ranges of a storage, whose ends are laws in the batch size, and sets of them. A relation holds when it
 * holds for every batch of at least 1; of two ranges whose order depends on the batch neither "disjoint" nor "covers"
 * holds, so what is built on these is right for every batch. */
#ifndef PLANC_GRAPH_BYTE_RANGE_H
#define PLANC_GRAPH_BYTE_RANGE_H

#include "graph/law.h"
#include "util/vec.h"

typedef struct pl_byte_range {
  planc_law begin, end;
} pl_byte_range;

typedef VEC(pl_byte_range) pl_byte_ranges;

pl_byte_range pl_byte_range_of(const planc_tensor *tensor);
bool pl_byte_range_equal(pl_byte_range a, pl_byte_range b);
bool pl_byte_range_disjoint(pl_byte_range a, pl_byte_range b);
/* `a` holds all of `b`. */
bool pl_byte_range_covers(pl_byte_range a, pl_byte_range b);

/* True when some range of the set may share bytes with `range`. */
bool pl_byte_ranges_touch(const pl_byte_ranges *set, pl_byte_range range);
/* True when one range of the set holds all of `range`; ranges that meet have been made one. */
bool pl_byte_ranges_cover(const pl_byte_ranges *set, pl_byte_range range);
planc_status pl_byte_ranges_add(pl_byte_ranges *set, pl_byte_range range);
/* Takes `range` away. A range of the set that `range` overlaps in part, or in a way that depends on the batch, stays
 * whole. */
planc_status pl_byte_ranges_remove(pl_byte_ranges *set, pl_byte_range range);

#endif
