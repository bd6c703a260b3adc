/* Resolving an op instance: which memory, with which shape, every operand is. */
#include "runtime/call.h"

#include <string.h>

#include "util/math.h"

static planc_status describe_sum(pl_arena *arena, const planc_trace *trace, rt_call *call);
static planc_status describe_all(pl_arena *arena, const planc_trace *trace, const rt_call *call, const int32_t *tensors,
                                 int32_t count, rt_operand **out);
static planc_status describe_accumulation(pl_arena *arena, const planc_buffer *from, const planc_buffer *to,
                                          rt_call *call);
static planc_status describe_exchange(pl_arena *arena, int32_t replicas, const planc_buffer *gradient,
                                      const planc_buffer *others, rt_call *call);

int32_t rt_most_accesses(const planc_trace *trace) {
  int32_t most = 0;
  for (int32_t i = 0; i < trace->n_instances; i++)
    if (trace->instances[i].n_accesses > most) most = trace->instances[i].n_accesses;
  return most;
}

planc_status rt_call_make(pl_arena *arena, const planc_trace *trace, int32_t replica, int32_t instance,
                          void *const *memory, rt_call *out) {
  const planc_instance *at = &trace->instances[instance];
  const planc_job *job = &trace->jobs[at->job];
  *out = (rt_call){.trace = trace,
                   .graph = job->graph,
                   .op = planc_trace_op(trace, instance),
                   .replica = replica,
                   .instance = instance,
                   .role = at->role,
                   .batch = at->batch,
                   .job_batch = planc_job_whole_batch(job),
                   .sample_offset = replica * job->batch + at->sample_offset,
                   .iteration = at->iteration,
                   .iterations = job->iterations};
  PLANC_TRY(PL_NEW(arena, &out->memory, at->n_accesses));
  if (at->n_accesses > 0) memcpy(out->memory, memory, (size_t)at->n_accesses * sizeof *memory);
  if (at->role != PLANC_ROLE_OP) return describe_sum(arena, trace, out);

  out->n_in = out->op->n_in;
  out->n_out = out->op->n_out;
  out->n_effects = out->op->n_effects;
  PLANC_TRY(describe_all(arena, trace, out, out->op->in, out->n_in, &out->in));
  PLANC_TRY(describe_all(arena, trace, out, out->op->out, out->n_out, &out->out));
  return describe_all(arena, trace, out, out->op->effects, out->n_effects, &out->effects);
}

static planc_status describe_sum(pl_arena *arena, const planc_trace *trace, rt_call *call) {
  const planc_instance *instance = &trace->instances[call->instance];
  const planc_access *accesses = &trace->accesses[instance->first_access];
  if (instance->n_accesses != 2) return planc_error(PLANC_INTERNAL, "op %s: a sum of no two buffers", call->op->name);
  const planc_buffer *first = &trace->buffers[accesses[0].buffer], *second = &trace->buffers[accesses[1].buffer];
  call->n_out = 1;
  call->n_in = call->role == PLANC_ROLE_ACCUMULATE ? 1 : planc_trace_replicas(trace);
  if (call->role == PLANC_ROLE_ACCUMULATE) return describe_accumulation(arena, first, second, call);
  return describe_exchange(arena, call->n_in, first, second, call);
}

static planc_status describe(const planc_trace *trace, int32_t access, int32_t tensor, void *const *memory,
                             rt_operand *out) {
  const planc_access *with = &trace->accesses[access];
  const planc_instance *of = &trace->instances[with->instance];
  const planc_tensor *view = &trace->jobs[of->job].graph->tensors[tensor];
  int64_t batch = of->batch;
  int64_t offset = planc_law_at(view->offset, batch), end;
  out->dtype = view->dtype;
  out->rank = view->rank;
  out->bytes = planc_law_at(view->bytes, batch);
  out->elements = out->bytes / planc_dtype_bytes(view->dtype);
  out->offset = offset;
  for (int32_t d = 0; d < view->rank; d++) out->dims[d] = planc_law_at(view->dims[d], batch);
  if (offset < 0 || out->bytes < 0 || pl_add_overflow(offset, out->bytes, &end) ||
      end > trace->buffers[with->buffer].bytes)
    return planc_error(PLANC_INTERNAL, "tensor %s does not lie inside its buffer", view->name);
  /* A round's later gradients are added in place, but for those that go through a temporary. */
  out->accumulate = of->accumulates && with->read >= 0 && trace->buffers[with->buffer].kind == PLANC_KIND_grad;
  char *base = memory[access - of->first_access];
  out->data = base ? base + offset : NULL;
  return NULL;
}

static planc_status describe_all(pl_arena *arena, const planc_trace *trace, const rt_call *call, const int32_t *tensors,
                                 int32_t count, rt_operand **out) {
  PLANC_TRY(PL_NEW(arena, out, count));
  for (int32_t i = 0; i < count; i++) {
    int32_t access = planc_trace_access_of(trace, call->instance, tensors[i]);
    if (access < 0)
      return planc_error(PLANC_INTERNAL, "op %s: no access serves tensor %s", call->op->name,
                         call->graph->tensors[tensors[i]].name);
    PLANC_TRY(planc_context(describe(trace, access, tensors[i], call->memory, &(*out)[i]), "op %s", call->op->name));
  }
  return NULL;
}

/* --- Sums --------------------------------------------------------------------------------------------------------- */

/* A gradient's storage, whole, as a vector. */
static rt_operand flat(const rt_call *call, const planc_buffer *gradient, void *data) {
  planc_dtype dtype = call->graph->tensors[call->graph->storages[gradient->storage].tensor].dtype;
  rt_operand out = {.data = data, .dtype = dtype, .rank = 1, .bytes = gradient->bytes};
  out.elements = out.dims[0] = gradient->bytes / planc_dtype_bytes(dtype);
  return out;
}

/* Of the buffers of an access that reads and of one that writes. */
static planc_status describe_accumulation(pl_arena *arena, const planc_buffer *from, const planc_buffer *to,
                                          rt_call *call) {
  PLANC_TRY(PL_NEW(arena, &call->in, 1));
  PLANC_TRY(PL_NEW(arena, &call->out, 1));
  *call->in = flat(call, from, call->memory[0]);
  *call->out = flat(call, to, call->memory[1]);
  call->out->accumulate = true;
  if (call->in->bytes == call->out->bytes && call->in->dtype == call->out->dtype) return NULL;
  return planc_error(PLANC_INTERNAL, "op %s: accumulation of unlike buffers", call->op->name);
}

/* The gradients of all replicas in their order: the own one at its place, around it the others', which lie behind each
 * other. */
static planc_status describe_exchange(pl_arena *arena, int32_t replicas, const planc_buffer *gradient,
                                      const planc_buffer *others, rt_call *call) {
  int64_t stride = planc_other_stride(gradient->bytes);
  char *other = call->memory[1];
  if (others->peer < 0 || others->bytes != (replicas - 1) * stride)
    return planc_error(PLANC_INTERNAL, "op %s: an exchange that is none of %d replicas", call->op->name, replicas);
  PLANC_TRY(PL_NEW(arena, &call->in, replicas));
  PLANC_TRY(PL_NEW(arena, &call->out, 1));
  for (int32_t r = 0; r < replicas; r++) {
    void *data = r == call->replica ? call->memory[0] : other;
    call->in[r] = flat(call, gradient, data);
    if (r != call->replica && other) other += stride;
  }
  *call->out = call->in[call->replica];
  return NULL;
}
