/* What is live in a plan, told without running it. */
#ifndef PLANC_ANALYSIS_PLAN_LIVE_H
#define PLANC_ANALYSIS_PLAN_LIVE_H

#include "plan/copies.h"

/* The fullest moment of the body: most bytes of open residencies and workspace at one time, in one memory of a kind. */
typedef struct pl_fullest {
  int64_t bytes;
  int32_t instr;  /* of the body, 0 also where the boundary is fullest */
  int32_t memory; /* -1: nothing is ever in one of that kind */
} pl_fullest;
planc_status pl_find_fullest(const planc_plan *plan, planc_memory_kind kind, const pl_acquired *acquired,
                             pl_arena *arena, pl_fullest *out);
/* The memory that an acquire, a release or an exec takes up or gives back; -1 = none, as of all other instructions. */
int32_t pl_memory_at(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *instr);

/* What people read for a buffer and for an instance's op, in `arena` or borrowed from the plan: what several jobs have
 * of the same name is told apart. */
planc_status pl_buffer_in_plan(const planc_plan *plan, const planc_trace *trace, int32_t buffer, pl_arena *arena,
                               const char **out);
planc_status pl_op_in_plan(const planc_plan *plan, const planc_trace *trace, int32_t instance, pl_arena *arena,
                           const char **out);

/* INVALID_PLAN when the boundary or the body names a buffer, residency or instance that there is not. Whoever follows a
 * plan that may not have been checked asks first. */
planc_status pl_plan_check_names(const planc_plan *plan, const planc_trace *trace);

#endif
