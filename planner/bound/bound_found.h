/* What a search for prices has found (bound_value.h). */
#ifndef PLANC_BOUND_BOUND_FOUND_H
#define PLANC_BOUND_BOUND_FOUND_H

#include "planner/bound/bound_value.h"

typedef struct pl_bound_found {
  int64_t ns;       /* what the prices certify, rounded down, or what the launches of the ops take */
  int64_t ideal_ns; /* what no prices certify, which is what the ops take whatever memory there is */
  int64_t values;   /* that were looked at */
  int64_t gib_ns;   /* by how much less the prices certify, rounded up, for each GiB that there is more room */
} pl_bound_found;

/* Of prices and what they come to. */
pl_bound_found pl_bound_found_of(const pl_bound_model *model, const pl_bound_prices *prices, pl_signed_wide value,
                                 int64_t ideal_ns, int64_t values);

#endif
