/* The items that packing has placed so far, by address (placement.c). Packing asks at every item which of them live at
 * the same time, and most do not. So they lie in small blocks, in which the times of many items are compared at once,
 * and an item that is added moves no others than those of its block. */
#ifndef PLANC_MEMORY_PACKED_H
#define PLANC_MEMORY_PACKED_H

#include "planner/memory/placement.h"

enum { PL_MOST_PACKED = 8192 };

typedef struct pl_packed_block pl_packed_block;

/* As pl_lifetime, in steps: from one position at which an item without an address begins or ends to the next. Few are
 * enough to tell which items live at the same time, and short numbers are compared faster. */
typedef struct pl_steps {
  int16_t start, end;
} pl_steps;

typedef struct pl_packed_life {
  pl_steps spans[2]; /* as the item's */
} pl_packed_life;

typedef struct pl_packed {
  const pl_item *items;
  const pl_packed_life *lives; /* by item */
  pl_packed_block **blocks;    /* the first n_blocks, by address; behind these, those that are free */
  int32_t n_blocks;
} pl_packed;

/* Holds up to `most` of the `n` items, which are borrowed, and is empty. No span ends behind `horizon`, and up to
 * PL_MOST_PACKED items have no address yet: addresses are found for these alone. */
planc_status pl_packed_make(pl_arena *arena, const pl_item *items, int32_t n, int32_t horizon, int32_t most,
                            pl_packed *out);
/* `to` then holds what `from` does; it has been made for at least as many of the same items. */
void pl_packed_copy(pl_packed *to, const pl_packed *from);
void pl_packed_add(pl_packed *packed, int32_t item, int64_t address);
/* The lowest address that is clear of all items beside which `item` lives; with `tightest`, the one in the smallest
 * free range that holds it. Adds to *visits how many items it has looked at. */
int64_t pl_packed_find(const pl_packed *packed, int32_t item, bool tightest, int64_t *visits);

#endif
