/* Short words for what tests ask of plans. */
#ifndef PLANC_TESTS_PLAN_VIEW_H
#define PLANC_TESTS_PLAN_VIEW_H

#include <string.h>

#include "plan/copies.h"

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

/* Of plans whose engines copy one way only. */
static inline bool copies_on(const planc_plan *plan, const planc_instr *instr, const char *word) {
  return instr->op == PLANC_INSTR_copy && strcmp(pl_stream_word(plan, instr->stream), word) == 0;
}
/* A copy of what the plan itself has put somewhere, not one from or to the user. */
static inline bool copies_own(const planc_plan *plan, const planc_instr *instr, const char *word) {
  return copies_on(plan, instr, word) && instr->id != PLANC_USER && instr->aux != PLANC_USER;
}
static inline bool swaps_out(const planc_plan *plan, const planc_instr *instr) {
  return copies_own(plan, instr, "d2h");
}
static inline bool swaps_in(const planc_plan *plan, const planc_instr *instr) {
  return copies_own(plan, instr, "h2d");
}

#endif
