/* Looking at a trace. */
#include "planc/trace.h"

#include <string.h>

bool planc_job_same_rounds(const planc_job *a, const planc_job *b) {
  return a->n_rounds == b->n_rounds && memcmp(a->rounds, b->rounds, (size_t)a->n_rounds * sizeof *a->rounds) == 0;
}

int32_t planc_trace_access_of(const planc_trace *trace, int32_t instance, int32_t tensor) {
  const planc_instance *of = &trace->instances[instance];
  if (of->role != PLANC_ROLE_OP) return -1;
  int32_t storage = trace->jobs[of->job].graph->tensors[tensor].storage;
  for (int32_t a = of->first_access; a < of->first_access + of->n_accesses; a++)
    if (trace->buffers[trace->accesses[a].buffer].storage == storage) return a;
  return -1;
}

const planc_op *planc_trace_op(const planc_trace *trace, int32_t instance) {
  const planc_instance *of = &trace->instances[instance];
  return &trace->jobs[of->job].graph->ops[of->op];
}

const char *planc_trace_type(const planc_trace *trace, int32_t instance) {
  switch (trace->instances[instance].role) {
    case PLANC_ROLE_ACCUMULATE:
      return "accumulate";
    case PLANC_ROLE_EXCHANGE:
      return "exchange";
    default:
      return planc_trace_op(trace, instance)->type;
  }
}

const char *planc_trace_buffer_name(const planc_trace *trace, int32_t buffer) {
  const planc_graph *graph = trace->jobs[trace->buffers[buffer].job].graph;
  return graph->tensors[graph->storages[trace->buffers[buffer].storage].tensor].name;
}

const char *planc_trace_buffer_whose(const planc_trace *trace, int32_t buffer) {
  return trace->buffers[buffer].peer >= 0 ? "the other replicas' " : "";
}

bool planc_trace_recomputable(const planc_trace *trace, int32_t instance) {
  const planc_instance *of = &trace->instances[instance];
  if (planc_trace_op(trace, instance)->flags & PLANC_OP_NO_RECOMPUTE) return false;
  for (int32_t a = of->first_access; a < of->first_access + of->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    const planc_buffer *buffer = &trace->buffers[access->buffer];
    bool adds = buffer->kind == PLANC_KIND_grad && access->read >= 0;
    bool lasting = (buffer->flags & PLANC_BUFFER_PERSISTENT) || adds;
    if (lasting && access->write >= 0 && !access->effect) return false;
  }
  return true;
}
