/* Writing run traces: Chrome's trace-event JSON, which Perfetto and chrome://tracing open (planrun(1), RUN TRACE). One
 * complete event for each timed instruction and period kept; streams are threads, GPUs are processes. Of replicas, who
 * all do the same, they are of the first one; of a job that has failed there are those before. Times count from the
 * first one written. */
#include <stdlib.h>
#include <string.h>

#include "plan/copies.h"
#include "plan/memories.h"
#include "planc/timeline.h"
#include "runtime/session.h"
#include "util/emit.h"
#include "util/file.h"

typedef struct periods {
  int64_t first, end;
} periods;

static planc_status print_last(const planrt_session *session, periods kept, char **out, size_t *out_length);
static planc_status print_text(const planrt_session *session, periods kept, char **out, size_t *out_length);
static planc_status print_trace(const planrt_session *session, periods kept, pl_arena *arena, pl_emit *emit);
static periods find_periods(const planrt_session *session);
static void emit_header(pl_emit *emit, const planrt_session *session, periods kept, uint64_t plan_hash);
static void emit_names(pl_emit *emit, const planrt_session *session);
static void emit_events(pl_emit *emit, const planrt_session *session, periods kept, const pl_acquired *acquired);

planc_status planrt_timeline_write(const planrt_session *session, const char *path) {
  if (!session->spans) return planc_error(PLANC_USAGE, "the session keeps no timeline");
  periods kept = find_periods(session);
  if (kept.first == kept.end)
    return planc_error(PLANC_USAGE, "%s: no period has been measured, or none of at most 2^42 microseconds", path);
  char *text;
  size_t length;
  PLANC_TRY(planc_context(print_last(session, kept, &text, &length), "%s", path));
  planc_status status = pl_file_write(path, text, length);
  free(text);
  return status;
}

/* What is too long to be read again is written without its first periods. */
static planc_status print_last(const planrt_session *session, periods kept, char **out, size_t *out_length) {
  for (;;) {
    PLANC_TRY(print_text(session, kept, out, out_length));
    int64_t length = (int64_t)*out_length, n = kept.end - kept.first;
    if (length <= PLANC_TIMELINE_MAX_BYTES) return NULL;
    free(*out);
    *out = NULL;
    if (n == 1)
      return planc_error(PLANC_USAGE, "the trace of a single period has %lld bytes, the most are %lld",
                         (long long)length, (long long)PLANC_TIMELINE_MAX_BYTES);
    int64_t fewer = (int64_t)((double)n * (double)PLANC_TIMELINE_MAX_BYTES / (double)length);
    if (fewer >= n) fewer = n - 1;
    kept.first = kept.end - (fewer > 0 ? fewer : 1);
  }
}

static planc_status print_text(const planrt_session *session, periods kept, char **out, size_t *out_length) {
  pl_emit emit = {0};
  pl_arena arena = {0};
  pl_emit_fail(&emit, print_trace(session, kept, &arena, &emit));
  pl_arena_free(&arena);
  return pl_emit_take(&emit, out, out_length);
}

static planc_status print_trace(const planrt_session *session, periods kept, pl_arena *arena, pl_emit *emit) {
  uint64_t plan_hash;
  pl_acquired *acquired;
  PLANC_TRY(planc_plan_hash(session->plan, &plan_hash));
  PLANC_TRY(pl_plan_acquired(session->plan, arena, &acquired));
  EMIT(emit, "{");
  emit_header(emit, session, kept, plan_hash);
  EMIT(emit, ",\n\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n");
  emit_names(emit, session);
  emit_events(emit, session, kept, acquired);
  EMIT(emit, "\n]}\n");
  return NULL;
}

static const planc_instr *instr_of(const planrt_session *session, const rt_action *action) {
  return &session->plan->body.instrs[action->instr];
}

static const rt_span *span_of(const planrt_session *session, int64_t period, const rt_action *action) {
  return &session->spans[period % session->options.timeline * session->n_spans + action->span];
}

/* Whether something of an action was to be kept of the period: not of work that a failed job has left out. */
static bool was_timed(const planrt_session *session, int64_t period, const rt_action *action) {
  return action->span >= 0 && !rt_failures_was_left_out(&session->failures, action->job, period);
}

/* --- What has been kept ------------------------------------------------------------------------------------------- */

/* Whether the period's spans are there and, unless it is the last one, lie before those of the next: periods of an
 * earlier run, or of one that failed, do not. */
static bool was_kept(const planrt_session *session, int64_t period, bool last) {
  const rt_part *body = &session->parts[RT_BODY];
  bool any = false;
  for (int32_t i = 0; i < body->n; i++) {
    const rt_action *action = &body->actions[i];
    if (!was_timed(session, period, action)) continue;
    const rt_span *span = span_of(session, period, action);
    bool next = !last && was_timed(session, period + 1, action);
    if (span->end_ns == 0 || (next && span->end_ns > span_of(session, period + 1, action)->start_ns)) return false;
    any = true;
  }
  return any;
}

/* From when to when the period's work ran. */
static planc_span extent_of(const planrt_session *session, int64_t period) {
  const rt_part *body = &session->parts[RT_BODY];
  planc_span extent = {.start_ns = INT64_MAX, .end_ns = INT64_MIN};
  for (int32_t i = 0; i < body->n; i++) {
    if (!was_timed(session, period, &body->actions[i])) continue;
    const rt_span *span = span_of(session, period, &body->actions[i]);
    if (span->start_ns < extent.start_ns) extent.start_ns = span->start_ns;
    if (span->end_ns > extent.end_ns) extent.end_ns = span->end_ns;
  }
  return extent;
}

/* Whether the periods from `first` to before `end` are over soon enough. */
static bool fits(const planrt_session *session, int64_t first, int64_t end) {
  return extent_of(session, end - 1).end_ns - extent_of(session, first).start_ns <= PLANC_TIMELINE_MAX_NS;
}

static periods find_periods(const planrt_session *session) {
  int64_t end = session->step.period, first = end;
  while (first > 0 && end - first < session->options.timeline && was_kept(session, first - 1, first == end) &&
         fits(session, first - 1, end))
    first--;
  return (periods){first, end};
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static void emit_graph_hashes(pl_emit *emit, const planc_plan *plan);
static void emit_failures(pl_emit *emit, const planrt_session *session, periods kept);

static void emit_header(pl_emit *emit, const planrt_session *session, periods kept, uint64_t plan_hash) {
  EMIT(emit, "\"otherData\":{\"planrun\":\"" PLANC_TIMELINE_VERSION "\",\"plan\":");
  pl_emit_string(emit, session->plan->name);
  EMIT(emit, ",\"policy\":");
  pl_emit_string(emit, session->plan->policy);
  emit_graph_hashes(emit, session->plan);
  EMIT(emit, ",\"plan_hash\":");
  pl_emit_hash(emit, plan_hash);
  EMIT(emit, ",\"backend\":");
  pl_emit_string(emit, session->backend->name);
  EMIT_INT(emit, ",\"first_period\":", kept.first);
  EMIT_INT(emit, ",\"periods\":", kept.end - kept.first);
  emit_failures(emit, session, kept);
  EMIT(emit, "}");
}

/* Of every job's graph. Whether the trace belongs to a plan is told by the plan's own hash; where it does not, these
 * tell another plan of the same graphs from one of others. */
static void emit_graph_hashes(pl_emit *emit, const planc_plan *plan) {
  EMIT(emit, ",\"graph_hashes\":[");
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    if (j > 0) EMIT(emit, ",");
    pl_emit_hash(emit, planc_graph_hash(plan->jobs[j].graph));
  }
  EMIT(emit, "]");
}

/* Which jobs failed, and from which period on nothing is here of them. */
static void emit_failures(pl_emit *emit, const planrt_session *session, periods kept) {
  bool any = false;
  for (int32_t j = 0; j < session->failures.n_jobs; j++) {
    if (!rt_failures_was_left_out(&session->failures, j, kept.end - 1)) continue;
    if (any)
      EMIT(emit, ",");
    else
      EMIT(emit, ",\"failed\":[");
    EMIT_INT(emit, "{\"job\":", j);
    EMIT_INT(emit, ",\"period\":", session->failures.by_job[j].left_out_at);
    EMIT(emit, "}");
    any = true;
  }
  if (any) EMIT(emit, "]");
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static int32_t last_of(const rt_part *body, int32_t first);
static void emit_event(pl_emit *emit, const planrt_session *session, const rt_action *action, const rt_span *span,
                       int64_t origin, int64_t period, const pl_acquired *acquired);
static const char *name_of(const planrt_session *session, const planc_instr *instr, const pl_acquired *acquired);
static const char *category_of(const planrt_session *session, const planc_instr *instr, const pl_acquired *acquired);
static void emit_us(pl_emit *emit, int64_t ns);
static void emit_arguments(pl_emit *emit, const planrt_session *session, const rt_action *action, int64_t period);

static void emit_place(pl_emit *emit, const planrt_session *session, int32_t stream) {
  EMIT_INT(emit, ",\"pid\":", pl_gpu_of_stream(session->plan, stream) + 1);
  EMIT_INT(emit, ",\"tid\":", stream + 1);
}

static void emit_names(pl_emit *emit, const planrt_session *session) {
  for (int32_t s = 0; s < session->plan->n_streams; s++) {
    const char *word = pl_stream_word(session->plan, s);
    EMIT(emit, "{\"name\":\"thread_name\",\"ph\":\"M\"");
    emit_place(emit, session, s);
    EMIT_INT(emit, ",\"args\":{\"name\":\"stream ", s);
    EMIT(emit, ": ");
    pl_emit_bytes(emit, word, strlen(word));
    EMIT_INT(emit, ", job ", session->plan->streams[s].job);
    EMIT(emit, "\"}},\n");
  }
}

static void emit_events(pl_emit *emit, const planrt_session *session, periods kept, const pl_acquired *acquired) {
  const rt_part *body = &session->parts[RT_BODY];
  int64_t origin = extent_of(session, kept.first).start_ns;
  const char *separator = "";
  for (int64_t period = kept.first; period < kept.end; period++) {
    for (int32_t i = 0; i < body->n; i++) {
      const rt_action *action = &body->actions[i];
      if (!was_timed(session, period, action)) continue;
      rt_span span = *span_of(session, period, action);
      i = last_of(body, i);
      span.end_ns = span_of(session, period, &body->actions[i])->end_ns;
      pl_emit_bytes(emit, separator, strlen(separator));
      emit_event(emit, session, action, &span, origin, period, acquired);
      separator = ",\n";
    }
  }
}

/* The copies from other replicas that one instruction makes follow each other: they are one event. */
static int32_t last_of(const rt_part *body, int32_t first) {
  int32_t last = first;
  while (last + 1 < body->n && body->actions[last + 1].span >= 0 &&
         body->actions[last + 1].instr == body->actions[first].instr)
    last++;
  return last;
}

static void emit_event(pl_emit *emit, const planrt_session *session, const rt_action *action, const rt_span *span,
                       int64_t origin, int64_t period, const pl_acquired *acquired) {
  const planc_instr *instr = instr_of(session, action);
  EMIT(emit, "{\"name\":");
  pl_emit_string(emit, name_of(session, instr, acquired));
  EMIT(emit, ",\"cat\":");
  pl_emit_string(emit, category_of(session, instr, acquired));
  EMIT(emit, ",\"ph\":\"X\",\"ts\":");
  emit_us(emit, span->start_ns - origin);
  EMIT(emit, ",\"dur\":");
  emit_us(emit, span->end_ns - span->start_ns);
  emit_place(emit, session, action->stream);
  emit_arguments(emit, session, action, period);
  EMIT(emit, "}");
}

/* An exec is called by its op, a copy by what it copies. */
static const char *name_of(const planrt_session *session, const planc_instr *instr, const pl_acquired *acquired) {
  if (instr->op == PLANC_INSTR_exec) return planc_trace_op(session->trace, instr->id)->name;
  int32_t residency = instr->id == PLANC_USER ? instr->aux : instr->id;
  return planc_trace_buffer_name(session->trace, acquired[residency].buffer);
}

static const char *category_of(const planrt_session *session, const planc_instr *instr, const pl_acquired *acquired) {
  if (instr->op == PLANC_INSTR_exec) return "exec";
  return pl_copy_word(pl_way_of_copy(session->plan, acquired, instr));
}

/* Nanoseconds as microseconds, exactly. */
static void emit_us(pl_emit *emit, int64_t ns) {
  char fraction[] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10), (char)('0' + ns % 10)};
  pl_emit_int(emit, ns / 1000);
  pl_emit_bytes(emit, fraction, sizeof fraction);
}

static void emit_arguments(pl_emit *emit, const planrt_session *session, const rt_action *action, int64_t period) {
  const planc_instr *instr = instr_of(session, action);
  EMIT_INT(emit, ",\"args\":{\"instr\":", action->instr);
  EMIT_INT(emit, ",\"period\":", period);
  if (session->plan->n_jobs > 1) EMIT_INT(emit, ",\"job\":", action->job);
  if (instr->op == PLANC_INSTR_exec) {
    EMIT(emit, ",\"type\":");
    pl_emit_string(emit, planc_trace_type(session->trace, instr->id));
  } else {
    EMIT_INT(emit, ",\"bytes\":", instr->bytes);
  }
  EMIT(emit, "}");
}
