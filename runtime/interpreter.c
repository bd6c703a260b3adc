/* The interpreter: replays a loaded plan on a backend, in file order or in any order its events allow. */
#include <string.h>

#include "runtime/random.h"
#include "runtime/session.h"
#include "runtime/stop.h"
#include "util/clock.h"

static planc_status enqueue_prologue(planrt_session *session, int64_t periods);
static planc_status enqueue_body(planrt_session *session, int64_t body, int64_t periods);
static planc_status enqueue_epilogue(planrt_session *session, int64_t done);
static planc_status enqueue_part(planrt_session *session, int64_t body, int64_t periods);
static bool is_timed(const planrt_session *session, int64_t periods);
static bool is_asked_to_end(const planrt_session *session);
static int64_t warming(int64_t periods);
static planc_status end_lap(const planrt_session *session);
static planc_status settle_all(planrt_session *session, planc_status status);

planc_status rt_interpret(planrt_session *session, int64_t periods, int64_t *out_done) {
  bool timed = is_timed(session, periods);
  int64_t start_ns = 0, done = 0, warm = warming(periods);
  session->backend->forget(session->device);
  planc_status status = enqueue_prologue(session, periods);
  for (; !status && done < periods; done++) {
    status = end_lap(session);
    if (status || is_asked_to_end(session)) break;
    status = enqueue_body(session, done, periods);
    if (!timed || done + 1 != warm) continue;
    if (!status) status = settle_all(session, NULL);
    start_ns = pl_now_ns();
  }
  timed &= done > warm;
  if (!status && timed) status = settle_all(session, NULL);
  if (!status && timed) session->period_ns = (pl_now_ns() - start_ns) / (done - warm);
  if (!status) status = enqueue_epilogue(session, done);
  *out_done = done;
  return settle_all(session, status);
}

planc_status rt_capture(planrt_session *session) {
  const planrt_backend *backend = session->backend;
  if (!backend->capture) return planc_error(PLANC_USAGE, "backend %s cannot capture and replay", backend->name);
  if (!session->options.concurrent || session->options.timeline > 0)
    return planc_error(PLANC_USAGE, "a captured body has streams beside each other, and no timeline");
  PLANC_TRY(backend->capture(session->device));
  session->replays = true;
  planc_status status = enqueue_part(session, 0, 1);
  planc_status ended = backend->captured(session->device);
  if (!status) return planc_context(ended, "capture");
  planc_status_free(ended);
  return status;
}

static int64_t begun(const planrt_session *session, int64_t periods);
static bool runnable(const planrt_session *session, int32_t stream, int64_t periods);
static int32_t next_runnable(const planrt_session *session, int32_t from, int64_t periods);
static const rt_part *part_of(const planrt_session *session, int64_t body, int64_t periods);
static planc_status say_where(const planrt_session *session, const rt_part *part, const rt_action *action,
                              planc_status status);
static planc_status enqueue(planrt_session *session, const rt_action *action, int32_t repeat, int64_t body,
                            rt_span *span);
static void go_on(rt_cursor *cursor, const rt_action *action);
static bool settle(const planrt_session *session, int32_t stream, int64_t periods);
static planc_status deadlock(const planrt_session *session, int32_t stream, int64_t periods);

planc_status rt_interleave(planrt_session *session, int64_t periods, uint64_t seed, int64_t *out_done) {
  int32_t n = session->n_streams, favourite = 0;
  uint64_t draws = 0;
  session->backend->forget(session->device);
  for (int32_t s = 0; s < n; s++)
    session->cursors[s] = (rt_cursor){.body = -1, .position = session->parts[RT_PROLOGUE].first[s]};

  /* One stream is favoured for a while, short or long, so that streams run in step as well as far ahead. */
  for (int64_t favour = 0;; favour--) {
    if (is_asked_to_end(session)) periods = begun(session, periods);
    (void)rt_failures_leave_out(&session->failures, session->step.period);
    if (favour <= 0) {
      uint64_t draw = rt_random(seed, draws++);
      favourite = n > 0 ? (int32_t)(draw % (uint64_t)n) : 0;
      favour = INT64_C(1) << (draw >> 32) % 12;
    }
    int32_t stream = favourite;
    if (n > 0 && !runnable(session, stream, periods))
      stream = next_runnable(session, (int32_t)(rt_random(seed, draws++) % (uint64_t)n), periods);
    if (n == 0 || stream < 0) break;
    rt_cursor *cursor = &session->cursors[stream];
    const rt_part *part = part_of(session, cursor->body, periods);
    const rt_action *action = &part->actions[part->by_stream[cursor->position]];
    PLANC_TRY(say_where(session, part, action, enqueue(session, action, cursor->repeat, cursor->body, NULL)));
    go_on(cursor, action);
  }
  for (int32_t s = 0; s < n; s++)
    if (settle(session, s, periods)) return deadlock(session, s, periods);
  *out_done = periods;
  return session->backend->synchronize(session->device);
}

/* --- Bodies ------------------------------------------------------------------------------------------------------- */

/* A captured body leaves results and digests in a row of its own: copies them to the period's. */
static void keep_row(planrt_session *session, int64_t period) {
  int64_t row = period % session->kept_periods, digests = session->parts[RT_BODY].n;
  memcpy(session->results + row * session->result_bytes,
         session->results + session->kept_periods * session->result_bytes, (size_t)session->result_bytes);
  memcpy(session->digests + row * digests, session->digests + session->kept_periods * digests,
         (size_t)digests * sizeof *session->digests);
}

static planc_status replay_captured(planrt_session *session, int64_t body) {
  rt_launch launch = {.step = session->step, .ahead = session->ahead, .seed = session->options.seed};
  launch.step.period += body;
  PLANC_TRY(session->backend->replay(session->device, &launch, launch.step.period));
  if (!session->digests) return NULL;
  PLANC_TRY(session->backend->synchronize(session->device));
  keep_row(session, launch.step.period);
  return NULL;
}

/* Whether the run is to end before its next body. */
static bool is_asked_to_end(const planrt_session *session) {
  const planrt_options *options = &session->options;
  return rt_failures_has_all(&session->failures) || rt_is_stopped(options->stop) ||
         (options->pause && options->pause(options->user));
}

/* Awaits all that was enqueued. What it fails with is the reason for whatever failed since. */
static planc_status settle_all(planrt_session *session, planc_status status) {
  planc_status failure = session->backend->synchronize(session->device);
  if (!failure) return status;
  planc_status_free(status);
  return failure;
}

/* Whether periods are timed: not those that the reference runs between, nor where each piece of work is timed, which
 * must not be held up. */
static bool is_timed(const planrt_session *session, int64_t periods) {
  return periods > 1 && !session->options.verify && session->options.timeline == 0;
}

/* Leaves out, from `body` on, what jobs do that have failed by now. A captured body has their work in it, so that
 * bodies are then enqueued; these overlap, and results go to other rows than those of the captured body. */
static planc_status leave_out(planrt_session *session, int64_t body) {
  bool any = rt_failures_leave_out(&session->failures, session->step.period + body);
  if (!any || !session->replays) return NULL;
  PLANC_TRY(session->backend->synchronize(session->device));
  session->replays = false;
  return NULL;
}

static planc_status enqueue_prologue(planrt_session *session, int64_t periods) {
  PLANC_TRY(leave_out(session, 0));
  return enqueue_part(session, -1, periods);
}

/* A captured body is one launch, and queues hold a thousand: so many bodies run ahead of one that may be the last. */
enum { AHEAD = 8 };

static planc_status enqueue_body(planrt_session *session, int64_t body, int64_t periods) {
  PLANC_TRY(leave_out(session, body));
  if (!session->replays) return enqueue_part(session, body, periods);
  if (body % AHEAD == 0 && session->options.pause) PLANC_TRY(session->backend->synchronize(session->device));
  return replay_captured(session, body);
}

/* A job that fails in its last iteration takes nothing home either. With several jobs the epilogue starts when all work
 * is done, so that it is known which of them have failed. */
static planc_status enqueue_epilogue(planrt_session *session, int64_t done) {
  if (!session->failures.alone) {
    PLANC_TRY(session->backend->synchronize(session->device));
    PLANC_TRY(leave_out(session, done));
  }
  return enqueue_part(session, done, done);
}

/* How many periods come before those that are timed: the first fills queues and caches, and a GPU's clocks take some
 * tenths of a second of work to rise. */
static int64_t warming(int64_t periods) {
  enum { PART = 4 };
  return periods < PART ? 1 : periods / PART;
}

/* Whoever asks for the end is heard before each body: no more of them are on their way by then than keep the device
 * busy. */
static planc_status end_lap(const planrt_session *session) {
  return session->backend->end_lap ? session->backend->end_lap(session->device) : NULL;
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static rt_span *spans_of(const planrt_session *session, int64_t body, int64_t periods);

static planc_status launch(planrt_session *session, const rt_action *action, int64_t period, rt_span *span,
                           uint64_t *digest);
static uint64_t *digest_slot(const planrt_session *session, const rt_action *action, int64_t period);
static planc_status enqueue_feed(planrt_session *session, const rt_action *action, int64_t body, rt_span *span);
static planc_status enqueue_delivery(planrt_session *session, const rt_action *action, int64_t body, rt_span *span);

static planc_status enqueue_part(planrt_session *session, int64_t body, int64_t periods) {
  const rt_part *part = part_of(session, body, periods);
  rt_span *spans = spans_of(session, body, periods);
  for (int32_t i = 0; i < part->n; i++) {
    const rt_action *action = &part->actions[i];
    rt_span *span = spans && action->span >= 0 ? &spans[action->span] : NULL;
    for (int32_t k = 0; k < action->repeats; k++)
      PLANC_TRY(say_where(session, part, action, enqueue(session, action, k, body, span)));
  }
  return NULL;
}

static const rt_part *part_of(const planrt_session *session, int64_t body, int64_t periods) {
  return &session->parts[body < 0 ? RT_PROLOGUE : body < periods ? RT_BODY : RT_EPILOGUE];
}

static rt_span *spans_of(const planrt_session *session, int64_t body, int64_t periods) {
  if (!session->spans || body < 0 || body >= periods) return NULL;
  int64_t period = session->step.period + body;
  return session->spans + period % session->options.timeline * session->n_spans;
}

/* Says which action failed. */
static planc_status say_where(const planrt_session *session, const rt_part *part, const rt_action *action,
                              planc_status status) {
  if (planc_trace_replicas(session->trace) == 1) return planc_context(status, "%s[%d]", part->name, action->instr);
  return planc_context(status, "%s[%d], replica %d", part->name, action->instr, action->replica);
}

/* The next replica's `from` goes to the next place. */
static planc_status enqueue_copy(planrt_session *session, const rt_action *action, int32_t repeat, rt_span *span) {
  char *to = (char *)action->to + repeat * planc_other_stride(action->bytes);
  const char *from = (const char *)action->from + repeat * action->from_step;
  return session->backend->copy(session->device, action->stream, (rt_direction)action->direction, to, from,
                                action->bytes, span);
}

/* The next replica's event. */
static int32_t event_of(const planrt_session *session, const rt_action *wait, int32_t repeat) {
  return wait->id + repeat * session->plan->n_events;
}

/* Records and waits serve the other jobs as well. */
static bool is_left_out(const planrt_session *session, const rt_action *action) {
  bool orders = action->kind == RT_RECORD || action->kind == RT_WAIT;
  return !orders && rt_failures_is_left_out(&session->failures, action->job);
}

/* Enqueues one repeat of an action of body `body` (-1: the prologue). */
static planc_status enqueue(planrt_session *session, const rt_action *action, int32_t repeat, int64_t body,
                            rt_span *span) {
  const planrt_backend *backend = session->backend;
  rt_device *device = session->device;
  int64_t period = session->step.period + body;
  if (is_left_out(session, action)) return NULL;
  switch ((rt_action_kind)action->kind) {
    case RT_CALL:
      return launch(session, action, period, span, digest_slot(session, action, period));
    case RT_COPY:
      return enqueue_copy(session, action, repeat, span);
    case RT_FEED:
      return enqueue_feed(session, action, body, span);
    case RT_DELIVER:
      return enqueue_delivery(session, action, body, span);
    case RT_RECORD:
      return backend->record(device, action->stream, action->id, body);
    case RT_WAIT:
      return backend->wait(device, action->stream, event_of(session, action, repeat), body - action->lag);
    case RT_POISON:
      return backend->poison(device, action->stream, action->to, action->bytes);
  }
  return NULL;
}

/* --- Host work ---------------------------------------------------------------------------------------------------- */

/* What a job's feed or sink gave in an iteration: NULL where the run goes on. */
static planc_status take(planrt_session *session, int32_t job, int64_t iteration, planc_status status) {
  const char *name = session->names[job] ? session->names[job] : session->trace->jobs[job].graph->name;
  status = planc_context(status, "job %d (%s)", session->numbers[job], name);
  return rt_failures_take(&session->failures, job, iteration, status);
}

/* Host work: the user's samples for a fed buffer go to where its copy takes them from. Of a job that has failed some
 * work may be on its way: that has zeros to work on. */
static planc_status feed(void *user, const void *what, int64_t period) {
  planrt_session *session = user;
  const rt_action *action = what;
  const planc_buffer *buffer = &session->trace->buffers[action->id];
  int64_t iteration = rt_buffer_iteration(session, buffer, period);
  planc_status status = NULL;
  if (!rt_failures_has_by(&session->failures, buffer->job, iteration))
    status = rt_ask(session->feed, session->feed_user, session->trace, action->replica, action->id,
                    rt_first_iteration(session, buffer->job, period), (void *)action->from);
  status = take(session, buffer->job, iteration, status);
  if (rt_failures_has_by(&session->failures, buffer->job, iteration))
    memset((void *)action->from, 0, (size_t)action->bytes);
  return status;
}

/* The row of a period's results and digests: a captured body has one of its own. */
static int64_t row_of(const planrt_session *session, int64_t period) {
  return session->replays ? session->kept_periods : period % session->kept_periods;
}

static char *result_slot(const planrt_session *session, const rt_action *action, int64_t period) {
  return rt_result_slot(session, row_of(session, period), action->replica, action->id);
}

/* Host work: a result that has arrived goes to the user, but for those of a job that had failed by then. */
static planc_status deliver(void *user, const void *what, int64_t period) {
  planrt_session *session = user;
  const rt_action *action = what;
  const planc_buffer *buffer = &session->trace->buffers[action->id];
  planrt_result result = {.replica = action->replica,
                          .job = buffer->job,
                          .storage = buffer->storage,
                          .iteration = rt_buffer_iteration(session, buffer, period),
                          .round = buffer->round,
                          .data = result_slot(session, action, period),
                          .bytes = action->bytes};
  if (rt_failures_has_by(&session->failures, result.job, result.iteration)) return NULL;
  planc_status status = session->options.sink(session->options.user, &result);
  status = planc_context(status, "iteration %lld", (long long)result.iteration);
  return take(session, result.job, result.iteration, status);
}

/* --- Launches ----------------------------------------------------------------------------------------------------- */

static planc_status launch(planrt_session *session, const rt_action *action, int64_t period, rt_span *span,
                           uint64_t *digest) {
  const planrt_backend *backend = session->backend;
  const rt_call *call = action->call;
  bool poison = session->options.poison;
  rt_launch now = {.step = session->step, .ahead = session->ahead, .seed = session->options.seed};
  now.step.period = period;
  if (poison) PLANC_TRY(backend->poison(session->device, action->stream, call->workspace, call->workspace_bytes));
  PLANC_TRY(backend->launch(session->device, action->stream, call, &now, span));
  if (digest) PLANC_TRY(backend->digest(session->device, action->stream, call, digest));
  if (poison) PLANC_TRY(backend->poison(session->device, action->stream, call->workspace, call->workspace_bytes));
  return NULL;
}

/* Where the digest of an action of the body goes; NULL without verification, and elsewhere. */
static uint64_t *digest_slot(const planrt_session *session, const rt_action *action, int64_t period) {
  const rt_part *body = &session->parts[RT_BODY];
  bool counts = session->digests && action >= body->actions && action < body->actions + body->n;
  return counts ? session->digests + row_of(session, period) * body->n + (action - body->actions) : NULL;
}

/* --- Handovers ---------------------------------------------------------------------------------------------------- */

/* The event `ready` says that samples, or a result, are at their place, and `taken` that the place is free again.
 * Samples have one place, which is free before the next body's come. A result has a place in each row, and bodies use
 * the rows in turn: each row has a `taken` of its own. A captured body always uses the first row, since bodies do not
 * overlap then. */
static int32_t ready_event(const planrt_session *session, const rt_action *action) {
  return session->n_events + action->handover * RT_HANDOVER_EVENTS;
}
static int32_t taken_event(const planrt_session *session, const rt_action *action, int64_t body) {
  return ready_event(session, action) + 1 + (int32_t)(body % RT_ROWS);
}

/* The user is asked for a body's samples as soon as the copy of the last body's is over: he may work while the stream
 * has other things to do. The body's copy waits for them. */
static planc_status enqueue_feed(planrt_session *session, const rt_action *action, int64_t body, rt_span *span) {
  const planrt_backend *backend = session->backend;
  rt_device *device = session->device;
  int32_t lane = session->n_streams + RT_LANE_IN, ready = ready_event(session, action);
  if (body > 0) PLANC_TRY(backend->wait(device, lane, taken_event(session, action, body - 1), body - 1));
  PLANC_TRY(backend->host(device, lane, feed, session, action, session->step.period + body));
  PLANC_TRY(backend->record(device, lane, ready, body));
  PLANC_TRY(backend->wait(device, action->stream, ready, body));
  PLANC_TRY(backend->copy(device, action->stream, (rt_direction)action->direction, action->to, action->from,
                          action->bytes, span));
  return backend->record(device, action->stream, taken_event(session, action, body), body);
}

/* A lane hands the result to the user, and the stream that has copied it out goes on meanwhile. It waits only where the
 * user is so slow that the row is not free yet which the copy is to fill. */
static planc_status enqueue_delivery(planrt_session *session, const rt_action *action, int64_t body, rt_span *span) {
  const planrt_backend *backend = session->backend;
  rt_device *device = session->device;
  int64_t period = session->step.period + body, before = body - RT_ROWS;
  int32_t lane = session->n_streams + RT_LANE_OUT, ready = ready_event(session, action);
  bool delivers = session->options.sink != NULL;
  if (delivers && before >= 0)
    PLANC_TRY(backend->wait(device, action->stream, taken_event(session, action, before), before));
  PLANC_TRY(backend->copy(device, action->stream, (rt_direction)action->direction, result_slot(session, action, period),
                          action->from, action->bytes, span));
  if (!delivers) return NULL;
  PLANC_TRY(backend->record(device, action->stream, ready, body));
  PLANC_TRY(backend->wait(device, lane, ready, body));
  PLANC_TRY(backend->host(device, lane, deliver, session, action, period));
  return backend->record(device, lane, taken_event(session, action, body), body);
}

/* --- Interleaved -------------------------------------------------------------------------------------------------- */

/* Moves a stream on to its next action; false at its end. */
static bool settle(const planrt_session *session, int32_t stream, int64_t periods) {
  rt_cursor *cursor = &session->cursors[stream];
  while (cursor->body <= periods) {
    const rt_part *part = part_of(session, cursor->body, periods);
    if (cursor->position < part->first[stream + 1]) return true;
    cursor->body++;
    if (cursor->body <= periods) cursor->position = part_of(session, cursor->body, periods)->first[stream];
  }
  return false;
}

/* As in file order, of several jobs none takes anything home before all bodies are over. */
static bool awaits_bodies(const planrt_session *session, int64_t body, int64_t periods) {
  if (session->failures.alone || body < periods) return false;
  for (int32_t s = 0; s < session->n_streams; s++)
    if (settle(session, s, periods) && session->cursors[s].body < periods) return true;
  return false;
}

static bool runnable(const planrt_session *session, int32_t stream, int64_t periods) {
  if (!settle(session, stream, periods)) return false;
  const rt_cursor *cursor = &session->cursors[stream];
  if (awaits_bodies(session, cursor->body, periods)) return false;
  const rt_part *part = part_of(session, cursor->body, periods);
  const rt_action *action = &part->actions[part->by_stream[cursor->position]];
  if (action->kind != RT_WAIT) return true;
  return session->backend->reached(session->device, event_of(session, action, cursor->repeat),
                                   cursor->body - action->lag);
}

/* The first stream from `from` on, cyclically, that can go on; -1 if none can. */
static int32_t next_runnable(const planrt_session *session, int32_t from, int64_t periods) {
  int32_t n = session->n_streams;
  for (int32_t k = 0; k < n; k++)
    if (runnable(session, (from + k) % n, periods)) return (from + k) % n;
  return -1;
}

/* A stream waits for what never comes. */
static planc_status deadlock(const planrt_session *session, int32_t stream, int64_t periods) {
  const rt_cursor *cursor = &session->cursors[stream];
  const rt_part *part = part_of(session, cursor->body, periods);
  const rt_action *action = &part->actions[part->by_stream[cursor->position]];
  planc_status status =
      planc_error(PLANC_INVALID_PLAN, "deadlock: stream %d waits at %s[%d] for event %d",
                  stream % session->plan->n_streams, part->name, action->instr, action->id % session->plan->n_events);
  return planc_trace_replicas(session->trace) == 1 ? status : planc_context(status, "replica %d", action->replica);
}

/* Behind one repeat of the action. */
static void go_on(rt_cursor *cursor, const rt_action *action) {
  if (++cursor->repeat < action->repeats) return;
  cursor->repeat = 0;
  cursor->position++;
}

/* How many periods run where the end is asked for: none that no stream has begun, unless one is beyond all of them. */
static int64_t begun(const planrt_session *session, int64_t periods) {
  int64_t furthest = -1;
  for (int32_t s = 0; s < session->n_streams; s++)
    if (session->cursors[s].body > furthest) furthest = session->cursors[s].body;
  return furthest < periods ? furthest + 1 : periods;
}
