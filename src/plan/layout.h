/* What stands where in a plan's file: the graphs, each once, and the lines of the instructions. */
#ifndef PLANC_PLAN_LAYOUT_H
#define PLANC_PLAN_LAYOUT_H

#include "planc/plan.h"
#include "util/arena.h"

typedef struct planc_plan_layout {
  int32_t n_graphs;
  const planc_graph **graphs; /* in the order in which jobs first name them */
  int32_t *graph_of_job;      /* index into graphs */
  int64_t n_tensors, n_ops;   /* of all graphs */
  int64_t n_instrs;           /* of all sections */
  int64_t first_instr_line;   /* of the prologue's first instruction; the others follow, section after section */
} planc_plan_layout;

/* Fails when there are more jobs or replicas than a plan may have, and when not all jobs have as many replicas. */
planc_status planc_plan_layout_make(const planc_plan *plan, planc_arena *arena, planc_plan_layout *out);

/* --- Memories and links ------------------------------------------------------------------------------------------- */

/* The GPU that a stream works for: of a copy stream the one that its engine's links lead to or from. -1 = none. */
int32_t planc_gpu_of_stream(const planc_plan *plan, int32_t stream);
/* Arena and reserved memory; of host and storage with the arenas of all replicas. */
int64_t planc_memory_peak(const planc_plan *plan, const planc_memory *memory);
/* That, the most of any memory of the kind. */
int64_t planc_plan_peak(const planc_plan *plan, planc_memory_kind kind);
/* Sets the predicted peaks to these. */
void planc_plan_find_peaks(planc_plan *plan);
/* How a profile describes the plan's first GPU and its links to the host; the storage if links lead there and back. */
planc_device planc_plan_describe(const planc_plan *plan);

/* --- Instructions ------------------------------------------------------------------------------------------------- */

/* What the boundary and the body's acquires say of a residency. */
typedef struct planc_acquired {
  int32_t buffer, memory; /* -1: it is never acquired */
} planc_acquired;
/* By residency, in `arena`; of a plan that nobody has checked. */
planc_status planc_plan_acquired(const planc_plan *plan, planc_arena *arena, planc_acquired **out);

/* The instruction at `index` in file order. */
const planc_instr *planc_plan_instr_at(const planc_plan *plan, int64_t index);
/* How many uses the exec at `index` in file order has: plans state only where they start, so they end where the next
 * exec's start. -1 when they are not inside plan->uses. */
int32_t planc_plan_uses_at(const planc_plan *plan, int64_t index);

#endif
