/* What running an op again takes, and what it reads that is gone by then: for bound_model.c. */
#ifndef PLANC_BOUND_AGAIN_H
#define PLANC_BOUND_AGAIN_H

#include "planner/bound/bound_model.h"
#include "util/vec.h"

typedef struct pl_bound_again {
  const planc_order *order; /* all borrowed */
  const planc_settings *asked;
  const pl_bound_op *ops;     /* by position */
  VEC(pl_bound_input) inputs; /* all that were found; owned */
} pl_bound_again;

/* The position that writes a version; -1 = none does. */
int32_t pl_bound_written(const planc_order *order, int32_t buffer, int32_t version);
/* pl_bound_gap.again_ns of a gap of the version. */
int64_t pl_bound_again_ns(const pl_bound_again *again, int32_t buffer, int32_t version);
/* Adds what the version's writer reads that no op reads behind position `from`, each with what its own writer reads of
 * that kind: `*out_n` of them from `*out_first` on. Those of very long chains are left out. */
planc_status pl_bound_find_inputs(pl_bound_again *again, int32_t buffer, int32_t version, int32_t from,
                                  int32_t *out_first, int32_t *out_n);
/* When all are found: sets their n_askers. Takes memory of `arena`. */
planc_status pl_bound_count_askers(pl_bound_again *again, pl_arena *arena);

#endif
