/* What a backend has for the ops of a graph, without running any (measure.h). */
#include <stdlib.h>

#include "runtime/measure.h"
#include "runtime/session.h"

/* Every op of a graph at one batch, as a call whose operands lie nowhere. */
typedef struct calls {
  planc_trace *trace;
  planc_arena memory;
  void **nowhere;
} calls;

static planc_status open_calls(calls *c, const planc_graph *graph, const int64_t *batch) {
  planc_job job = {.graph = graph, .batch = *batch, .n_rounds = 1, .rounds = batch, .iterations = 1};
  int32_t most = 0;
  PLANC_TRY(planc_expand(&job, 1, &c->trace));
  for (int32_t i = 0; i < c->trace->n_instances; i++)
    if (c->trace->instances[i].n_accesses > most) most = c->trace->instances[i].n_accesses;
  return PLANC_NEW(&c->memory, &c->nowhere, most);
}

static void close_calls(calls *c) {
  planc_trace_free(c->trace);
  planc_arena_free(&c->memory);
}

static planc_method method_of(uint32_t notes) {
  if (notes >> PLANRT_NOTE_WINOGRAD & 1) return PLANC_METHOD_WINOGRAD;
  if (notes >> PLANRT_NOTE_FFT & 1) return PLANC_METHOD_FFT;
  return notes >> PLANRT_NOTE_TENSOR_CORE & 1 ? PLANC_METHOD_TENSOR_CORE : PLANC_METHOD_SCALAR;
}

/* Among variants that the constants cannot tell apart, the library's own order decides: a hundredth for each place. */
static planc_status predict(const planc_profile *described, const planc_graph *graph, int32_t op, int64_t batch,
                            const planrt_variant *variant, planrt_op_time *out) {
  planc_variant predicted;
  PLANC_TRY(planc_cost_predict(described, graph, op, batch, method_of(variant->notes), &predicted));
  *out = (planrt_op_time){.op = op, .variant = *variant, .busy_ppm = predicted.busy_ppm, .predicted = true};
  out->time.median_ns = predicted.time_ns + predicted.time_ns / 100 * variant->rank;
  return NULL;
}

/* Where it is asked, and what it is asked with. */
typedef struct listing {
  const planrt_backend *backend;
  planrt_device *device;
  const planc_profile *described;
  const planc_graph *graph;
  int64_t batch;
  calls calls;
  planrt_variant *found; /* room for PLANRT_MAX_VARIANTS */
} listing;

static planc_status list_op(const listing *l, planc_arena *memory, int32_t instance, planrt_op_times *out) {
  planrt_call call;
  int32_t count, op = l->calls.trace->instances[instance].op;
  PLANC_TRY(planrt_call_make(memory, l->calls.trace, instance, l->calls.nowhere, &call));
  PLANC_TRY(planc_context(l->backend->variants(l->device, &call, l->found, &count), "op %s", call.op->name));
  for (int32_t v = 0; v < count; v++) {
    planrt_op_time time;
    PLANC_TRY(predict(l->described, l->graph, op, l->batch, &l->found[v], &time));
    VEC_PUSH(out, time);
  }
  return NULL;
}

static planc_status list_all(const listing *l, planrt_op_times *out) {
  planc_status status = NULL;
  for (int32_t i = 0; !status && i < l->calls.trace->n_instances; i++) {
    planc_arena memory = {0};
    status = list_op(l, &memory, i, out);
    planc_arena_free(&memory);
  }
  return status;
}

planc_status planrt_list_ops(const planrt_backend *backend, planrt_device *device, const planc_profile *described,
                             const planc_graph *graph, int64_t batch, planrt_op_times *out) {
  listing l = {.backend = backend, .device = device, .described = described, .graph = graph, .batch = batch};
  l.found = calloc(PLANRT_MAX_VARIANTS, sizeof *l.found);
  if (!l.found) return planc_error(PLANC_OUT_OF_MEMORY, "variants");
  planc_status status = open_calls(&l.calls, graph, &batch);
  if (!status) status = list_all(&l, out);
  close_calls(&l.calls);
  free(l.found);
  return planc_context(status, "batch %lld", (long long)batch);
}

/* --- Workspaces ------------------------------------------------------------------------------------------------- */

static planc_status list_workspaces(const planrt_backend *backend, planrt_device *device, const planc_costs *costs,
                                    const calls *c, int64_t *out) {
  planc_arena memory = {0};
  planc_status status = NULL;
  for (int32_t i = 0; !status && i < c->trace->n_instances; i++) {
    planrt_call call;
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, c->trace->instances[i].op, 0, &count);
    status = planrt_call_make(&memory, c->trace, i, c->nowhere, &call);
    for (int32_t v = 0; !status && v < count; v++) {
      call.algorithm = variants[v].algorithm;
      status = planc_context(backend->workspace(device, &call, &out[&variants[v] - costs->variants]), "op %s",
                             call.op->name);
    }
  }
  planc_arena_free(&memory);
  return status;
}

planc_status planrt_list_workspaces(const planrt_backend *backend, planrt_device *device, const planc_costs *costs,
                                    int64_t *out) {
  calls c = {0};
  planc_status status = open_calls(&c, costs->graph, &costs->batches[0]);
  if (!status) status = list_workspaces(backend, device, costs, &c, out);
  close_calls(&c);
  return planc_context(status, "batch %lld", (long long)costs->batches[0]);
}
