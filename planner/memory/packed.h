/* The items that packing has placed so far, by address (placement.c). Packing asks at every item which of them live at
 * the same time, and most do not. So they lie in small blocks, in which the times of many items are compared at once,
 * and an item that is added moves no others than those of its block. */
#ifndef PLANC_MEMORY_PACKED_H
#define PLANC_MEMORY_PACKED_H

#include "planner/memory/placement.h"

typedef struct pl_packed_block pl_packed_block;

typedef struct pl_packed {
  const pl_item *items;
  pl_packed_block **blocks; /* the first n_blocks, by address; behind these, those that are free */
  int32_t n_blocks;
} pl_packed;

/* Holds up to `most` of the items, which are borrowed, and is empty. */
planc_status pl_packed_make(pl_arena *arena, const pl_item *items, int32_t most, pl_packed *out);
/* `to` then holds what `from` does; it has been made for at least as many of the same items. */
void pl_packed_copy(pl_packed *to, const pl_packed *from);
void pl_packed_add(pl_packed *packed, int32_t item, int64_t address);
/* The lowest address that is clear of all items beside which `item` lives; with `tightest`, the one in the smallest
 * free range that holds it. Adds to *visits how many items it has looked at. */
int64_t pl_packed_find(const pl_packed *packed, const pl_item *item, bool tightest, int64_t *visits);

#endif
