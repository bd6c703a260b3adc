/* The search for prices that certify much (bound_value.h): steps along slopes, first with few prices, each for a
 * stretch of the period, and then with more and more. */
#ifndef PLANC_BOUND_ASCENT_H
#define PLANC_BOUND_ASCENT_H

#include "planner/bound/bound_value.h"

typedef struct pl_bound_found {
  int64_t ns;       /* what the prices certify, rounded down, or what the launches of the ops take */
  int64_t ideal_ns; /* what no prices certify, which is what the ops take whatever memory there is */
  int64_t values;   /* that were looked at */
  int64_t gib_ns;   /* by how much less the prices certify, rounded up, for each GiB that there is more room */
} pl_bound_found;

/* What prices are for: to certify as much as they can, or for a search for plans to go by. The latter has prices from
 * the same climbs however slow links are: with those that certify more its plans took 3 % longer. */
typedef enum pl_bound_aim { PL_BOUND_CERTIFIES, PL_BOUND_LEADS } pl_bound_aim;

/* Finds prices, in memory of `arena`; at most so many values are looked at, but for one without prices. */
planc_status pl_bound_ascend(const pl_bound_model *model, int64_t room, pl_bound_aim aim, int64_t most_values,
                             pl_arena *arena, pl_bound_prices *out_prices, pl_bound_found *out);

#endif
