/* The checker: runs a plan symbolically and says whether it is right with any number of bodies, none included
 * (planc-plan(5), "What makes a plan valid").
 *
 * It derives the trace anew from the plan's own graph and jobs and shares no decision or simulation code with the
 * planner. Every residency holds a version, every byte interval has a last-write epoch and per-stream read epochs;
 * vector clocks are snapshotted at records and joined at waits. */
#ifndef PLANC_CHECK_H
#define PLANC_CHECK_H

#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planc_check_report {
  /* By the kind of memory, of several GPUs the most. */
  int64_t peak_bytes[PLANC_N_MEMORY_KINDS];    /* arena plus reserved; of host and storage with the arenas of all
                                                  replicas */
  int64_t touched_bytes[PLANC_N_MEMORY_KINDS]; /* highest byte touched + 1, of one replica */
  int32_t instances, instructions, recomputed;
} planc_check_report;

typedef struct planc_check_options {
  int64_t budgets[PLANC_N_BUDGETS]; /* bytes by kind of memory, of each device, with what is reserved; -1 = the plan's
                                       own */
} planc_check_options;

/* OK when the plan is valid and within its budgets, or those of `options` (NULL: its own); INVALID_PLAN (message: "line
 * N: instruction: storage: what") when it is not; INFEASIBLE when it is valid but over a budget. `report` may be NULL.
 */
planc_status planc_check(const planc_plan *plan, const planc_check_options *options, planc_check_report *report);

#ifdef __cplusplus
}
#endif

#endif
