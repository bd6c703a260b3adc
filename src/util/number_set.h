/* A set of numbers below a fixed bound: bits with bits above them that say which words are not empty. Adding, removing
 * and finding the nearest member take a few steps, one per factor of 64 in the bound. */
#ifndef PLANC_UTIL_NUMBER_SET_H
#define PLANC_UTIL_NUMBER_SET_H

#include "planc/status.h"
#include "util/arena.h"

enum { PLANC_NUMBER_SET_LEVELS = 6 }; /* 64^6 is beyond any int32 */

typedef struct planc_number_set {
  int32_t n_levels;
  uint64_t *words[PLANC_NUMBER_SET_LEVELS]; /* level 0 has a bit per number */
} planc_number_set;

/* An empty set of numbers 0 .. bound-1. */
planc_status planc_number_set_make(planc_arena *arena, int32_t bound, planc_number_set *out);
void planc_number_set_add(planc_number_set *set, int32_t number);
void planc_number_set_remove(planc_number_set *set, int32_t number);
/* The greatest member that is at most `number`; -1 if there is none. */
int32_t planc_number_set_below(const planc_number_set *set, int32_t number);
/* The least member that is at least `number`, which may be the bound; -1 if there is none. */
int32_t planc_number_set_above(const planc_number_set *set, int32_t number);

#endif
