/* Offline address assignment: items whose lifetimes and sizes are known get addresses such that no two that live at the
 * same time overlap, with the highest address used kept low (dynamic storage allocation, which is NP-hard). */
#ifndef PLANC_MEMORY_PLACEMENT_H
#define PLANC_MEMORY_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"
#include "util/arena.h"

/* Positions start, ..., end - 1; empty when start >= end. */
typedef struct pl_lifetime {
  int32_t start, end;
} pl_lifetime;

static inline bool pl_lifetime_is_empty(pl_lifetime span) {
  return span.start >= span.end;
}

/* Whether two that are not empty have a position in common. */
static inline bool pl_lifetimes_meet(pl_lifetime a, pl_lifetime b) {
  return a.start < b.end && b.start < a.end;
}

enum { PL_SPANS = 2 };

typedef struct pl_item {
  int64_t bytes;
  int64_t address;             /* a multiple of PLANC_ALIGNMENT, or PLANC_BLANK: to be chosen */
  pl_lifetime spans[PL_SPANS]; /* when it lives; an item that is away for a while has two, disjoint, at one address */
} pl_item;

static inline bool pl_item_lives(const pl_item *item) {
  return !pl_lifetime_is_empty(item->spans[0]) || !pl_lifetime_is_empty(item->spans[1]);
}

static inline bool pl_item_lives_twice(const pl_item *item) {
  return !pl_lifetime_is_empty(item->spans[0]) && !pl_lifetime_is_empty(item->spans[1]);
}

/* The first position at which it lives, of an item that does. */
static inline int32_t pl_item_start(const pl_item *item) {
  const pl_lifetime *a = &item->spans[0], *b = &item->spans[1];
  if (pl_lifetime_is_empty(*a)) return b->start;
  return pl_lifetime_is_empty(*b) || a->start < b->start ? a->start : b->start;
}

/* The position behind the last one at which it lives. */
static inline int32_t pl_item_end(const pl_item *item) {
  const pl_lifetime *a = &item->spans[0], *b = &item->spans[1];
  if (pl_lifetime_is_empty(*a)) return b->end;
  return pl_lifetime_is_empty(*b) || a->end > b->end ? a->end : b->end;
}

/* Whether it lives at a position of a span that is not empty. */
static inline bool pl_item_meets(const pl_item *item, pl_lifetime span) {
  for (int32_t s = 0; s < PL_SPANS; s++)
    if (!pl_lifetime_is_empty(item->spans[s]) && pl_lifetimes_meet(item->spans[s], span)) return true;
  return false;
}

/* Whether it lives at all positions ahead of `horizon`. */
static inline bool pl_item_stays(const pl_item *item, int32_t horizon) {
  return item->spans[0].start <= 0 && item->spans[0].end >= horizon;
}

/* Two items that are stated to have the same bytes at a position. */
typedef struct pl_overlap {
  int32_t item, other, position;
} pl_overlap;

/* Fills the blank addresses (0 where nothing is needed); *out_top is the highest end of any item. Time and memory are
 * nearly linear in `n` and the last position, but that the number of items with two spans counts squared: for 10,000
 * that is a fraction of a second. Deterministic. INTERNAL when two stated addresses overlap, with
 * *out_overlap, which may be NULL where none is stated; BAD_INPUT when all items together exceed 2^62 bytes. */
planc_status pl_place(pl_item *items, int32_t n, int64_t *out_top, pl_overlap *out_overlap);

/* The same where no address is stated, for addresses that are multiples of `unit`: sizes count rounded up to it.
 * *out_live is the most that lives at a time. */
planc_status pl_place_in_units(pl_item *items, int32_t n, int64_t unit, int64_t *out_live, int64_t *out_top);

/* As pl_place where no address is stated and those are of use only where *out_top is at most `room`: where so much
 * lives at a time that it cannot be, no address is filled in, and *out_top is what lives then. */
planc_status pl_place_within(pl_item *items, int32_t n, int64_t room, int64_t *out_top);

/* Places items of which no address is stated within `room`, or leaves them as they are: packs them by several rules,
 * and those that end above it first the next time, over and over; the first `n_large` alone until these are within it,
 * and then the others behind them, as they come. That finds places for hundreds of items where other orders of packing
 * find none and a complete search (placement_search.h) would take too long; it proves nothing where it finds none.
 * *out_least is the lowest end that the large ones have come to, or what lives at a time if none were packed. */
planc_status pl_place_by_repairs(pl_item *items, int32_t n, int32_t n_large, int64_t room, bool *out_placed,
                                 int64_t *out_least);

/* The position at which the last item ends. */
int32_t pl_items_horizon(const pl_item *items, int32_t n);

/* The bytes that live at each of positions 0, ..., horizon, in `arena`; no span ends behind these. */
planc_status pl_items_live(pl_arena *arena, const pl_item *items, int32_t n, int32_t horizon, int64_t **out);

#endif
