/* What can be told of a plan without running it: what its body moves and computes, and what is live. */
#ifndef PLANC_SIMULATE_PLAN_TOTALS_H
#define PLANC_SIMULATE_PLAN_TOTALS_H

#include "planc/simulate.h"
#include "util/arena.h"

/* Which GPU instructions are for, found without a trace: a residency is on the GPU of a stream that uses it. */
typedef struct planc_gpus {
  int32_t n;
  const planc_plan *plan;
  int32_t *of_residency;
} planc_gpus;
planc_status planc_gpus_find(const planc_plan *plan, planc_arena *arena, planc_gpus *out);
int32_t planc_gpus_at(const planc_gpus *gpus, const planc_instr *instr);

/* The fullest moment of the body: most bytes of open residencies and workspace at one time, on one GPU. */
typedef struct planc_fullest {
  int64_t bytes;
  int32_t instr, gpu; /* an instruction of the body, 0 also where the boundary is fullest */
} planc_fullest;
planc_status planc_find_fullest(const planc_plan *plan, const planc_gpus *gpus, planc_arena *arena, planc_fullest *out);

/* Sets peaks, bytes moved, compute and recompute time of *out. */
planc_status planc_plan_totals(const planc_plan *plan, planc_simulation *out);

/* INVALID_PLAN when the boundary or the body names a buffer, residency or instance that there is not. Whoever follows a
 * plan that may not have been checked asks first. */
planc_status planc_plan_check_names(const planc_plan *plan, const planc_trace *trace);

#endif
