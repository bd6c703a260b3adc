/* Which positions are knots of a space of prices (bound_space.h).
 *
 * The first are where most would be on the device if everything stayed, and where that is too much for the last and for
 * the first time: behind the last, what is away has to come back. Others follow where the plan that prices pay for has
 * too much on the device, and between slots of which some have more copies than time and others less; those whose price
 * is nothing go. Where nothing asks for another, and there are few positions, all are. */
#ifndef PLANC_BOUND_BOUND_KNOTS_H
#define PLANC_BOUND_BOUND_KNOTS_H

#include "planner/bound/bound_space.h"

enum { PL_FIRST_KNOTS = 3 };

typedef struct pl_bound_knots {
  pl_bound_space *space;             /* borrowed */
  bool *tried;                       /* by position: it has been a knot */
  int32_t first[2 * PL_FIRST_KNOTS]; /* that are tried before others */
  int32_t n_first, next_first;
  bool all; /* all positions have been knots at once */
} pl_bound_knots;

/* In memory of `arena`. */
planc_status pl_bound_knots_new(pl_bound_space *space, pl_arena *arena, pl_bound_knots *out);
/* With the first ones, if any: `beyond` is by position what is on the device beyond the room if everything stays. */
void pl_bound_knots_begin(pl_bound_knots *knots, const int64_t *beyond);
/* Others, as `mean` asks, the slopes of the plan that `prices` pay for (pl_bound_slopes). False where none asks. */
bool pl_bound_knots_change(pl_bound_knots *knots, const pl_bound_prices *prices, const double *mean);
/* Those that were tried may be tried again. */
void pl_bound_knots_forget(pl_bound_knots *knots);

#endif
