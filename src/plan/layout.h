/* What stands where in a plan's file: the graphs, each once, the lines of the instructions, and their uses. */
#ifndef PLANC_PLAN_LAYOUT_H
#define PLANC_PLAN_LAYOUT_H

#include "planc/plan.h"
#include "util/arena.h"

typedef struct pl_plan_layout {
  int32_t n_graphs;
  const planc_graph **graphs; /* in the order in which jobs first name them */
  int32_t *graph_of_job;      /* index into graphs */
  int64_t n_tensors, n_ops;   /* of all graphs */
  int64_t n_instrs;           /* of all sections */
  int64_t first_instr_line;   /* of the prologue's first instruction; the others follow, section after section */
} pl_plan_layout;

/* Fails when there are more jobs or replicas than a plan may have, and when not all jobs have as many replicas. */
planc_status pl_plan_layout_make(const planc_plan *plan, pl_arena *arena, pl_plan_layout *out);

/* The instruction at `index` in file order. */
const planc_instr *pl_plan_instr_at(const planc_plan *plan, int64_t index);
/* How many uses the exec at `index` in file order has: plans state only where they start, so they end where the next
 * exec's start. -1 when they are not inside plan->uses. */
int32_t pl_plan_uses_at(const planc_plan *plan, int64_t index);

#endif
