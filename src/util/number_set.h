/* A set of numbers below a fixed bound: bits with bits above them that say which words are not empty. Adding, removing
 * and finding the nearest member take a few steps, one per factor of 64 in the bound. */
#ifndef PLANC_UTIL_NUMBER_SET_H
#define PLANC_UTIL_NUMBER_SET_H

#include <stdbool.h>

#include "planc/status.h"
#include "util/arena.h"

enum { PL_NUMBER_SET_LEVELS = 6 }; /* 64^6 is beyond any int32 */

typedef struct pl_number_set {
  int32_t n_levels;
  uint64_t *words[PL_NUMBER_SET_LEVELS]; /* level 0 has a bit per number */
} pl_number_set;

/* An empty set of numbers 0 .. bound-1. */
planc_status pl_number_set_make(pl_arena *arena, int32_t bound, pl_number_set *out);
/* Adds it or removes it. */
static inline void pl_number_set_put(pl_number_set *set, int32_t number, bool is_member);
/* The greatest member that is at most `number`; -1 if there is none. */
static inline int32_t pl_number_set_below(const pl_number_set *set, int32_t number);
/* The least member that is at least `number`, which may be the bound; -1 if there is none. */
static inline int32_t pl_number_set_above(const pl_number_set *set, int32_t number);

/* What a word of level 0 does not answer. */
void pl_number_set_mark(pl_number_set *set, int32_t word);
void pl_number_set_unmark(pl_number_set *set, int32_t word);
int32_t pl_number_set_before(const pl_number_set *set, int32_t word);
int32_t pl_number_set_behind(const pl_number_set *set, int32_t word);

/* Here, as the simulator asks sets of a single word in its innermost loops. */
static inline void pl_number_set_add(pl_number_set *set, int32_t number) {
  uint64_t *word = &set->words[0][number >> 6], before = *word;
  *word = before | UINT64_C(1) << (number & 63);
  if (before == 0 && set->n_levels > 1) pl_number_set_mark(set, number >> 6);
}

static inline void pl_number_set_remove(pl_number_set *set, int32_t number) {
  uint64_t *word = &set->words[0][number >> 6];
  *word &= ~(UINT64_C(1) << (number & 63));
  if (*word == 0 && set->n_levels > 1) pl_number_set_unmark(set, number >> 6);
}

static inline void pl_number_set_put(pl_number_set *set, int32_t number, bool is_member) {
  if (is_member) {
    pl_number_set_add(set, number);
  } else {
    pl_number_set_remove(set, number);
  }
}

static inline int32_t pl_number_set_below(const pl_number_set *set, int32_t number) {
  uint64_t bits = set->words[0][number >> 6] & (~UINT64_C(0) >> (63 - (number & 63)));
  if (bits) return (number & ~63) + 63 - __builtin_clzll(bits);
  return number < 64 ? -1 : pl_number_set_before(set, number >> 6);
}

static inline int32_t pl_number_set_above(const pl_number_set *set, int32_t number) {
  uint64_t bits = set->words[0][number >> 6] & (~UINT64_C(0) << (number & 63));
  if (bits) return (number & ~63) + __builtin_ctzll(bits);
  return set->n_levels == 1 ? -1 : pl_number_set_behind(set, number >> 6);
}

#endif
