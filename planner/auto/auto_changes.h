/* One change of a search (auto_search.h): of the ways of few gaps, drawn at random. For auto_anneal.c. */
#ifndef PLANC_AUTO_AUTO_CHANGES_H
#define PLANC_AUTO_AUTO_CHANGES_H

#include "planner/auto/auto_search.h"

/* As many as three gaps with their tails. */
enum { PL_AUTO_MOST_CHANGED = 3 * (1 + PL_AUTO_MOST_INPUTS) };

/* The gaps that have changed, in that order, and their ways before. */
typedef struct pl_auto_change {
  int32_t gaps[PL_AUTO_MOST_CHANGED];
  uint8_t ways[PL_AUTO_MOST_CHANGED];
  int32_t n;
} pl_auto_change;

/* Changes ways, as yet unjudged; what is fixed does not change. `*out` may come out empty. */
void pl_auto_change_some(pl_auto_search *s, pl_auto_change *out);
/* Gives a gap that is no tail a way that it is open for, and keeps tails for that as pl_auto_change_some does. */
void pl_auto_change_to(pl_auto_search *s, int32_t gap, uint8_t way, pl_auto_change *out);
void pl_auto_change_undo(pl_auto_search *s, const pl_auto_change *done);

/* xorshift64* (Vigna, 2016). */
static inline uint32_t pl_auto_random(pl_auto_search *s) {
  s->random ^= s->random >> 12;
  s->random ^= s->random << 25;
  s->random ^= s->random >> 27;
  return (uint32_t)(s->random * UINT64_C(2685821657736338717) >> 32);
}

#endif
