/* The session: everything a run needs, made once; runs; the user's own memory. */
#include "runtime/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/random.h"
#include "util/math.h"

/* --- The user's side ------------------------------------------------------------------------------------------ */

/* Labels below their number of classes, for the default feed. */
static void find_labels(planrt_session *session, int32_t job) {
  const planc_graph *graph = session->trace->jobs[job].graph;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    const planc_op *op = &graph->ops[o];
    if (strcmp(op->type, "softmax_xent") != 0 || op->n_in < 2) continue;
    const planc_tensor *logits = &graph->tensors[op->in[0]];
    bool last = logits->rank == 2 || graph->layout == PLANC_LAYOUT_NHWC;
    if (logits->rank < 2) continue;
    session->classes[session->home_of[job] + graph->tensors[op->in[1]].storage] =
        logits->dims[last ? logits->rank - 1 : 1].fixed;
  }
}

static planc_status make_homes(planrt_session *session) {
  const planc_trace *trace = session->trace;
  int64_t storages = 0;
  PLANC_TRY(PLANC_NEW(&session->memory, &session->home_of, trace->n_jobs));
  for (int32_t j = 0; j < trace->n_jobs; j++) {
    if (storages > INT32_MAX - trace->jobs[j].graph->n_storages)
      return planc_error(PLANC_BAD_INPUT, "more than 2^31 storages");
    session->home_of[j] = (int32_t)storages;
    storages += trace->jobs[j].graph->n_storages;
  }
  PLANC_TRY(PLANC_NEW(&session->memory, &session->home, storages));
  PLANC_TRY(PLANC_NEW(&session->memory, &session->classes, storages));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (buffer->flags & PLANC_BUFFER_PERSISTENT)
      PLANC_TRY(
          PLANC_NEW(&session->memory, &session->home[session->home_of[buffer->job] + buffer->storage], buffer->bytes));
  }
  for (int32_t j = 0; j < trace->n_jobs; j++) find_labels(session, j);
  return NULL;
}

static planc_status make_staging(planrt_session *session) {
  const planc_trace *trace = session->trace;
  int64_t staging = 0;
  PLANC_TRY(PLANC_NEW(&session->memory, &session->result_at, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    session->result_at[b] = -1;
    if (buffer->flags && buffer->bytes > staging) staging = buffer->bytes;
    /* An inference pass takes the whole batch at once. */
    const planc_job *job = &trace->jobs[buffer->job];
    int64_t whole = planc_law_at(job->graph->storages[buffer->storage].bytes, job->batch);
    if (session->options.evaluate && (buffer->flags & PLANC_BUFFER_FED) && whole > staging) staging = whole;
    if (!(buffer->flags & PLANC_BUFFER_RESULT)) continue;
    session->result_at[b] = session->result_bytes;
    if (planc_add_overflow(session->result_bytes, planc_align_up(buffer->bytes, PLANRT_ALIGNMENT),
                           &session->result_bytes))
      return planc_error(PLANC_DEVICE, "results need more than 2^63 bytes");
  }
  session->window = session->options.verify ? PLANRT_VERIFY_PERIODS : 1;
  session->staging_bytes = staging;
  PLANC_TRY(PLANC_NEW(&session->memory, &session->staging, staging));
  return planc_arena_alloc(&session->memory, session->window, (size_t)session->result_bytes, (void *)&session->results);
}

static planc_status make_spans(planrt_session *session) {
  int64_t count;
  if (planc_mul_overflow(session->options.timeline, session->parts[PLANRT_BODY].n, &count))
    return planc_error(PLANC_OUT_OF_MEMORY, "timeline");
  return PLANC_NEW(&session->memory, &session->spans, count);
}

/* --- Making --------------------------------------------------------------------------------------------------- */

static planc_status build(planrt_session *session) {
  const planc_plan *plan = session->plan;
  if (!session->options.unchecked) {
    planc_check_options own = {.budget_bytes = -1, .host_budget_bytes = -1};
    PLANC_TRY(planc_check(plan, &own, &session->report));
  }
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &session->trace));
  PLANC_TRY(make_homes(session));
  PLANC_TRY(make_staging(session));
  planrt_device_options device = {.arena_bytes = plan->arena_bytes,
                                  .host_arena_bytes = plan->host_arena_bytes,
                                  .n_streams = plan->n_streams,
                                  .n_events = plan->n_events,
                                  .concurrent = session->options.concurrent,
                                  .synthetic = session->options.synthetic,
                                  .link_bytes_per_s = session->options.link_bytes_per_s,
                                  .jitter = session->options.jitter};
  PLANC_TRY(session->backend->open(&device, &session->device));
  PLANC_TRY(planrt_load(session));
  if (session->options.timeline > 0) PLANC_TRY(make_spans(session));
  if (session->options.verify) PLANC_TRY(planrt_reference_open(session));
  if (session->options.evaluate) PLANC_TRY(planrt_inference_open(session));
  return NULL;
}

planc_status planrt_session_new(const planc_plan *plan, const planrt_options *options, planrt_session **out) {
  planrt_session *session = calloc(1, sizeof *session);
  if (!session) return planc_error(PLANC_OUT_OF_MEMORY, "session");
  session->plan = plan;
  session->options = *options;
  session->backend = &planrt_host_backend;
  session->feed = options->feed ? options->feed : planrt_random_feed;
  session->feed_user = options->feed ? options->user : session;
  session->step.learning_rate = NAN;
  planc_status status = build(session);
  if (status)
    planrt_session_free(session);
  else
    *out = session;
  return status;
}

void planrt_session_free(planrt_session *session) {
  if (!session) return;
  planrt_resident_free(session->reference);
  planrt_inference_free(session->inference);
  if (session->device) session->backend->close(session->device);
  planc_trace_free(session->trace);
  planc_arena_free(&session->memory);
  free(session);
}

/* --- Running -------------------------------------------------------------------------------------------------- */

static planc_status run(planrt_session *session, int64_t periods, const uint64_t *seed) {
  if (periods < 0 || session->step.period < 0 || session->step.period > INT64_MAX - periods)
    return planc_error(PLANC_USAGE, "%lld periods from %lld on", (long long)periods, (long long)session->step.period);
  int64_t most = session->reference ? session->window : periods;
  int64_t left = periods, now, done;
  do {
    now = done = left < most ? left : most;
    if (session->reference) PLANC_TRY(planrt_resident_load(session->reference, session));
    PLANC_TRY(seed ? planrt_interleave(session, now, planrt_mix(*seed + (uint64_t)(periods - left)))
                   : planrt_interpret(session, now, &done));
    if (session->reference) PLANC_TRY(planrt_reference_compare(session, done));
    session->step.period += done;
    left -= done;
  } while (left > 0 && done == now);
  return NULL;
}

planc_status planrt_run(planrt_session *session, int64_t periods) {
  return run(session, periods, NULL);
}

planc_status planrt_run_interleaved(planrt_session *session, int64_t periods, uint64_t seed) {
  if (session->options.concurrent)
    return planc_error(PLANC_USAGE, "a session with concurrent streams cannot choose their order");
  return run(session, periods, &seed);
}

planrt_step planrt_get_step(const planrt_session *session) {
  return session->step;
}
void planrt_set_step(planrt_session *session, planrt_step step) {
  session->step = step;
}
uint64_t planrt_seed(const planrt_session *session) {
  return session->options.seed;
}
const planc_check_report *planrt_report(const planrt_session *session) {
  return &session->report;
}

/* --- Persistent values ---------------------------------------------------------------------------------------- */

/* The home of a persistent storage of `bytes` bytes; NULL, and why in *out_status, if there is none. */
static char *find_home(const planrt_session *session, int32_t job, int32_t storage, int64_t bytes,
                       planc_status *out_status) {
  if (job < 0 || job >= session->trace->n_jobs || storage < 0 ||
      storage >= session->trace->jobs[job].graph->n_storages) {
    *out_status = planc_error(PLANC_USAGE, "job %d has no storage %d", job, storage);
    return NULL;
  }
  const planc_graph *graph = session->trace->jobs[job].graph;
  const char *name = graph->tensors[graph->storages[storage].tensor].name;
  char *home = session->home[session->home_of[job] + storage];
  int64_t size = planc_law_at(graph->storages[storage].bytes, session->trace->jobs[job].batch);
  if (home && bytes == size) return home;
  *out_status = home ? planc_error(PLANC_USAGE, "%s has %lld bytes, not %lld", name, (long long)size, (long long)bytes)
                     : planc_error(PLANC_USAGE, "%s does not persist, or no op uses it", name);
  return NULL;
}

planc_status planrt_read(const planrt_session *session, int32_t job, int32_t storage, void *out, int64_t bytes) {
  planc_status status = NULL;
  const char *home = find_home(session, job, storage, bytes, &status);
  if (home) memcpy(out, home, (size_t)bytes);
  return status;
}

planc_status planrt_write(planrt_session *session, int32_t job, int32_t storage, const void *data, int64_t bytes) {
  planc_status status = NULL;
  char *home = find_home(session, job, storage, bytes, &status);
  if (home) memcpy(home, data, (size_t)bytes);
  return status;
}
