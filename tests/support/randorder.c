#include "randorder.h"

#include <stdlib.h>

#include "randgraph.h"

/* A reader follows the writers that stand before it in the trace, a writer all that access what it writes. */
static bool is_ready(const planc_trace *trace, int32_t instance, const bool *done) {
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_buffer *buffer = &trace->buffers[trace->accesses[a].buffer];
    for (int32_t k = buffer->first_access; trace->by_buffer[k] != a; k++) {
      const planc_access *before = &trace->accesses[trace->by_buffer[k]];
      bool matters = before->write >= 0 || trace->accesses[a].write >= 0;
      if (matters && !done[before->instance]) return false;
    }
  }
  return !done[instance];
}

void randorder_draw(const planc_trace *trace, uint64_t *state, int32_t *instances) {
  bool *done = calloc((size_t)trace->n_instances + 1, sizeof *done);
  for (int32_t p = 0; done && p < trace->n_instances; p++) {
    int32_t at = (int32_t)rand_below(state, trace->n_instances);
    while (!is_ready(trace, at, done)) at = (at + 1) % trace->n_instances;
    instances[p] = at;
    done[at] = true;
  }
  free(done);
}

planc_status randorder_make(const planc_trace *trace, uint64_t *state, planc_order **out) {
  int32_t *instances = calloc((size_t)trace->n_instances + 1, sizeof *instances);
  if (!instances) return planc_error(PLANC_OUT_OF_MEMORY, "an order");
  randorder_draw(trace, state, instances);
  planc_status status = planc_order_of_instances(trace, instances, out);
  free(instances);
  return status;
}
