/* The memories of a plan and the links between them: one table, made of the problem before anything is placed. All that
 * lowering knows of a memory is in its row. */
#ifndef PLANC_AWAY_TIERS_H
#define PLANC_AWAY_TIERS_H

#include "planc/problem.h"
#include "util/arena.h"

/* Tiers are numbered from the device outwards, as memories are in the plan. Data is copied from each to the next and
 * back, and between all of them and the user's memory, which is the last. */
enum { PL_TIER_DEVICE, PL_TIER_HOST, PL_MOST_TIERS = PLANC_N_MEMORY_KINDS };

typedef struct pl_tiers {
  planc_memory memories[PL_MOST_TIERS]; /* with arenas of no bytes: nothing is placed yet */
  int32_t n;
} pl_tiers;

/* `problem` may be NULL: a device and a host without limits, and nothing beyond. */
pl_tiers pl_tiers_of(const planc_problem *problem);

/* By which route data is copied from one to another. */
planc_route pl_tiers_route(const pl_tiers *tiers, int32_t from, int32_t to);
/* The links between them, by route, in `arena`. */
planc_status pl_tiers_link(const pl_tiers *tiers, const planc_problem *problem, int32_t replicas, pl_arena *arena,
                           planc_plan_link **out, int32_t *out_n);

#endif
