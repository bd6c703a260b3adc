/* The resident executor: runs a trace directly, in its own order, with every buffer at an address of its own. What it
 * computes is what every plan over the same trace must compute, bit for bit. */
#include <stdlib.h>

#include "runtime/session.h"
#include "util/math.h"

struct rt_resident {
  const planrt_backend *backend;
  rt_device *device;
  const planc_trace *trace;
  int32_t first_job; /* the session's number of the trace's job 0 */
  pl_arena memory;
  char *workspaces; /* one for each stream that instances may run on at once */
  int64_t workspace_bytes;
  int32_t n_replicas;
  char **at;       /* by replica and buffer; NULL: nothing that runs touches it */
  int32_t *others; /* of a gradient: the buffer in which an exchange gets the other replicas'; -1: none */
  rt_call **calls; /* by replica and instance; NULL: not run */
  bool *left_out;  /* by job */
};

/* How a resident executor's memory is used. */
typedef struct resident_layout {
  int64_t stride; /* from a replica's buffers to the next one's */
  int64_t workspace, bytes;
} resident_layout;

static char *at(const rt_resident *resident, int32_t replica, int32_t buffer) {
  return resident->at[(int64_t)replica * resident->trace->n_buffers + buffer];
}

static rt_call *call_of(const rt_resident *resident, int32_t replica, int32_t instance) {
  return resident->calls[(int64_t)replica * resident->trace->n_instances + instance];
}

/* --- Making ------------------------------------------------------------------------------------------------------- */

static planc_status build(rt_resident *resident, const rt_resident_options *options);
static planc_status lay_out(const rt_resident_options *options, int64_t *offsets, resident_layout *out);
static planc_status find_others(rt_resident *resident);
static planc_status place_buffers(rt_resident *resident, const int64_t *offsets, int64_t stride, char *arena);
static planc_status make_calls(rt_resident *resident, const rt_resident_options *options);
static planc_status make_call(rt_resident *resident, const rt_resident_options *options, int32_t replica,
                              int32_t instance, void **memory);
static planc_status prepare(rt_resident *resident, const rt_resident_options *options, int32_t instance, rt_call *call);
static planc_status prepare_counted(rt_resident *resident, const rt_resident_options *options, rt_call *call);
static int64_t ask_need(rt_resident *resident, const rt_call *call);

planc_status rt_resident_new(const rt_resident_options *options, rt_resident **out) {
  rt_resident *resident = calloc(1, sizeof *resident);
  if (!resident) return planc_error(PLANC_OUT_OF_MEMORY, "resident executor");
  resident->backend = options->backend;
  resident->trace = options->trace;
  resident->first_job = options->first_job;
  resident->n_replicas = planc_trace_replicas(options->trace);
  planc_status status = build(resident, options);
  if (status)
    rt_resident_free(resident);
  else
    *out = resident;
  return status;
}

static planc_status build(rt_resident *resident, const rt_resident_options *options) {
  int64_t *offsets;
  resident_layout of = {0};
  PLANC_TRY(PL_NEW(&resident->memory, &resident->calls, (int64_t)resident->n_replicas * options->trace->n_instances));
  PLANC_TRY(PL_NEW(&resident->memory, &resident->left_out, options->trace->n_jobs));
  PLANC_TRY(find_others(resident));
  PLANC_TRY(PL_NEW(&resident->memory, &offsets, options->trace->n_buffers));
  PLANC_TRY(lay_out(options, offsets, &of));
  int64_t bytes = of.bytes, workspace = of.bytes - of.workspace;
  resident->workspace_bytes = workspace < RT_MAX_TOGETHER_BYTES ? workspace : RT_MAX_TOGETHER_BYTES;
  if (options->streams > 1)
    bytes = pl_align_up(bytes, RT_ALIGNMENT) +
            (options->streams - 1) * pl_align_up(resident->workspace_bytes, RT_ALIGNMENT);

  rt_device_options device = {.arena_bytes = bytes,
                              .n_streams = options->streams > 1 ? options->streams : 1,
                              .n_events = 1,
                              .concurrent = options->streams > 1,
                              .synthetic = options->synthetic,
                              .deterministic = options->deterministic,
                              .timed = options->timed};
  PLANC_TRY(resident->backend->open(&device, &resident->device));
  char *arena = resident->backend->arena(resident->device);
  resident->workspaces = arena + of.workspace;
  PLANC_TRY(place_buffers(resident, offsets, of.stride, arena));
  return make_calls(resident, options);
}

/* Lays the buffers that running instances touch one behind the other, replica by replica, and behind them the largest
 * workspace. `offsets` are the first replica's, by buffer; -1: nothing that runs touches it. */
static planc_status lay_out(const rt_resident_options *options, int64_t *offsets, resident_layout *out) {
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
      if (pl_add_overflow(total, pl_align_up(trace->buffers[buffer].bytes, RT_ALIGNMENT), &total))
        return planc_error(PLANC_DEVICE, "a resident run needs more than 2^63 bytes");
    }
  }
  *out = (resident_layout){.stride = total};
  if (pl_mul_overflow(total, planc_trace_replicas(trace), &out->workspace) ||
      pl_add_overflow(out->workspace, workspace, &out->bytes))
    return planc_error(PLANC_DEVICE, "a resident run needs more than 2^63 bytes");
  return NULL;
}

static planc_status find_others(rt_resident *resident) {
  const planc_trace *trace = resident->trace;
  PLANC_TRY(PL_NEW(&resident->memory, &resident->others, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) resident->others[b] = -1;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (trace->buffers[b].peer >= 0) resident->others[trace->buffers[b].peer] = b;
  return NULL;
}

static planc_status place_buffers(rt_resident *resident, const int64_t *offsets, int64_t stride, char *arena) {
  int32_t n = resident->trace->n_buffers;
  PLANC_TRY(PL_NEW(&resident->memory, &resident->at, (int64_t)resident->n_replicas * n));
  for (int32_t r = 0; r < resident->n_replicas; r++)
    for (int32_t b = 0; b < n; b++)
      if (offsets[b] >= 0) resident->at[(int64_t)r * n + b] = arena + r * stride + offsets[b];
  return NULL;
}

static planc_status make_calls(rt_resident *resident, const rt_resident_options *options) {
  void **memory;
  PLANC_TRY(PL_NEW(&resident->memory, &memory, rt_most_accesses(resident->trace)));
  for (int32_t i = 0; i < resident->trace->n_instances; i++)
    for (int32_t r = 0; r < resident->n_replicas && options->choices[i].algorithm; r++)
      PLANC_TRY(make_call(resident, options, r, i, memory));
  return NULL;
}

static planc_status make_call(rt_resident *resident, const rt_resident_options *options, int32_t replica,
                              int32_t instance, void **memory) {
  const planc_trace *trace = resident->trace;
  const planc_instance *of = &trace->instances[instance];
  for (int32_t k = 0; k < of->n_accesses; k++)
    memory[k] = at(resident, replica, trace->accesses[of->first_access + k].buffer);
  rt_call *call;
  PLANC_TRY(PL_NEW(&resident->memory, &call, 1));
  PLANC_TRY(rt_call_make(&resident->memory, trace, replica, instance, memory, call));
  call->workspace = resident->workspaces;
  resident->calls[(int64_t)replica * trace->n_instances + instance] = call;
  return prepare(resident, options, instance, call);
}

/* On a device that is lost every other choice would fail as well. */
static planc_status prepare(rt_resident *resident, const rt_resident_options *options, int32_t instance,
                            rt_call *call) {
  rt_choice choice = options->choices[instance];
  for (;;) {
    call->algorithm = choice.algorithm;
    call->workspace_bytes = choice.workspace_bytes;
    if (options->preparing) PLANC_TRY(options->preparing(options->user, instance, call->algorithm));
    planc_status status = prepare_counted(resident, options, call);
    if (planc_status_code(status) != PLANC_DEVICE || !options->instead || rt_backend_is_lost(resident->backend) ||
        !options->instead(options->user, instance, status, ask_need(resident, call), &choice))
      return planc_context(status, "op %s, algorithm %s", call->op->name, call->algorithm);
    planc_status_free(status);
  }
}

/* Prepares a call, and tells what that made the device take. */
static planc_status prepare_counted(rt_resident *resident, const rt_resident_options *options, rt_call *call) {
  int64_t before = 0, after = 0;
  if (!options->loaded) return resident->backend->prepare(resident->device, call);
  PLANC_TRY(rt_resident_taken(resident, &before));
  planc_status status = resident->backend->prepare(resident->device, call);
  planc_status counted = rt_resident_taken(resident, &after);
  if (!counted) counted = options->loaded(options->user, call->algorithm, after > before ? after - before : 0);
  if (!status) return counted;
  planc_status_free(counted);
  return status;
}

/* The workspace of a call's algorithm on this very device; -1: not known. */
static int64_t ask_need(rt_resident *resident, const rt_call *call) {
  int64_t bytes = -1;
  if (!resident->backend->workspace) return -1;
  planc_status status = resident->backend->workspace(resident->device, call, &bytes);
  if (status) bytes = -1;
  planc_status_free(status);
  return bytes;
}

void rt_resident_free(rt_resident *resident) {
  if (!resident) return;
  if (resident->device) resident->backend->close(resident->device);
  pl_arena_free(&resident->memory);
  free(resident);
}

planc_status rt_resident_bytes(const rt_resident_options *options, int64_t *out_bytes) {
  pl_arena memory = {0};
  int64_t *offsets;
  resident_layout of = {0};
  planc_status status = PL_NEW(&memory, &offsets, options->trace->n_buffers);
  if (!status) status = lay_out(options, offsets, &of);
  *out_bytes = of.bytes;
  pl_arena_free(&memory);
  return status;
}

planc_status rt_resident_taken(const rt_resident *resident, int64_t *out_bytes) {
  return resident->backend->taken(resident->device, out_bytes);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static planc_status run_instance(rt_resident *resident, int32_t replica, int32_t i, const rt_launch *launch,
                                 rt_span *spans, uint64_t *digests);
static planc_status send_all(rt_resident *resident, int32_t replica, int32_t i);
static planc_status send(rt_resident *resident, int32_t replica, int32_t gradient);
static planc_status make_twins(rt_resident *resident, const rt_call *call, int32_t n, rt_call *twins);
static planc_status ask(rt_resident *resident, const planrt_session *session, int32_t replica, const rt_launch *launch,
                        planrt_feed feed, void *user);

planc_status rt_resident_run(rt_resident *resident, const planrt_session *session, const rt_launch *launch,
                             planrt_feed feed, void *user, rt_span *spans, uint64_t *digests) {
  for (int32_t r = 0; r < resident->n_replicas; r++) PLANC_TRY(ask(resident, session, r, launch, feed, user));
  PLANC_TRY(rt_resident_enqueue(resident, 0, resident->trace->n_instances, launch, spans, digests));
  return resident->backend->synchronize(resident->device);
}

planc_status rt_resident_enqueue(rt_resident *resident, int32_t first, int32_t n, const rt_launch *launch,
                                 rt_span *spans, uint64_t *digests) {
  for (int32_t i = first; i < first + n; i++)
    for (int32_t r = 0; r < resident->n_replicas; r++) {
      if (!call_of(resident, r, i) || resident->left_out[resident->trace->instances[i].job]) continue;
      PLANC_TRY(run_instance(resident, r, i, launch, spans, digests));
      PLANC_TRY(send_all(resident, r, i));
    }
  return NULL;
}

static planc_status run_instance(rt_resident *resident, int32_t replica, int32_t i, const rt_launch *launch,
                                 rt_span *spans, uint64_t *digests) {
  const planrt_backend *backend = resident->backend;
  const rt_call *call = call_of(resident, replica, i);
  int64_t which = (int64_t)replica * resident->trace->n_instances + i;
  PLANC_TRY(backend->launch(resident->device, 0, call, launch, spans ? &spans[which] : NULL));
  return digests ? backend->digest(resident->device, 0, call, &digests[which]) : NULL;
}

/* Sends what an instance made for other replicas. */
static planc_status send_all(rt_resident *resident, int32_t replica, int32_t i) {
  const planc_trace *trace = resident->trace;
  const planc_instance *instance = &trace->instances[i];
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    int32_t buffer = trace->accesses[a].buffer;
    bool sent = trace->accesses[a].write >= 0 && trace->accesses[a].write == trace->buffers[buffer].sent;
    if (sent && resident->others[buffer] >= 0) PLANC_TRY(send(resident, replica, buffer));
  }
  return NULL;
}

/* Copies a replica's gradient to its place with each of the others. */
static planc_status send(rt_resident *resident, int32_t replica, int32_t gradient) {
  int64_t bytes = resident->trace->buffers[gradient].bytes;
  for (int32_t r = 0; r < resident->n_replicas; r++) {
    if (r == replica) continue;
    int32_t place = replica < r ? replica : replica - 1;
    char *to = at(resident, r, resident->others[gradient]) + place * planc_other_stride(bytes);
    PLANC_TRY(resident->backend->copy(resident->device, 0, RT_D2D, to, at(resident, replica, gradient), bytes, NULL));
  }
  return NULL;
}

planc_status rt_resident_run_one(rt_resident *resident, int32_t i, const rt_launch *launch, rt_span *spans) {
  const rt_call *call = call_of(resident, 0, i);
  if (!call) return NULL;
  planc_status status = rt_resident_enqueue(resident, i, 1, launch, spans, NULL);
  if (!status) status = planc_context(rt_resident_synchronize(resident), "op %s", call->op->name);
  return planc_context(status, "%s", call->algorithm);
}

planc_status rt_resident_synchronize(rt_resident *resident) {
  return resident->backend->synchronize(resident->device);
}

void rt_resident_leave_out(rt_resident *resident, int32_t job) {
  resident->left_out[job] = true;
}

planc_status rt_resident_together(rt_resident *resident, int32_t instance, int32_t n, int32_t times, int64_t *out_ns) {
  const planrt_backend *backend = resident->backend;
  rt_device *device = resident->device;
  rt_launch launch = {0};
  rt_call twins[RT_MAX_TOGETHER];
  rt_span gate = {0}, last[RT_MAX_TOGETHER] = {{0}};
  *out_ns = 0;
  const rt_call *call = call_of(resident, 0, instance);
  if (call->workspace_bytes > resident->workspace_bytes) return NULL;
  PLANC_TRY(make_twins(resident, call, n, twins));
  /* All streams begin where the first one's timed piece of nothing ends: by then there is something in every queue. */
  PLANC_TRY(backend->copy(device, 0, RT_D2D, twins[0].workspace, twins[0].workspace, 0, &gate));
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

/* The same call with a workspace of its own for each stream: outputs they may share, since all put out the same. */
static planc_status make_twins(rt_resident *resident, const rt_call *call, int32_t n, rt_call *twins) {
  int64_t step = pl_align_up(resident->workspace_bytes, RT_ALIGNMENT);
  twins[0] = *call;
  for (int32_t s = 1; s < n; s++) {
    twins[s] = *call;
    if (call->workspace_bytes == 0) continue;
    twins[s].workspace = resident->workspaces + s * step;
    PLANC_TRY(resident->backend->prepare(resident->device, &twins[s]));
  }
  return NULL;
}

/* --- Values in and out -------------------------------------------------------------------------------------------- */

static int64_t first_iteration(const rt_resident *resident, const planrt_session *session, const rt_launch *launch,
                               int32_t job);

planc_status rt_resident_load(rt_resident *resident, const planrt_session *session) {
  const planrt_backend *backend = resident->backend;
  for (int32_t r = 0; r < resident->n_replicas; r++)
    for (int32_t b = 0; b < resident->trace->n_buffers; b++) {
      const planc_buffer *buffer = &resident->trace->buffers[b];
      if (!at(resident, r, b) || !(buffer->flags & PLANC_BUFFER_PERSISTENT)) continue;
      const char *home = rt_home(session, r, resident->first_job + buffer->job, buffer->storage);
      PLANC_TRY(backend->copy(resident->device, 0, RT_H2D, at(resident, r, b), home, buffer->bytes, NULL));
    }
  return NULL;
}

planc_status rt_resident_bring(rt_resident *resident, const planrt_session *session) {
  int32_t n = resident->trace->n_buffers;
  for (int32_t r = 0; r < resident->n_replicas; r++)
    for (int32_t b = 0; b < n; b++) {
      const char *samples = session->samples[(int64_t)r * n + b];
      if (at(resident, r, b) && samples)
        PLANC_TRY(resident->backend->copy(resident->device, 0, RT_H2D, at(resident, r, b), samples,
                                          resident->trace->buffers[b].bytes, NULL));
    }
  return NULL;
}

/* Brings a replica's samples of a period. */
static planc_status ask(rt_resident *resident, const planrt_session *session, int32_t replica, const rt_launch *launch,
                        planrt_feed feed, void *user) {
  const planc_trace *trace = resident->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (!at(resident, replica, b) || !rt_is_asked_for(&trace->buffers[b])) continue;
    if (resident->left_out[trace->buffers[b].job]) continue;
    int64_t first = first_iteration(resident, session, launch, trace->buffers[b].job);
    PLANC_TRY(rt_ask(feed, user, trace, replica, b, first, session->staging));
    PLANC_TRY(resident->backend->copy(resident->device, 0, RT_H2D, at(resident, replica, b), session->staging,
                                      trace->buffers[b].bytes, NULL));
    /* The staging is needed again, and may be read until then. */
    PLANC_TRY(resident->backend->synchronize(resident->device));
  }
  return NULL;
}

/* The iteration that a job of the trace begins a launch's period with; the same samples are those of its first ones. */
static int64_t first_iteration(const rt_resident *resident, const planrt_session *session, const rt_launch *launch,
                               int32_t job) {
  if (session->options.same_samples) return 0;
  return launch->step.period * resident->trace->jobs[job].iterations + (launch->ahead ? launch->ahead[job] : 0);
}

planc_status rt_resident_read(const rt_resident *resident, int32_t replica, int32_t buffer, void *out) {
  const char *from = at(resident, replica, buffer);
  if (!from) return planc_error(PLANC_INTERNAL, "%s is not resident", planc_trace_buffer_name(resident->trace, buffer));
  return resident->backend->copy(resident->device, 0, RT_D2H, out, from, resident->trace->buffers[buffer].bytes, NULL);
}
