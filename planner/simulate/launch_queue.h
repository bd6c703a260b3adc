/* A section's instructions as the simulator takes them: by the stream that runs them, and by the job whose host
 * launches them. */
#ifndef PLANC_SIMULATE_LAUNCH_QUEUE_H
#define PLANC_SIMULATE_LAUNCH_QUEUE_H

#include "planc/plan.h"

typedef struct planc_launch_queue {
  const planc_section *section;
  int32_t *first, *order; /* of stream s: order[first[s]] up to, not including, order[first[s+1]] */
  int32_t *first_launch;  /* by job: its first exec, move or copy; section->n if it has none */
  int32_t *next_launch;   /* by exec, move or copy: the job's next one, section->n after the last */
  int32_t n_timed;        /* execs, moves and copies */
} planc_launch_queue;

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

/* Sorts a section. INVALID_PLAN when a stream belongs to no job, or an instruction names a stream or an event that
 * there is not, or states a negative time or size. What *out holds, also after a failure, is freed by
 * planc_launch_queue_free. */
planc_status planc_launch_queue_make(const planc_plan *plan, const planc_section *section, planc_launch_queue *out);
void planc_launch_queue_free(planc_launch_queue *queue);

#endif
