/* What a backend has for the ops of a graph, without running any (measure.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/profile/measure.h"
#include "runtime/stop.h"

/* Every op of a graph at one batch, as a call whose operands lie nowhere. */
typedef struct calls {
  planc_trace *trace;
  pl_arena memory;
  void **nowhere;
} calls;

/* One batch that is asked about. */
typedef struct op_listing {
  const rt_list_options *options;
  int64_t batch;
  calls calls;
  rt_variant *found; /* room for RT_MAX_VARIANTS */
} op_listing;

planc_status rt_list_open(const planrt_backend *backend, bool deterministic, rt_device **out) {
  rt_device_options nothing = {.deterministic = deterministic};
  char *properties = NULL;
  if (backend->properties) PLANC_TRY(backend->properties(&properties));
  nothing.properties = properties;
  planc_status status = backend->open(&nothing, out);
  free(properties);
  return status;
}

static planc_status open_calls(calls *c, const planc_graph *graph, const int64_t *batch);
static void close_calls(calls *c);
static planc_status list_all(const op_listing *l, rt_op_times *out);

planc_status rt_list_ops(const rt_list_options *options, int64_t batch, rt_op_times *out) {
  op_listing l = {.options = options, .batch = batch};
  l.found = calloc(RT_MAX_VARIANTS, sizeof *l.found);
  if (!l.found) return planc_error(PLANC_OUT_OF_MEMORY, "variants");
  planc_status status = open_calls(&l.calls, options->graph, &batch);
  if (!status) status = list_all(&l, out);
  close_calls(&l.calls);
  free(l.found);
  return planc_context(status, "batch %lld", (long long)batch);
}

static planc_status open_calls(calls *c, const planc_graph *graph, const int64_t *batch) {
  planc_job job = {.graph = graph, .batch = *batch, .n_rounds = 1, .rounds = batch, .iterations = 1};
  PLANC_TRY(planc_expand(&job, 1, &c->trace));
  return PL_NEW(&c->memory, &c->nowhere, rt_most_accesses(c->trace));
}

static void close_calls(calls *c) {
  planc_trace_free(c->trace);
  pl_arena_free(&c->memory);
}

static planc_method method_of(uint32_t notes) {
  if (notes >> RT_NOTE_WINOGRAD & 1) return PLANC_METHOD_WINOGRAD;
  if (notes >> RT_NOTE_FFT & 1) return PLANC_METHOD_FFT;
  return notes >> RT_NOTE_TENSOR_CORE & 1 ? PLANC_METHOD_TENSOR_CORE : PLANC_METHOD_SCALAR;
}

/* Among variants that the constants cannot tell apart, the library's own order decides: a hundredth for each place. */
static planc_status predict(const planc_profile *described, const planc_graph *graph, int32_t op, int64_t batch,
                            const rt_variant *variant, rt_op_time *out) {
  planc_variant predicted;
  PLANC_TRY(planc_cost_roofline(described, graph, op, batch, method_of(variant->notes), &predicted));
  *out = (rt_op_time){.op = op, .variant = *variant, .busy_ppm = predicted.busy_ppm, .predicted = true, .batch = batch};
  out->time.median_ns = predicted.time_ns + predicted.time_ns / 100 * variant->rank;
  return NULL;
}

/* That order does not put an algorithm before one which gives the same bits every time and needs no more workspace:
 * with `of` being variants of one op at one batch, none is then faster, and ties are decided for the deterministic. */
static void rank_deterministic_first(rt_op_time *of, int64_t n) {
  for (rt_op_time *at = of; at < of + n; at++) {
    int64_t least = 0;
    if (at->variant.deterministic) continue;
    for (const rt_op_time *other = of; other < of + n; other++) {
      if (!other->variant.deterministic || other->variant.workspace_bytes < 0) continue;
      if (other->variant.workspace_bytes > at->variant.workspace_bytes) continue;
      if (method_of(other->variant.notes) != method_of(at->variant.notes)) continue;
      if (least == 0 || other->time.median_ns < least) least = other->time.median_ns;
    }
    if (at->time.median_ns < least) at->time.median_ns = least;
  }
}

static bool stopped(const rt_list_options *options);
static planc_status list_op(const op_listing *l, pl_arena *memory, int32_t instance, rt_op_times *out);

static planc_status list_all(const op_listing *l, rt_op_times *out) {
  planc_status status = NULL;
  for (int32_t i = 0; !status && i < l->calls.trace->n_instances && !stopped(l->options); i++) {
    pl_arena memory = {0};
    status = list_op(l, &memory, i, out);
    pl_arena_free(&memory);
  }
  return status;
}

static bool stopped(const rt_list_options *options) {
  return rt_is_stopped(options->stop);
}

/* An op without an algorithm is left out where someone is to be told. */
static planc_status refuse(const rt_list_options *options, const rt_call *call, planc_status why) {
  if (planc_status_code(why) != PLANC_DEVICE || !options->refused) return planc_context(why, "op %s", call->op->name);
  options->refused(options->user, call->op->name, why);
  planc_status_free(why);
  return NULL;
}

static planc_status list_op(const op_listing *l, pl_arena *memory, int32_t instance, rt_op_times *out) {
  const rt_list_options *options = l->options;
  rt_call call;
  int32_t count, op = l->calls.trace->instances[instance].op;
  PLANC_TRY(rt_call_make(memory, l->calls.trace, 0, instance, l->calls.nowhere, &call));
  planc_status status = options->backend->variants(options->device, &call, l->found, &count);
  if (status) return refuse(options, &call, status);
  count = rt_shortlist(l->found, count, options->most);
  int64_t first = out->len;
  for (int32_t v = 0; v < count; v++) {
    rt_op_time time;
    PLANC_TRY(predict(options->described, options->graph, op, l->batch, &l->found[v], &time));
    VEC_PUSH(out, time);
  }
  rank_deterministic_first(out->data + first, out->len - first);
  return NULL;
}

/* --- At other batches --------------------------------------------------------------------------------------------- */

static int compare_listed(const void *a, const void *b) {
  const rt_op_time *x = a, *y = b;
  if (x->op != y->op) return x->op - y->op;
  int by_name = strcmp(x->variant.algorithm, y->variant.algorithm);
  return by_name != 0 ? by_name : (x->batch > y->batch) - (x->batch < y->batch);
}

void rt_list_sort(rt_op_times *listed) {
  if (listed->len > 0) qsort(listed->data, (size_t)listed->len, sizeof *listed->data, compare_listed);
}

static planc_status list_others(const op_listing *l, const rt_op_times *listed, rt_op_times *out);

planc_status rt_list_again(const rt_list_options *options, int64_t batch, const rt_op_times *listed, rt_op_times *out) {
  op_listing l = {.options = options, .batch = batch};
  planc_status status = open_calls(&l.calls, options->graph, &batch);
  if (!status) status = list_others(&l, listed, out);
  close_calls(&l.calls);
  return planc_context(status, "batch %lld", (long long)batch);
}

/* The end of the entries of one algorithm of one op, which begin at `from`; the one for `batch` is *out. */
static int64_t choose(const rt_op_times *listed, int64_t from, int64_t batch, const rt_op_time **out) {
  const rt_op_time *first = &listed->data[from];
  int64_t end = from;
  *out = NULL;
  for (; end < listed->len; end++) {
    const rt_op_time *at = &listed->data[end];
    if (at->op != first->op || strcmp(at->variant.algorithm, first->variant.algorithm) != 0) break;
    if (!*out || (*out)->batch < batch) *out = at;
  }
  return end;
}

static planc_status list_once_more(const op_listing *l, rt_call *call, const rt_op_time *from, rt_op_times *out) {
  const rt_list_options *options = l->options;
  rt_variant variant = from->variant;
  rt_op_time time;
  call->algorithm = variant.algorithm;
  PLANC_TRY(options->backend->workspace(options->device, call, &variant.workspace_bytes));
  PLANC_TRY(predict(options->described, options->graph, from->op, l->batch, &variant, &time));
  VEC_PUSH(out, time);
  return NULL;
}

static planc_status list_others(const op_listing *l, const rt_op_times *listed, rt_op_times *out) {
  pl_arena memory = {0};
  planc_status status = NULL;
  int64_t at = 0;
  for (int32_t i = 0; !status && i < l->calls.trace->n_instances && !stopped(l->options); i++) {
    int32_t op = l->calls.trace->instances[i].op;
    int64_t first = out->len;
    rt_call call;
    if (at == listed->len || listed->data[at].op != op) continue;
    status = rt_call_make(&memory, l->calls.trace, 0, i, l->calls.nowhere, &call);
    while (!status && at < listed->len && listed->data[at].op == op) {
      const rt_op_time *from;
      at = choose(listed, at, l->batch, &from);
      status = planc_context(list_once_more(l, &call, from, out), "op %s", call.op->name);
    }
    rank_deterministic_first(out->data + first, out->len - first);
  }
  pl_arena_free(&memory);
  return status;
}

/* --- Workspaces --------------------------------------------------------------------------------------------------- */

/* Those of one op. */
static planc_status op_workspaces(const rt_list_options *options, const planc_costs *costs, bool slow, rt_call *call,
                                  int32_t op, int64_t *out) {
  const planrt_backend *backend = options->backend;
  int32_t count;
  const planc_variant *variants = planc_costs_variants(costs, op, 0, &count);
  for (int32_t v = 0; v < count; v++) {
    int64_t *bytes = &out[&variants[v] - costs->variants];
    call->algorithm = variants[v].algorithm;
    if (slow || !backend->slow_workspace || !backend->slow_workspace(options->device, call))
      PLANC_TRY(backend->workspace(options->device, call, bytes));
  }
  return NULL;
}

static planc_status all_workspaces(const rt_list_options *options, const planc_costs *costs, bool slow, const calls *c,
                                   int64_t *out) {
  pl_arena memory = {0};
  planc_status status = NULL;
  for (int32_t v = 0; v < costs->first[costs->graph->n_ops]; v++) out[v] = RT_NOT_ASKED;
  for (int32_t i = 0; !status && i < c->trace->n_instances && !stopped(options); i++) {
    rt_call call;
    status = rt_call_make(&memory, c->trace, 0, i, c->nowhere, &call);
    if (!status)
      status = planc_context(op_workspaces(options, costs, slow, &call, c->trace->instances[i].op, out), "op %s",
                             call.op->name);
  }
  pl_arena_free(&memory);
  return status;
}

planc_status rt_list_workspaces(const rt_list_options *options, const planc_costs *costs, bool slow, int64_t *out) {
  calls c = {0};
  planc_status status = open_calls(&c, costs->graph, &costs->batches[0]);
  if (!status) status = all_workspaces(options, costs, slow, &c, out);
  close_calls(&c);
  return planc_context(status, "batch %lld", (long long)costs->batches[0]);
}
