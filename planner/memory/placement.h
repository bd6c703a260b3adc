/* Offline address assignment: items whose lifetimes and sizes are known get addresses such that no two that live at the
 * same time overlap, with the highest address used kept low (dynamic storage allocation, which is NP-hard). */
#ifndef PLANC_MEMORY_PLACEMENT_H
#define PLANC_MEMORY_PLACEMENT_H

#include <stdint.h>

#include "planc/status.h"

/* Positions start, ..., end - 1; empty when start >= end. */
typedef struct planc_lifetime {
  int32_t start, end;
} planc_lifetime;

typedef struct planc_item {
  int64_t bytes;
  int64_t address;         /* a multiple of PLANC_ALIGNMENT, or PLANC_BLANK: to be chosen */
  planc_lifetime spans[2]; /* when it lives; an item that is away for a while has two, disjoint, at one address */
} planc_item;

/* Fills the blank addresses (0 where nothing is needed); *out_top is the highest end of any item. Time and memory are
 * nearly linear in `n` and the last position. Deterministic. INTERNAL when two stated addresses overlap, BAD_INPUT when
 * all items together exceed int64. */
planc_status planc_place(planc_item *items, int32_t n, int64_t *out_top);

#endif
