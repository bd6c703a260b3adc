/* The search for prices that lead a search for plans (bound_value.h): steps along slopes, first with few prices, each
 * for a stretch of the period, and then with more and more. They certify less than those of bound_certify.h, but are
 * spread over all positions at which memory is short: with the few of those plans take 3 % longer. */
#ifndef PLANC_BOUND_ASCENT_H
#define PLANC_BOUND_ASCENT_H

#include "planner/bound/bound_found.h"

/* Finds prices, in memory of `arena`; at most so many values are looked at, but for one without prices. */
planc_status pl_bound_ascend(const pl_bound_model *model, int64_t room, int64_t most_values, pl_arena *arena,
                             pl_bound_prices *out_prices, pl_bound_found *out);

#endif
