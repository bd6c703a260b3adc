/* What runs on a plan's streams: kinds of instructions, and whether streams and events are there. */
#ifndef PLANC_ANALYSIS_PLAN_STREAMS_H
#define PLANC_ANALYSIS_PLAN_STREAMS_H

#include "plan/copies.h"

static inline bool pl_instr_has_stream(const planc_instr *instr) {
  return instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_release;
}
/* A copy that an engine makes, from a memory to another. Those inside a memory are kernels. */
static inline bool pl_instr_is_copy(const planc_plan *plan, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_copy && plan->streams[instr->stream].kind == PLANC_STREAM_KIND_copy;
}
static inline bool pl_instr_is_kernel(const planc_plan *plan, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec || (instr->op == PLANC_INSTR_copy && !pl_instr_is_copy(plan, instr));
}
/* The route of a copy from a memory to another; PLANC_NO_ROUTE of all else, and where a memory is not known. */
planc_route pl_instr_route(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *instr);

/* INVALID_PLAN when an instruction with a stream names a stream, an event or a residency that there is not, runs an op
 * on a stream for copies, or states a negative time or size. Of a plan whose streams are right. */
planc_status pl_stream_instr_check(const planc_plan *plan, const planc_instr *instr);
/* The same of all instructions of a section, and whether the plan's memories, links and streams are right. */
planc_status pl_section_check(const planc_plan *plan, const planc_section *section);

#endif
