/* The search for prices that certify much (bound_value.h): the highest point under cuts (bound_cuts.h), with a few
 * prices at first (bound_space.h), and then with more, where too much is on the device or on a link at these. */
#ifndef PLANC_BOUND_BOUND_CERTIFY_H
#define PLANC_BOUND_BOUND_CERTIFY_H

#include "planner/bound/bound_found.h"

/* How a gap is spent by the plan that the prices pay for. That plan is a weighted mean of decisions, each of which is
 * the least at prices that were looked at: so a gap may be spent in several ways, each to a share. Shares are in parts
 * of PL_BOUND_WHOLE and together no more than that; what they lack is a share of PL_BOUND_STAYS. */
enum { PL_BOUND_N_WAYS = PL_BOUND_AGAIN + 1, PL_BOUND_WHOLE = 1 << 15 };
typedef struct pl_bound_shares {
  uint16_t of[PL_BOUND_N_WAYS];
} pl_bound_shares;

/* Finds prices, in memory of `arena`; at most so many values are looked at, but for one without prices. With more
 * values it certifies as much or more: it does the same, and goes on. `out_shares`: the caller's, by gap of the model;
 * NULL = nobody asks for them. */
planc_status pl_bound_certify(const pl_bound_model *model, int64_t room, int64_t most_values, pl_arena *arena,
                              pl_bound_prices *out_prices, pl_bound_found *out, pl_bound_shares *out_shares);

#endif
