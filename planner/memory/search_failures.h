/* A table of what a search has found to fail: so many places, of which a key has one. It takes the memory of those that
 * are used, as most searches have few failures. */
#ifndef PLANC_PLANNER_MEMORY_SEARCH_FAILURES_H
#define PLANC_PLANNER_MEMORY_SEARCH_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"

/* No placement of what is left begins at `address` or above it. Of an empty place both are 0. */
typedef struct pl_failure {
  uint64_t key; /* of what is left, and where */
  int64_t address;
} pl_failure;

/* Zeroed: an empty table. */
typedef struct pl_failures {
  pl_failure *slots;
  int64_t n_slots, n_used;
} pl_failures;

bool pl_failures_know(const pl_failures *table, const pl_failure *asked);
/* It takes the place of another key. Of two that are of the same, the one at the lower address says more, and stays. */
planc_status pl_failures_keep(pl_failures *table, const pl_failure *failed);
void pl_failures_free(pl_failures *table);

#endif
