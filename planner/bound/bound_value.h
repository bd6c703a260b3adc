/* What a bound's prices certify: a time that no plan of the model within so many bytes is faster than.
 *
 * Memory at every op, and the time of the links in every slot, have a price. Where what a plan saves of them is paid
 * for at these prices, and what is there of them is paid back, a plan that holds all limits takes no less time than the
 * least that any decisions come to, each taken for itself: that sum is the value (Lagrangian relaxation). It holds
 * for any prices. Prices are whole numbers, and whatever is rounded is rounded down.
 *
 * A copy takes what it does alone, and a part of that when the other direction copies too (planc_device.duplex_ppm); an
 * op beside which data is copied takes longer (slowdown_ppm). In a slot of d ns that copies x ns in and y ns out,
 * x + k y <= d and k x + y <= d, with k = (1 - duplex) / duplex: these two have a price each. */
#ifndef PLANC_BOUND_VALUE_H
#define PLANC_BOUND_VALUE_H

#include "planner/bound/bound_model.h"
#include "util/math.h"
#include "util/range_least.h"

enum { PL_PRICE_BITS = 32 };
#define PL_PRICE_ONE (INT64_C(1) << PL_PRICE_BITS)

/* Prices, or by how much the value grows with each of them. None is negative. */
typedef struct pl_bound_prices {
  int64_t *byte;     /* by position, of a byte at its op: parts of a ns (PL_PRICE_ONE); at most pl_bound_most_price */
  int64_t *in, *out; /* by slot of one period, of a ns of copying in, or out: parts of a ns; together PL_PRICE_ONE at
                        most */
} pl_bound_prices;

planc_status pl_bound_prices_new(const pl_bound_model *model, pl_arena *arena, pl_bound_prices *out);
void pl_bound_prices_copy(const pl_bound_model *model, const pl_bound_prices *from, pl_bound_prices *to);
int64_t pl_bound_most_price(const pl_bound_model *model);

typedef enum pl_bound_way { PL_BOUND_STAYS, PL_BOUND_COPIED, PL_BOUND_AGAIN } pl_bound_way;

/* What prices come to, and what the decisions are that come to the least. */
typedef struct pl_bound_value {
  const pl_bound_model *model; /* borrowed */
  int64_t room;                /* bytes for operands, workspaces and what stays */
  pl_signed_wide value;        /* parts of a ns */
  pl_bound_prices slopes;      /* byte: bytes; in and out: ns */
  pl_bound_way *ways;          /* by gap */
  struct pl_bound_scratch *scratch;
} pl_bound_value;

planc_status pl_bound_value_new(const pl_bound_model *model, int64_t room, pl_arena *arena, pl_bound_value *out);
void pl_bound_value_find(pl_bound_value *v, const pl_bound_prices *prices);

#endif
