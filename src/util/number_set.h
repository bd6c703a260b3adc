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
void pl_number_set_add(pl_number_set *set, int32_t number);
void pl_number_set_remove(pl_number_set *set, int32_t number);
/* Adds it or removes it. */
void pl_number_set_put(pl_number_set *set, int32_t number, bool is_member);
/* The greatest member that is at most `number`; -1 if there is none. */
int32_t pl_number_set_below(const pl_number_set *set, int32_t number);
/* The least member that is at least `number`, which may be the bound; -1 if there is none. */
int32_t pl_number_set_above(const pl_number_set *set, int32_t number);

#endif
