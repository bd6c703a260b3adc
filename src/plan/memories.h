/* What a plan's memories hold, and which GPU works for whom. */
#ifndef PLANC_PLAN_MEMORIES_H
#define PLANC_PLAN_MEMORIES_H

#include "planc/plan.h"

/* The user's memory, which is the last one. */
static inline int32_t pl_user_memory(const planc_plan *plan) {
  return plan->n_memories - 1;
}

/* Arena and reserved memory; of host and storage with the arenas of all replicas. */
int64_t pl_memory_peak(const planc_plan *plan, const planc_memory *memory);
/* The memory of the kind with the largest peak, as planc_plan_memory where the plan has none of the kind. */
const planc_memory *pl_plan_peak_memory(const planc_plan *plan, planc_memory_kind kind);
/* Its peak. */
int64_t pl_plan_peak(const planc_plan *plan, planc_memory_kind kind);
/* The GPU that a stream works for: of a copy stream the one that its engine's links lead to or from. -1 = none. */
int32_t pl_gpu_of_stream(const planc_plan *plan, int32_t stream);

#endif
