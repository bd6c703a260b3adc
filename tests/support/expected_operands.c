/* Whether a call's operands are what the plan's residencies and the graph's tensors make of them (expected_calls.h). */
#include <string.h>

#include "tests/support/expected_parts.h"

/* The residency of an instance's buffer of a storage, and the access; -1 where it has none, or the access is skipped.
 */
static int32_t residency_of(const expected_calls *e, const planc_instr *exec, int32_t storage,
                            const planc_access **out_access) {
  const planc_instance *instance = &e->trace->instances[exec->id];
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    *out_access = &e->trace->accesses[instance->first_access + k];
    if (e->trace->buffers[(*out_access)->buffer].storage == storage) return e->plan->uses[exec->first_use + k];
  }
  *out_access = NULL;
  return -1;
}

static bool same_shape(const planc_tensor *tensor, int64_t batch, const rt_operand *got) {
  int64_t elements = 1;
  if (got->dtype != tensor->dtype || got->rank != tensor->rank) return false;
  for (int32_t d = 0; d < tensor->rank; d++) {
    if (got->dims[d] != planc_law_at(tensor->dims[d], batch)) return false;
    elements *= got->dims[d];
  }
  return got->elements == elements && got->bytes == elements * planc_dtype_bytes(tensor->dtype) &&
         got->offset == planc_law_at(tensor->offset, batch);
}

/* Operands of an op: windows on the residencies, with shapes at the round's batch. */
static const char *operands_difference(const expected_calls *e, const planc_instr *exec, const int32_t *tensors,
                                       int32_t n, const rt_operand *got, bool out) {
  const planc_instance *instance = &e->trace->instances[exec->id];
  const planc_graph *graph = e->trace->jobs[instance->job].graph;
  for (int32_t i = 0; i < n; i++) {
    const planc_tensor *tensor = &graph->tensors[tensors[i]];
    const planc_access *access;
    int32_t residency = residency_of(e, exec, tensor->storage, &access);
    if (!access || (residency < 0 && !(exec->recompute && access->effect))) return "accesses";
    const char *data =
        residency < 0 ? NULL : expected_residency(e, residency) + planc_law_at(tensor->offset, instance->batch);
    if (got[i].data != data) return "operand address";
    if (!same_shape(tensor, instance->batch, &got[i])) return "operand shape";
    /* A gradient that the iteration's earlier rounds have begun, unless this round's goes elsewhere first. */
    bool begun = e->trace->buffers[access->buffer].kind == PLANC_KIND_grad && instance->round > 0;
    if (out && got[i].accumulate != begun) return "accumulation";
  }
  return NULL;
}

/* A round's gradient, whole, added to the iteration's. */
static const char *accumulation_difference(const expected_calls *e, const planc_instr *exec, const rt_call *got) {
  if (got->n_in != 1 || got->n_out != 1 || got->n_effects != 0) return "operands of an accumulation";
  const rt_operand *operands[] = {got->in, got->out};
  for (int32_t k = 0; k < 2; k++) {
    const rt_operand *operand = operands[k];
    int32_t residency = e->plan->uses[exec->first_use + k];
    const planc_buffer *buffer = &e->trace->buffers[e->buffer[residency]];
    const planc_graph *graph = e->trace->jobs[buffer->job].graph;
    planc_dtype dtype = graph->tensors[graph->storages[buffer->storage].tensor].dtype;
    if (buffer->kind != (k == 0 ? PLANC_KIND_temp : PLANC_KIND_grad)) return "accumulated buffer";
    if (operand->data != expected_residency(e, residency)) return "operand address";
    if (operand->dtype != dtype || operand->rank != 1 || operand->dims[0] != operand->elements ||
        operand->bytes != buffer->bytes || operand->elements * planc_dtype_bytes(dtype) != buffer->bytes)
      return "operand shape";
  }
  return got->out->accumulate ? NULL : "accumulation";
}

const char *expected_call_difference(const expected_calls *e, const planc_instr *exec, const rt_call *got) {
  const planc_instance *instance = &e->trace->instances[exec->id];
  const planc_job *job = &e->trace->jobs[instance->job];
  const planc_op *op = &job->graph->ops[instance->op];
  if (got->instance != exec->id || got->op != op || got->graph != job->graph || got->role != instance->role)
    return "instance";
  if (got->batch != instance->batch || got->job_batch != job->batch || got->sample_offset != instance->sample_offset)
    return "batch";
  if (got->iteration != instance->iteration || got->iterations != job->iterations) return "iteration";
  if (instance->role == PLANC_ROLE_ACCUMULATE) return accumulation_difference(e, exec, got);
  if (got->n_in != op->n_in || got->n_out != op->n_out || got->n_effects != op->n_effects) return "operands";
  const char *differs = operands_difference(e, exec, op->in, op->n_in, got->in, false);
  if (!differs) differs = operands_difference(e, exec, op->out, op->n_out, got->out, true);
  return differs ? differs : operands_difference(e, exec, op->effects, op->n_effects, got->effects, false);
}
