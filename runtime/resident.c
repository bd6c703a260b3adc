/* The resident executor: runs a trace directly, in its own order, with every buffer at an address of its own. What it
 * computes is what every plan over the same trace must compute, bit for bit. */
#include <stdlib.h>

#include "runtime/session.h"
#include "util/math.h"

struct planrt_resident {
  const planrt_backend *backend;
  planrt_device *device;
  const planc_trace *trace;
  planc_arena memory;
  char *workspaces; /* one for each stream that instances may run on at once */
  int64_t workspace_bytes;
  char **at;     /* by buffer; NULL: nothing that runs touches it */
  int32_t *peer; /* of a gradient: the first buffer in which another replica gets it; of that: the next; -1: none */
  planrt_call **calls; /* by instance; NULL: not run */
};

/* Lays the buffers that running instances touch one behind the other, and behind them the largest workspace. */
static planc_status lay_out(const planrt_resident_options *options, int64_t *offsets, int64_t *out_workspace,
                            int64_t *out_bytes) {
  const planc_trace *trace = options->trace;
  int64_t total = 0, workspace = options->workspace_bytes;
  for (int32_t b = 0; b < trace->n_buffers; b++) offsets[b] = -1;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    if (!options->choices[i].algorithm) continue;
    if (options->choices[i].workspace_bytes > workspace) workspace = options->choices[i].workspace_bytes;
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      int32_t buffer = trace->accesses[instance->first_access + k].buffer;
      if (offsets[buffer] >= 0) continue;
      offsets[buffer] = total;
      if (planc_add_overflow(total, planc_align_up(trace->buffers[buffer].bytes, PLANRT_ALIGNMENT), &total))
        return planc_error(PLANC_DEVICE, "a resident run needs more than 2^63 bytes");
    }
  }
  *out_workspace = total;
  if (planc_add_overflow(total, workspace, out_bytes))
    return planc_error(PLANC_DEVICE, "a resident run needs more than 2^63 bytes");
  return NULL;
}

/* Prepares a call, and tells what that made the device take. */
static planc_status prepare_counted(planrt_resident *resident, const planrt_resident_options *options,
                                    planrt_call *call) {
  int64_t before = 0, after = 0;
  if (!options->loaded) return resident->backend->prepare(resident->device, call);
  PLANC_TRY(planrt_resident_taken(resident, &before));
  planc_status status = resident->backend->prepare(resident->device, call);
  planc_status counted = planrt_resident_taken(resident, &after);
  if (!counted) counted = options->loaded(options->user, call->algorithm, after > before ? after - before : 0);
  if (!status) return counted;
  planc_status_free(counted);
  return status;
}

/* On a device that is lost every other choice would fail as well. */
static planc_status prepare(planrt_resident *resident, const planrt_resident_options *options, int32_t instance,
                            planrt_call *call) {
  planrt_choice choice = options->choices[instance];
  for (;;) {
    call->algorithm = choice.algorithm;
    call->workspace_bytes = choice.workspace_bytes;
    if (options->preparing) PLANC_TRY(options->preparing(options->user, instance, call->algorithm));
    planc_status status = prepare_counted(resident, options, call);
    if (planc_status_code(status) != PLANC_DEVICE || !options->instead || planrt_backend_is_lost(resident->backend) ||
        !options->instead(options->user, instance, status, &choice))
      return planc_context(status, "op %s: %s", call->op->name, call->algorithm);
    planc_status_free(status);
  }
}

static planc_status make_call(planrt_resident *resident, const planrt_resident_options *options, int32_t instance,
                              char *workspace, void **memory) {
  const planc_instance *at = &resident->trace->instances[instance];
  for (int32_t k = 0; k < at->n_accesses; k++)
    memory[k] = resident->at[resident->trace->accesses[at->first_access + k].buffer];
  planrt_call *call;
  PLANC_TRY(PLANC_NEW(&resident->memory, &call, 1));
  PLANC_TRY(planrt_call_make(&resident->memory, resident->trace, instance, memory, call));
  call->workspace = workspace;
  resident->calls[instance] = call;
  return prepare(resident, options, instance, call);
}

planc_status planrt_resident_bytes(const planrt_resident_options *options, int64_t *out_bytes) {
  planc_arena memory = {0};
  int64_t *offsets, workspace;
  planc_status status = PLANC_NEW(&memory, &offsets, options->trace->n_buffers);
  if (!status) status = lay_out(options, offsets, &workspace, out_bytes);
  planc_arena_free(&memory);
  return status;
}

static planc_status link_peers(planrt_resident *resident) {
  const planc_trace *trace = resident->trace;
  PLANC_TRY(PLANC_NEW(&resident->memory, &resident->peer, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) resident->peer[b] = -1;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    int32_t gradient = trace->buffers[b].peer;
    if (gradient < 0) continue;
    resident->peer[b] = resident->peer[gradient];
    resident->peer[gradient] = b;
  }
  return NULL;
}

static planc_status build(planrt_resident *resident, const planrt_resident_options *options) {
  const planc_trace *trace = options->trace;
  int64_t *offsets, workspace = 0, bytes = 0;
  void **memory;
  PLANC_TRY(PLANC_NEW(&resident->memory, &resident->at, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(&resident->memory, &resident->calls, trace->n_instances));
  PLANC_TRY(link_peers(resident));
  PLANC_TRY(PLANC_NEW(&resident->memory, &offsets, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(&resident->memory, &memory, planrt_most_accesses(trace)));
  PLANC_TRY(lay_out(options, offsets, &workspace, &bytes));
  resident->workspace_bytes = bytes - workspace < PLANRT_MOST_TOGETHER ? bytes - workspace : PLANRT_MOST_TOGETHER;
  if (options->streams > 1)
    bytes = planc_align_up(bytes, PLANRT_ALIGNMENT) +
            (options->streams - 1) * planc_align_up(resident->workspace_bytes, PLANRT_ALIGNMENT);

  planrt_device_options device = {.arena_bytes = bytes,
                                  .n_streams = options->streams > 1 ? options->streams : 1,
                                  .n_events = 1,
                                  .concurrent = options->streams > 1,
                                  .synthetic = options->synthetic,
                                  .deterministic = options->deterministic};
  PLANC_TRY(resident->backend->open(&device, &resident->device));
  char *arena = resident->backend->arena(resident->device);
  resident->workspaces = arena + workspace;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (offsets[b] >= 0) resident->at[b] = arena + offsets[b];
  for (int32_t i = 0; i < trace->n_instances; i++)
    if (options->choices[i].algorithm) PLANC_TRY(make_call(resident, options, i, arena + workspace, memory));
  return NULL;
}

planc_status planrt_resident_new(const planrt_resident_options *options, planrt_resident **out) {
  planrt_resident *resident = calloc(1, sizeof *resident);
  if (!resident) return planc_error(PLANC_OUT_OF_MEMORY, "resident executor");
  resident->backend = options->backend;
  resident->trace = options->trace;
  planc_status status = build(resident, options);
  if (status)
    planrt_resident_free(resident);
  else
    *out = resident;
  return status;
}

void planrt_resident_free(planrt_resident *resident) {
  if (!resident) return;
  if (resident->device) resident->backend->close(resident->device);
  planc_arena_free(&resident->memory);
  free(resident);
}

planc_status planrt_resident_taken(const planrt_resident *resident, int64_t *out_bytes) {
  return resident->backend->taken(resident->device, out_bytes);
}

planc_status planrt_resident_load(planrt_resident *resident, const planrt_session *session) {
  for (int32_t b = 0; b < resident->trace->n_buffers; b++) {
    const planc_buffer *buffer = &resident->trace->buffers[b];
    if (resident->at[b] && (buffer->flags & PLANC_BUFFER_PERSISTENT))
      PLANC_TRY(resident->backend->copy(resident->device, 0, PLANRT_H2D, resident->at[b], planrt_home(session, buffer),
                                        buffer->bytes, NULL));
  }
  return NULL;
}

static planc_status run_instance(planrt_resident *resident, int32_t i, const planrt_launch *launch, planrt_span *spans,
                                 uint64_t *digests) {
  const planrt_backend *backend = resident->backend;
  PLANC_TRY(backend->launch(resident->device, 0, resident->calls[i], launch, spans ? &spans[i] : NULL));
  return digests ? backend->digest(resident->device, 0, resident->calls[i], &digests[i]) : NULL;
}

/* Copies what an instance made for other replicas to where they get it. */
static planc_status send_all(planrt_resident *resident, int32_t i) {
  const planc_trace *trace = resident->trace;
  const planc_instance *instance = &trace->instances[i];
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    const planc_buffer *gradient = &trace->buffers[trace->accesses[a].buffer];
    if (trace->accesses[a].write < 0 || trace->accesses[a].write != gradient->sent) continue;
    for (int32_t b = resident->peer[trace->accesses[a].buffer]; b >= 0; b = resident->peer[b])
      PLANC_TRY(resident->backend->copy(resident->device, 0, PLANRT_D2D, resident->at[b],
                                        resident->at[trace->accesses[a].buffer], gradient->bytes, NULL));
  }
  return NULL;
}

planc_status planrt_resident_bring(planrt_resident *resident, const planrt_session *session) {
  for (int32_t b = 0; b < resident->trace->n_buffers; b++)
    if (resident->at[b] && session->samples[b])
      PLANC_TRY(resident->backend->copy(resident->device, 0, PLANRT_H2D, resident->at[b], session->samples[b],
                                        resident->trace->buffers[b].bytes, NULL));
  return NULL;
}

planc_status planrt_resident_enqueue(planrt_resident *resident, int32_t first, int32_t n, const planrt_launch *launch,
                                     planrt_span *spans, uint64_t *digests) {
  for (int32_t i = first; i < first + n; i++) {
    if (!resident->calls[i]) continue;
    PLANC_TRY(run_instance(resident, i, launch, spans, digests));
    PLANC_TRY(send_all(resident, i));
  }
  return NULL;
}

planc_status planrt_resident_run_one(planrt_resident *resident, int32_t i, const planrt_launch *launch,
                                     planrt_span *spans) {
  const planrt_call *call = resident->calls[i];
  if (!call) return NULL;
  planc_status status = planrt_resident_enqueue(resident, i, 1, launch, spans, NULL);
  if (!status) status = planc_context(planrt_resident_synchronize(resident), "op %s", call->op->name);
  return planc_context(status, "%s", call->algorithm);
}

planc_status planrt_resident_synchronize(planrt_resident *resident) {
  return resident->backend->synchronize(resident->device);
}

planc_status planrt_resident_run(planrt_resident *resident, const planrt_session *session, const planrt_launch *launch,
                                 planrt_feed feed, void *user, planrt_span *spans, uint64_t *digests) {
  const planc_trace *trace = resident->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (!resident->at[b] || !(trace->buffers[b].flags & PLANC_BUFFER_FED) || trace->buffers[b].peer >= 0) continue;
    PLANC_TRY(
        planrt_ask(feed, user, trace, b, session->options.same_samples ? 0 : launch->step.period, session->staging));
    PLANC_TRY(resident->backend->copy(resident->device, 0, PLANRT_H2D, resident->at[b], session->staging,
                                      trace->buffers[b].bytes, NULL));
    /* The staging is needed again, and may be read until then. */
    PLANC_TRY(resident->backend->synchronize(resident->device));
  }
  PLANC_TRY(planrt_resident_enqueue(resident, 0, trace->n_instances, launch, spans, digests));
  return resident->backend->synchronize(resident->device);
}

/* The same call with a workspace of its own for each stream: outputs they may share, since all put out the same. */
static planc_status make_twins(planrt_resident *resident, const planrt_call *call, int32_t n, planrt_call *twins) {
  int64_t step = planc_align_up(resident->workspace_bytes, PLANRT_ALIGNMENT);
  twins[0] = *call;
  for (int32_t s = 1; s < n; s++) {
    twins[s] = *call;
    if (call->workspace_bytes == 0) continue;
    twins[s].workspace = resident->workspaces + s * step;
    PLANC_TRY(resident->backend->prepare(resident->device, &twins[s]));
  }
  return NULL;
}

planc_status planrt_resident_together(planrt_resident *resident, int32_t instance, int32_t n, int32_t times,
                                      int64_t *out_ns) {
  const planrt_backend *backend = resident->backend;
  planrt_device *device = resident->device;
  planrt_launch launch = {0};
  planrt_call twins[PLANRT_MAX_TOGETHER];
  planrt_span gate = {0}, last[PLANRT_MAX_TOGETHER] = {{0}};
  *out_ns = 0;
  if (resident->calls[instance]->workspace_bytes > resident->workspace_bytes) return NULL;
  PLANC_TRY(make_twins(resident, resident->calls[instance], n, twins));
  /* All streams begin where the first one's timed piece of nothing ends: by then there is something in every queue. */
  PLANC_TRY(backend->copy(device, 0, PLANRT_D2D, twins[0].workspace, twins[0].workspace, 0, &gate));
  PLANC_TRY(backend->record(device, 0, 0, 0));
  for (int32_t s = 1; s < n; s++) PLANC_TRY(backend->wait(device, s, 0, 0));
  for (int32_t t = 0; t < times; t++)
    for (int32_t s = 0; s < n; s++)
      PLANC_TRY(backend->launch(device, s, &twins[s], &launch, t + 1 == times ? &last[s] : NULL));
  PLANC_TRY(backend->synchronize(device));
  for (int32_t s = 0; s < n; s++)
    if (last[s].end_ns - gate.end_ns > *out_ns) *out_ns = last[s].end_ns - gate.end_ns;
  return NULL;
}

planc_status planrt_resident_read(const planrt_resident *resident, int32_t buffer, void *out) {
  if (!resident->at[buffer])
    return planc_error(PLANC_INTERNAL, "%s is not resident", planc_trace_buffer_name(resident->trace, buffer));
  return resident->backend->copy(resident->device, 0, PLANRT_D2H, out, resident->at[buffer],
                                 resident->trace->buffers[buffer].bytes, NULL);
}
