/* Resolving an op instance: which memory, with which shape, every operand is. */
#include "runtime/call.h"

#include <string.h>

#include "util/math.h"

static planc_status describe(const planc_trace *trace, int32_t access, int32_t tensor, void *const *memory,
                             planrt_operand *out) {
  const planc_access *with = &trace->accesses[access];
  const planc_instance *of = &trace->instances[with->instance];
  const planc_tensor *window = &trace->jobs[of->job].graph->tensors[tensor];
  int64_t batch = of->batch;
  int64_t offset = planc_law_at(window->offset, batch), end;
  out->dtype = window->dtype;
  out->rank = window->rank;
  out->bytes = planc_law_at(window->bytes, batch);
  out->elements = out->bytes / planc_dtype_bytes(window->dtype);
  out->offset = offset;
  for (int32_t d = 0; d < window->rank; d++) out->dims[d] = planc_law_at(window->dims[d], batch);
  if (offset < 0 || out->bytes < 0 || planc_add_overflow(offset, out->bytes, &end) ||
      end > trace->buffers[with->buffer].bytes)
    return planc_error(PLANC_INTERNAL, "tensor %s does not lie inside its buffer", window->name);
  /* A round's later gradients are added in place, but for those that go through a temporary. */
  out->accumulate = of->accumulates && with->read >= 0 && trace->buffers[with->buffer].kind == PLANC_KIND_grad;
  char *base = memory[access - of->first_access];
  out->data = base ? base + offset : NULL;
  return NULL;
}

static planc_status describe_all(planc_arena *arena, const planc_trace *trace, const planrt_call *call,
                                 const int32_t *tensors, int32_t count, planrt_operand **out) {
  PLANC_TRY(PLANC_NEW(arena, out, count));
  for (int32_t i = 0; i < count; i++) {
    int32_t access = planc_trace_access_of(trace, call->instance, tensors[i]);
    if (access < 0)
      return planc_error(PLANC_INTERNAL, "op %s: no access serves tensor %s", call->op->name,
                         call->graph->tensors[tensors[i]].name);
    PLANC_TRY(planc_context(describe(trace, access, tensors[i], call->memory, &(*out)[i]), "op %s", call->op->name));
  }
  return NULL;
}

/* Whole buffers of a gradient's storage as vectors: those that are added, and the one that gets the sum. */
static planc_status describe_sum(planc_arena *arena, const planc_trace *trace, planrt_call *call) {
  const planc_instance *instance = &trace->instances[call->instance];
  int32_t n = instance->n_accesses, sum = -1;
  planrt_operand *operands;
  PLANC_TRY(PLANC_NEW(arena, &operands, (int64_t)n + 1));
  for (int32_t i = 0; i < n; i++) {
    const planc_access *access = &trace->accesses[instance->first_access + i];
    const planc_buffer *buffer = &trace->buffers[access->buffer];
    planc_dtype dtype = call->graph->tensors[call->graph->storages[buffer->storage].tensor].dtype;
    operands[i] = (planrt_operand){.data = call->memory[i], .dtype = dtype, .rank = 1, .bytes = buffer->bytes};
    operands[i].elements = operands[i].dims[0] = buffer->bytes / planc_dtype_bytes(dtype);
    if (operands[i].bytes != operands[0].bytes || dtype != operands[0].dtype)
      return planc_error(PLANC_INTERNAL, "op %s: accumulation of unlike buffers", call->op->name);
    if (access->write >= 0) sum = i;
  }
  if (sum < 0) return planc_error(PLANC_INTERNAL, "op %s: accumulation into no buffer", call->op->name);
  bool adds = call->role == PLANC_ROLE_ACCUMULATE;
  operands[n] = operands[sum];
  operands[n].accumulate = adds;
  call->in = operands;
  call->n_in = adds ? 1 : n;
  call->out = &operands[n];
  call->n_out = 1;
  return NULL;
}

int32_t planrt_most_accesses(const planc_trace *trace) {
  int32_t most = 0;
  for (int32_t i = 0; i < trace->n_instances; i++)
    if (trace->instances[i].n_accesses > most) most = trace->instances[i].n_accesses;
  return most;
}

planc_status planrt_call_make(planc_arena *arena, const planc_trace *trace, int32_t instance, void *const *memory,
                              planrt_call *out) {
  const planc_instance *at = &trace->instances[instance];
  const planc_job *job = &trace->jobs[at->job];
  *out = (planrt_call){.trace = trace,
                       .graph = job->graph,
                       .op = planc_trace_op(trace, instance),
                       .instance = instance,
                       .role = at->role,
                       .batch = at->batch,
                       .job_batch = planc_job_whole_batch(job),
                       .sample_offset = at->sample_offset,
                       .iteration = at->iteration,
                       .iterations = job->iterations};
  PLANC_TRY(PLANC_NEW(arena, &out->memory, at->n_accesses));
  if (at->n_accesses > 0) memcpy(out->memory, memory, (size_t)at->n_accesses * sizeof *memory);
  if (at->role != PLANC_ROLE_OP) return describe_sum(arena, trace, out);

  out->n_in = out->op->n_in;
  out->n_out = out->op->n_out;
  out->n_effects = out->op->n_effects;
  PLANC_TRY(describe_all(arena, trace, out, out->op->in, out->n_in, &out->in));
  PLANC_TRY(describe_all(arena, trace, out, out->op->out, out->n_out, &out->out));
  return describe_all(arena, trace, out, out->op->effects, out->n_effects, &out->effects);
}
