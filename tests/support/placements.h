/* Items to place: random ones, whether a placement of them is one, and what the least one takes. */
#ifndef PLANC_TESTS_PLACEMENTS_H
#define PLANC_TESTS_PLACEMENTS_H

#include "planner/memory/placement.h"

/* A number below `below`, of a sequence that `seed` is the state of. */
uint32_t draw_below(uint64_t *seed, uint32_t below);
/* Within `horizon` positions, of up to `most` times the alignment; its address is blank. */
pl_item random_item(uint64_t *seed, int32_t horizon, uint32_t most, bool two_spans);
bool spans_meet(pl_lifetime a, pl_lifetime b);
bool live_together(const pl_item *a, const pl_item *b);
/* Whether they have a byte in common at some time. */
bool overlap(const pl_item *a, const pl_item *b);
/* Aligned, no two overlap, and the top is the highest end. */
void assert_valid(const pl_item *items, int32_t n, int64_t top);
/* The most bytes that live at one time. */
int64_t lower_bound(const pl_item *items, int32_t n);
/* The lowest top of all placements, found by trying all orders; `items` are reordered. */
int64_t least_top(pl_item *items, int32_t n);

#endif
