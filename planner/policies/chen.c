/* `chen`: checkpoints every sqrt(n) ops (Chen et al., "Training deep nets with sublinear memory cost", 2016).
 *
 * The forward ops of a round are cut into about sqrt(n) segments of equal length in execution order. Branches: what is
 * alive across a cut (made before it, read by a forward op behind it) is kept, so a segment can always be recomputed
 * from what its cut kept; everything else is dropped. */
#include <stdlib.h>

#include "planner/choose/recompute.h"
#include "planner/policies/policies.h"

/* The smallest s with s * s >= n. */
static int32_t ceil_sqrt(int32_t n) {
  int32_t s = 1;
  while ((int64_t)s * s < n) s++;
  return s;
}

/* The position of every instance within its round. */
static void number(const planc_trace *trace, int32_t *position) {
  for (int32_t i = 0; i < trace->n_instances; i++) {
    bool new_round = i == 0 || trace->instances[i].round != trace->instances[i - 1].round ||
                     trace->instances[i].iteration != trace->instances[i - 1].iteration;
    position[i] = new_round ? 0 : position[i - 1] + 1;
  }
}

/* Keeps what is alive across a cut, told by its first and last forward access, and the last segment, with which the
 * backward pass begins. */
static planc_status keep_checkpoints(const planc_trace *trace, bool *keep) {
  int32_t n_forward = 0;
  while (n_forward < trace->n_instances && planc_trace_op(trace, n_forward)->phase == PLANC_PHASE_forward) n_forward++;
  int32_t length = ceil_sqrt(n_forward), last_segment = n_forward ? (n_forward - 1) / length : 0;
  int32_t *position = malloc(((size_t)trace->n_instances + 1) * sizeof *position);
  if (!position) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  number(trace, position);
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    int32_t first = -1, last = -1;
    for (int32_t i = buffer->first_access; i < buffer->first_access + buffer->n_accesses; i++) {
      int32_t instance = trace->accesses[trace->by_buffer[i]].instance;
      if (planc_trace_op(trace, instance)->phase != PLANC_PHASE_forward) break;
      if (first < 0) first = position[instance] / length;
      last = position[instance] / length;
    }
    keep[b] = first >= 0 && (first != last || first == last_segment);
  }
  free(position);
  return NULL;
}

planc_status planc_policy_chen(const planc_evaluator *evaluator, planc_candidate *out) {
  return planc_recompute_plan(evaluator, keep_checkpoints, out);
}
