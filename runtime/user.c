/* The user's side of a session: where persistent values are at home, what waits on its way in or out. */
#include <stdlib.h>
#include <string.h>

#include "runtime/input_limits.h"
#include "runtime/session.h"
#include "util/math.h"

/* All of the user's memory that copies come from or go to is one block, which a backend can pin at once. It is gone
 * through twice: to learn its size, and to give each part its place. */
typedef struct carving {
  char *block; /* NULL: the first time */
  int64_t bytes;
  bool overflow;
} carving;

static planc_status ask_for_same_samples(planrt_session *session, int32_t replica);
static planc_status number_homes(planrt_session *session);
static planc_status measure(planrt_session *session);
static planc_status count_handovers(planrt_session *session);
static planc_status make_block(planrt_session *session);
static void carve_all(planrt_session *session, carving *c);

planc_status rt_user_ask_same(planrt_session *session) {
  for (int32_t r = 0; r < planc_trace_replicas(session->trace) && session->options.same_samples; r++)
    PLANC_TRY(ask_for_same_samples(session, r));
  return NULL;
}

static planc_status ask_for_same_samples(planrt_session *session, int32_t replica) {
  const planc_trace *trace = session->trace;
  char **samples = session->samples + (int64_t)replica * trace->n_buffers;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (samples[b]) PLANC_TRY(rt_ask(session->feed, session->feed_user, trace, replica, b, 0, samples[b]));
  return NULL;
}

planc_status rt_user_open(planrt_session *session) {
  int32_t replicas = planc_trace_replicas(session->trace);
  bool same = session->options.same_samples;
  PLANC_TRY(number_homes(session));
  PLANC_TRY(measure(session));
  PLANC_TRY(count_handovers(session));
  int64_t places = same ? (int64_t)replicas * session->trace->n_buffers : session->n_handovers;
  PLANC_TRY(PL_NEW(&session->memory, &session->samples, places));
  PLANC_TRY(make_block(session));
  return rt_user_ask_same(session);
}

static planc_status make_block(planrt_session *session) {
  enum { PAGE = 4096 };
  carving c = {0};
  carve_all(session, &c);
  if (c.overflow || c.bytes > INT64_MAX - PAGE)
    return planc_error(PLANC_DEVICE, "the user's memory needs more than 2^63 bytes");
  session->user_bytes = pl_align_up(c.bytes, PAGE);
  void *block = NULL;
  if (posix_memalign(&block, PAGE, (size_t)session->user_bytes) != 0)
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory: %lld bytes for parameters, samples and results",
                       (long long)session->user_bytes);
  memset(block, 0, (size_t)session->user_bytes);
  session->user_memory = c.block = block;
  c.bytes = 0;
  carve_all(session, &c);
  return NULL;
}

void rt_user_close(planrt_session *session) {
  free(session->user_memory);
  session->user_memory = NULL;
}

bool rt_next_home(const planrt_session *session, int32_t job, rt_homes *at) {
  const planc_job *of = &session->trace->jobs[job];
  for (; at->replica < planc_trace_replicas(session->trace); at->replica++, at->storage = -1)
    while (++at->storage < of->graph->n_storages) {
      at->home = rt_home(session, at->replica, job, at->storage);
      at->bytes = planc_law_at(of->graph->storages[at->storage].bytes, of->batch);
      if (at->home) return true;
    }
  return false;
}

/* For the default feed. */
static void find_limits(planrt_session *session, int32_t job) {
  const planc_graph *graph = session->trace->jobs[job].graph;
  int32_t input;
  int64_t limit;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (rt_limits_input(graph, &graph->ops[o], &input, &limit))
      session->classes[session->home_of[job] + graph->tensors[input].storage] = limit;
}

static planc_status number_homes(planrt_session *session) {
  const planc_trace *trace = session->trace;
  int64_t storages = 0;
  PLANC_TRY(PL_NEW(&session->memory, &session->home_of, trace->n_jobs));
  for (int32_t j = 0; j < trace->n_jobs; j++) {
    if (storages > INT32_MAX - trace->jobs[j].graph->n_storages)
      return planc_error(PLANC_BAD_INPUT, "more than 2^31 storages");
    session->home_of[j] = (int32_t)storages;
    storages += trace->jobs[j].graph->n_storages;
  }
  session->n_homes = (int32_t)storages;
  PLANC_TRY(PL_NEW(&session->memory, &session->home, storages * planc_trace_replicas(trace)));
  PLANC_TRY(PL_NEW(&session->memory, &session->classes, storages));
  for (int32_t j = 0; j < trace->n_jobs; j++) find_limits(session, j);
  return NULL;
}

/* How large samples on their way in, and a period's results, are. */
static planc_status measure(planrt_session *session) {
  const planc_trace *trace = session->trace;
  PLANC_TRY(PL_NEW(&session->memory, &session->result_at, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    session->result_at[b] = -1;
    bool of_user = buffer->flags && buffer->peer < 0;
    if (of_user && buffer->bytes > session->staging_bytes) session->staging_bytes = buffer->bytes;
    /* An inference pass takes the whole batch at once. */
    const planc_job *job = &trace->jobs[buffer->job];
    int64_t whole = planc_law_at(job->graph->storages[buffer->storage].bytes, planc_job_whole_batch(job));
    if (session->options.evaluate && rt_is_asked_for(buffer) && whole > session->staging_bytes)
      session->staging_bytes = whole;
    if (!(buffer->flags & PLANC_BUFFER_RESULT)) continue;
    session->result_at[b] = session->replica_result_bytes;
    if (pl_add_overflow(session->replica_result_bytes, pl_align_up(buffer->bytes, RT_ALIGNMENT),
                        &session->replica_result_bytes))
      return planc_error(PLANC_DEVICE, "results need more than 2^63 bytes");
  }
  if (pl_mul_overflow(session->replica_result_bytes, planc_trace_replicas(trace), &session->result_bytes))
    return planc_error(PLANC_DEVICE, "results need more than 2^63 bytes");
  session->kept_periods = session->options.verify ? PLANRT_VERIFY_PERIODS : RT_ROWS;
  return NULL;
}

static bool is_handover(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_copy && (instr->id == PLANC_USER || instr->aux == PLANC_USER);
}

static planc_status count_handovers(planrt_session *session) {
  const planc_plan *plan = session->plan;
  int64_t n = 0;
  for (int32_t i = 0; plan && i < plan->body.n; i++) n += is_handover(&plan->body.instrs[i]);
  n *= planc_trace_replicas(session->trace);
  if (n > INT32_MAX) return planc_error(PLANC_DEVICE, "more than 2^31 inputs and results");
  session->n_handovers = (int32_t)n;
  return NULL;
}

/* --- The block ---------------------------------------------------------------------------------------------------- */

static void carve_homes(planrt_session *session, int32_t replica, carving *c);
static char *carve(carving *c, int64_t bytes);
static void carve_samples(planrt_session *session, carving *c);
static void carve_same_samples(planrt_session *session, int32_t replica, carving *c);

static void carve_all(planrt_session *session, carving *c) {
  int32_t replicas = planc_trace_replicas(session->trace);
  for (int32_t r = 0; r < replicas; r++) carve_homes(session, r, c);
  session->staging = carve(c, session->staging_bytes);
  if (!session->options.same_samples) carve_samples(session, c);
  for (int32_t r = 0; r < replicas && session->options.same_samples; r++) carve_same_samples(session, r, c);
  session->results = carve(c, 0);
  for (int64_t row = 0; row <= session->kept_periods; row++) carve(c, session->result_bytes);
}

static void carve_homes(planrt_session *session, int32_t replica, carving *c) {
  const planc_trace *trace = session->trace;
  char **homes = session->home + (int64_t)replica * session->n_homes;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    if (buffer->flags & PLANC_BUFFER_PERSISTENT)
      homes[session->home_of[buffer->job] + buffer->storage] = carve(c, buffer->bytes);
  }
}

static char *carve(carving *c, int64_t bytes) {
  char *at = c->block ? c->block + c->bytes : NULL;
  int64_t aligned;
  c->overflow |= bytes > INT64_MAX - RT_ALIGNMENT;
  if (c->overflow) return NULL;
  aligned = pl_align_up(bytes, RT_ALIGNMENT);
  c->overflow |= pl_add_overflow(c->bytes, aligned, &c->bytes);
  return at;
}

/* Places for the samples that each feed of the body brings, in the order of actions. */
static void carve_samples(planrt_session *session, carving *c) {
  const planc_plan *plan = session->plan;
  int32_t handover = 0, replicas = planc_trace_replicas(session->trace);
  for (int32_t i = 0; plan && i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (!is_handover(instr)) continue;
    /* Whatever a plan says: its loader holds it against the buffer. */
    bool honest = instr->bytes >= 0 && instr->bytes <= session->staging_bytes;
    for (int32_t r = 0; r < replicas; r++, handover++)
      if (instr->aux == PLANC_USER) session->samples[handover] = carve(c, honest ? instr->bytes : 0);
  }
}

/* Places for samples that are taken again and again. */
static void carve_same_samples(planrt_session *session, int32_t replica, carving *c) {
  const planc_trace *trace = session->trace;
  char **samples = session->samples + (int64_t)replica * trace->n_buffers;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (rt_is_asked_for(&trace->buffers[b])) samples[b] = carve(c, trace->buffers[b].bytes);
}

/* --- Persistent values -------------------------------------------------------------------------------------------- */

/* The home of a persistent storage of `bytes` bytes; NULL, and why in *out_status, if there is none. */
static char *find_home(const planrt_session *session, int32_t replica, int32_t job, int32_t storage, int64_t bytes,
                       planc_status *out_status) {
  if (replica < 0 || replica >= planc_trace_replicas(session->trace)) {
    *out_status = planc_error(PLANC_USAGE, "there is no replica %d", replica);
    return NULL;
  }
  if (job < 0 || job >= session->trace->n_jobs || storage < 0 ||
      storage >= session->trace->jobs[job].graph->n_storages) {
    *out_status = planc_error(PLANC_USAGE, "job %d has no storage %d", job, storage);
    return NULL;
  }
  const planc_graph *graph = session->trace->jobs[job].graph;
  const char *name = graph->tensors[graph->storages[storage].tensor].name;
  char *home = rt_home(session, replica, job, storage);
  int64_t size = planc_law_at(graph->storages[storage].bytes, session->trace->jobs[job].batch);
  if (home && bytes == size) return home;
  *out_status = home ? planc_error(PLANC_USAGE, "%s has %lld bytes, not %lld", name, (long long)size, (long long)bytes)
                     : planc_error(PLANC_USAGE, "%s does not persist, or no op uses it", name);
  return NULL;
}

planc_status planrt_read(const planrt_session *session, int32_t replica, int32_t job, int32_t storage, void *out,
                         int64_t bytes) {
  planc_status status = NULL;
  const char *home = find_home(session, replica, job, storage, bytes, &status);
  if (home) memcpy(out, home, (size_t)bytes);
  return status;
}

planc_status planrt_write(planrt_session *session, int32_t replica, int32_t job, int32_t storage, const void *data,
                          int64_t bytes) {
  planc_status status = NULL;
  char *home = find_home(session, replica, job, storage, bytes, &status);
  if (home) memcpy(home, data, (size_t)bytes);
  return status;
}
