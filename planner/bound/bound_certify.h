/* The search for prices that certify much (bound_value.h): the highest point under cuts (bound_cuts.h), with a few
 * prices at first (bound_space.h), and then with more, where too much is on the device or on a link at these. */
#ifndef PLANC_BOUND_BOUND_CERTIFY_H
#define PLANC_BOUND_BOUND_CERTIFY_H

#include "planner/bound/bound_found.h"

/* How much of a gap is spent in each way by the plan that the prices pay for, a mean of decisions of which each is the
 * least at some of them: parts of PL_BOUND_WHOLE, together no more. What is left stays. */
enum { PL_BOUND_N_WAYS = PL_BOUND_AGAIN + 1, PL_BOUND_WHOLE = 1 << 15 };
typedef struct pl_bound_shares {
  uint16_t of[PL_BOUND_N_WAYS];
} pl_bound_shares;

/* Finds prices, in memory of `arena`; at most so many values are looked at, but for one without prices. With more
 * values it certifies as much or more: it does the same, and goes on. `out_shares`: by gap, NULL = they are not asked
 * for. */
planc_status pl_bound_certify(const pl_bound_model *model, int64_t room, int64_t most_values, pl_arena *arena,
                              pl_bound_prices *out_prices, pl_bound_found *out, pl_bound_shares *out_shares);

#endif
