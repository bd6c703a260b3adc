/* What a search has found (bound_found.h). */
#include "planner/bound/bound_found.h"

static int64_t launches_ns(const pl_bound_model *model);
static int64_t price_of_gib(const pl_bound_model *model, const pl_bound_prices *prices);

pl_bound_found pl_bound_found_of(const pl_bound_model *model, const pl_bound_prices *prices, pl_signed_wide value,
                                 int64_t ideal_ns, int64_t values) {
  return (pl_bound_found){.ns = pl_max((int64_t)(value >> PL_PRICE_BITS), launches_ns(model)),
                          .ideal_ns = ideal_ns,
                          .values = values,
                          .gib_ns = price_of_gib(model, prices)};
}

/* The host launches every op of an iteration, one after the other. */
static int64_t launches_ns(const pl_bound_model *model) {
  return pl_mul_saturate(model->n, model->device.launch_ns);
}

/* A byte more is paid back at every position. */
static int64_t price_of_gib(const pl_bound_model *model, const pl_bound_prices *prices) {
  pl_signed_wide sum = 0;
  for (int32_t p = 0; p < model->n; p++) sum += prices->byte[p];
  sum = (sum * (INT64_C(1) << 30) >> PL_PRICE_BITS) + 1;
  return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}
