/* What can be told of a plan without running it: what its body moves and computes, and what is live. */
#ifndef PLANC_SIMULATE_PLAN_TOTALS_H
#define PLANC_SIMULATE_PLAN_TOTALS_H

#include "plan/layout.h"
#include "planc/simulate.h"

/* The fullest moment of the body: most bytes of open residencies and workspace at one time, in one memory of a kind. */
typedef struct planc_fullest {
  int64_t bytes;
  int32_t instr;  /* of the body, 0 also where the boundary is fullest */
  int32_t memory; /* -1: nothing is ever in one of that kind */
} planc_fullest;
planc_status planc_find_fullest(const planc_plan *plan, planc_memory_kind kind, const planc_acquired *acquired,
                                planc_arena *arena, planc_fullest *out);
/* The memory that an acquire, a release or an exec takes up or gives back; -1 = none, as of all other instructions. */
int32_t planc_memory_at(const planc_plan *plan, const planc_acquired *acquired, const planc_instr *instr);

/* Sets peaks, bytes copied, compute and recompute time of *out, of a plan whose streams are right. */
planc_status planc_plan_totals(const planc_plan *plan, const planc_acquired *acquired, planc_simulation *out);

/* INVALID_PLAN when the boundary or the body names a buffer, residency or instance that there is not. Whoever follows a
 * plan that may not have been checked asks first. */
planc_status planc_plan_check_names(const planc_plan *plan, const planc_trace *trace);

#endif
