/* What runs on a plan's streams: kinds of instructions, and whether streams and events are there. */
#ifndef PLANC_SIMULATE_PLAN_STREAMS_H
#define PLANC_SIMULATE_PLAN_STREAMS_H

#include "planc/plan.h"

static inline bool planc_instr_is_copy(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_offload || instr->op == PLANC_INSTR_prefetch;
}
static inline bool planc_instr_is_kernel(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec || instr->op == PLANC_INSTR_move;
}
static inline bool planc_instr_has_stream(const planc_instr *instr) {
  return instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_release;
}
/* Of a copy: 0 to the device, 1 to the host. */
static inline int planc_instr_direction(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_offload;
}

/* INVALID_PLAN when a stream belongs to no job. */
planc_status planc_streams_check(const planc_plan *plan);
/* INVALID_PLAN when an instruction with a stream names a stream or an event that there is not, or states a negative
 * time or size. */
planc_status planc_stream_instr_check(const planc_plan *plan, const planc_instr *instr);
/* Both, of all instructions of a section. */
planc_status planc_section_check(const planc_plan *plan, const planc_section *section);

#endif
