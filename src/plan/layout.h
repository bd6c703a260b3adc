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

/* Fails when there are more jobs than a plan may have. */
planc_status planc_plan_layout_make(const planc_plan *plan, planc_arena *arena, planc_plan_layout *out);

/* --- Memories and links ------------------------------------------------------------------------------------------- */

/* The link by which an engine copies between two memories, -1 = there is none. */
int32_t planc_plan_link_of(const planc_plan *plan, int32_t engine, int32_t from, int32_t to);
/* The GPU that a stream works for: of a copy stream the one that its engine's links lead to or from. -1 = none. */
int32_t planc_gpu_of_stream(const planc_plan *plan, int32_t stream);
/* The GPU of a job's first compute stream; 0 for a job without one. */
int32_t planc_gpu_of_job(const planc_plan *plan, int32_t job);
/* Which way copies on a stream go. */
planc_copy_way planc_way_of_stream(const planc_plan *plan, int32_t stream);
/* The word that people read for a copy: "prefetch", "offload", "move", "copy". */
const char *planc_copy_word(planc_copy_way way);
/* Sets the predicted peaks, which follow from the memories: arena and reserved memory, the most of any GPU. */
void planc_plan_find_peaks(planc_plan *plan);
/* How a profile describes the plan's first GPU and its links to the host; the storage if links lead there and back. */
planc_device planc_plan_describe(const planc_plan *plan);

/* --- Instructions ------------------------------------------------------------------------------------------------- */

/* What the acquires of a plan say of a residency. */
typedef struct planc_acquired {
  int32_t buffer, memory; /* -1: it is never acquired */
  int64_t address, bytes; /* those of the boundary have no bytes unless the prologue acquires them */
} planc_acquired;
/* By residency, in `arena`; of a plan that nobody has checked. */
planc_status planc_plan_acquired(const planc_plan *plan, planc_arena *arena, planc_acquired **out);

/* The instruction at `index` in file order. */
const planc_instr *planc_plan_instr_at(const planc_plan *plan, int64_t index);
/* How many uses the exec at `index` in file order has: plans state only where they start, so they end where the next
 * exec's start. -1 when they are not inside plan->uses. */
int32_t planc_plan_uses_at(const planc_plan *plan, int64_t index);

#endif
