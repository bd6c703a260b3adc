/* Short words for what tests ask of plans. */
#ifndef PLANC_TESTS_PLAN_VIEW_H
#define PLANC_TESTS_PLAN_VIEW_H

#include "plan/layout.h"

/* The memory of the first GPU, and the host's. */
static inline planc_memory *device_of(const planc_plan *plan) {
  return &plan->memories[0];
}
static inline planc_memory *host_of(const planc_plan *plan) {
  return &plan->memories[planc_plan_gpus(plan)];
}

static inline bool acquires_on_device(const planc_plan *plan, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_acquire && plan->memories[instr->memory].kind == PLANC_MEMORY_DEVICE;
}
static inline bool is_parked(const planc_plan *plan, const planc_boundary *row) {
  return plan->memories[row->memory].kind != PLANC_MEMORY_DEVICE;
}

/* A copy of what the plan itself has put somewhere, not one from or to the user. */
static inline bool copies_own(const planc_plan *plan, const planc_instr *instr, planc_copy_way way) {
  return instr->op == PLANC_INSTR_copy && instr->id != PLANC_USER && instr->aux != PLANC_USER &&
         planc_way_of_stream(plan, instr->stream) == way;
}
static inline bool swaps_out(const planc_plan *plan, const planc_instr *instr) {
  return copies_own(plan, instr, PLANC_COPY_OUT);
}
static inline bool swaps_in(const planc_plan *plan, const planc_instr *instr) {
  return copies_own(plan, instr, PLANC_COPY_IN);
}

#endif
