/* `chen`: checkpoints every sqrt(n) ops (Chen et al., "Training deep nets with sublinear memory cost", 2016).
 *
 * The forward ops of a round are cut into about sqrt(n) segments of equal length in execution order. Branches: what is
 * alive across a cut (made before it, read by a forward op behind it) is kept, so a segment can always be recomputed
 * from what its cut kept; everything else is dropped. */
#include <stdlib.h>

#include "planner/choose/recompute.h"
#include "planner/policies/policies.h"

static planc_status keep_checkpoints(const planc_order *order, bool *keep);

planc_status pl_policy_chen(const planc_evaluator *evaluator, planc_candidate *out) {
  return pl_recompute_plan(evaluator, keep_checkpoints, out);
}

/* The smallest s with s * s >= n. */
static int32_t ceil_sqrt(int32_t n) {
  int32_t s = 1;
  while ((int64_t)s * s < n) s++;
  return s;
}

/* The place of every position within its round. */
static void number(const planc_order *order, int32_t *place) {
  for (int32_t p = 0; p < order->n; p++) {
    const planc_instance *in = planc_order_instance(order, p),
                         *before = p > 0 ? planc_order_instance(order, p - 1) : in;
    bool new_round = p == 0 || in->round != before->round || in->iteration != before->iteration;
    place[p] = new_round ? 0 : place[p - 1] + 1;
  }
}

/* Keeps what is alive across a cut, told by its first and last forward use, and the last segment, with which the
 * backward pass begins. */
static planc_status keep_checkpoints(const planc_order *order, bool *keep) {
  int32_t n_forward = 0;
  while (n_forward < order->n && planc_order_phase(order, n_forward) == PLANC_PHASE_forward) n_forward++;
  int32_t length = ceil_sqrt(n_forward), last_segment = n_forward ? (n_forward - 1) / length : 0;
  int32_t *place = malloc(((size_t)order->n + 1) * sizeof *place);
  if (!place) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  number(order, place);
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    int32_t first = -1, last = -1;
    for (int32_t u = order->first_use[b]; u < order->first_use[b + 1]; u++) {
      int32_t at = order->uses[u].position;
      if (planc_order_phase(order, at) != PLANC_PHASE_forward) break;
      if (first < 0) first = place[at] / length;
      last = place[at] / length;
    }
    keep[b] = first >= 0 && (first != last || first == last_segment);
  }
  free(place);
  return NULL;
}
