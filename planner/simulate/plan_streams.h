/* What runs on a plan's streams: kinds of instructions, and whether streams and events are there. */
#ifndef PLANC_SIMULATE_PLAN_STREAMS_H
#define PLANC_SIMULATE_PLAN_STREAMS_H

#include "plan/copies.h"

static inline bool planc_instr_has_stream(const planc_instr *instr) {
  return instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_release;
}
/* A copy that an engine makes, from a memory to another. Those inside a memory are kernels. */
static inline bool planc_instr_is_copy(const planc_plan *plan, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_copy && plan->streams[instr->stream].kind == PLANC_STREAM_KIND_copy;
}
static inline bool planc_instr_is_kernel(const planc_plan *plan, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec || (instr->op == PLANC_INSTR_copy && !planc_instr_is_copy(plan, instr));
}
/* Of a copy to a GPU PLANC_COPY_IN, of one from a GPU PLANC_COPY_OUT; -1 of all else. */
static inline int planc_instr_direction(const planc_plan *plan, const planc_acquired *acquired,
                                        const planc_instr *instr) {
  planc_copy_way way = instr->op == PLANC_INSTR_copy ? planc_way_of_copy(plan, acquired, instr) : PLANC_COPY_WITHIN;
  return way == PLANC_COPY_IN || way == PLANC_COPY_OUT ? (int)way : -1;
}

/* INVALID_PLAN when an instruction with a stream names a stream, an event or a residency that there is not, runs an op
 * on a stream for copies, or states a negative time or size. Of a plan whose streams are right. */
planc_status planc_stream_instr_check(const planc_plan *plan, const planc_instr *instr);
/* The same of all instructions of a section, and whether the plan's memories, links and streams are right. */
planc_status planc_section_check(const planc_plan *plan, const planc_section *section);

#endif
