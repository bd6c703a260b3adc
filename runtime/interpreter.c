/* The interpreter: replays a loaded plan on a backend, in file order or in any order its events allow. */
#include "runtime/random.h"
#include "runtime/session.h"

static planc_status deliver(planrt_session *session, const planrt_action *action, int64_t period) {
  const planc_buffer *buffer = &session->trace->buffers[action->id];
  char *slot = session->results + period % session->window * session->result_bytes + session->result_at[action->id];
  PLANC_TRY(session->backend->copy(session->device, action->stream, slot, action->from, action->bytes));
  if (!session->options.sink) return NULL;
  int32_t iterations = session->trace->jobs[buffer->job].iterations;
  planrt_result result = {.job = buffer->job,
                          .storage = buffer->storage,
                          .iteration = period * iterations + (buffer->iteration < 0 ? 0 : buffer->iteration),
                          .round = buffer->round,
                          .data = slot,
                          .bytes = action->bytes};
  return session->options.sink(session->options.user, &result);
}

static planc_status launch(planrt_session *session, const planrt_action *action, int64_t period, bool poison) {
  const planrt_call *call = action->call;
  planrt_launch now = {.step = session->step, .seed = session->options.seed};
  now.step.period = period;
  if (poison) PLANC_TRY(session->backend->poison(session->device, call->workspace, call->workspace_bytes));
  PLANC_TRY(session->backend->launch(session->device, action->stream, call, &now));
  if (poison) PLANC_TRY(session->backend->poison(session->device, call->workspace, call->workspace_bytes));
  return NULL;
}

/* Performs one action of body `body` (-1: the prologue). */
static planc_status perform(planrt_session *session, const planrt_action *action, int64_t body, bool poison) {
  const planrt_backend *backend = session->backend;
  int64_t period = session->step.period + body;
  switch ((planrt_action_kind)action->kind) {
    case PLANRT_CALL:
      return launch(session, action, period, poison);
    case PLANRT_COPY:
      return backend->copy(session->device, action->stream, action->to, action->from, action->bytes);
    case PLANRT_FEED:
      PLANC_TRY(planrt_ask(session->feed, session->feed_user, session->trace, action->id, period, session->staging));
      return backend->copy(session->device, action->stream, action->to, session->staging, action->bytes);
    case PLANRT_DELIVER:
      return deliver(session, action, period);
    case PLANRT_RECORD:
      return backend->record(session->device, action->stream, action->id, body);
    case PLANRT_WAIT:
      return backend->wait(session->device, action->stream, action->id, body - action->lag);
    case PLANRT_POISON:
      return poison ? backend->poison(session->device, action->to, action->bytes) : NULL;
  }
  return NULL;
}

static const planrt_part *part_of(const planrt_session *session, int64_t body, int64_t periods) {
  return &session->parts[body < 0 ? PLANRT_PROLOGUE : body < periods ? PLANRT_BODY : PLANRT_EPILOGUE];
}

planc_status planrt_interpret(planrt_session *session, int64_t periods) {
  session->backend->forget(session->device);
  if (session->options.poison)
    PLANC_TRY(session->backend->poison(session->device, session->backend->arena(session->device),
                                       session->plan->arena_bytes));
  for (int64_t body = -1; body <= periods; body++) {
    const planrt_part *part = part_of(session, body, periods);
    for (int32_t i = 0; i < part->n; i++)
      PLANC_TRY(
          planc_context(perform(session, &part->actions[i], body, session->options.poison), "%s[%d]", part->name, i));
  }
  return NULL;
}

/* --- Interleaved ---------------------------------------------------------------------------------------------- */

/* Moves a stream on to its next action; false at its end. */
static bool settle(const planrt_session *session, int32_t stream, int64_t periods) {
  planrt_cursor *cursor = &session->cursors[stream];
  while (cursor->body <= periods) {
    const planrt_part *part = part_of(session, cursor->body, periods);
    if (cursor->position < part->first[stream + 1]) return true;
    cursor->body++;
    if (cursor->body <= periods) cursor->position = part_of(session, cursor->body, periods)->first[stream];
  }
  return false;
}

static bool runnable(const planrt_session *session, int32_t stream, int64_t periods) {
  if (!settle(session, stream, periods)) return false;
  const planrt_cursor *cursor = &session->cursors[stream];
  const planrt_part *part = part_of(session, cursor->body, periods);
  const planrt_action *action = &part->actions[part->by_stream[cursor->position]];
  return action->kind != PLANRT_WAIT ||
         session->backend->reached(session->device, action->id, cursor->body - action->lag);
}

/* The first stream from `from` on, cyclically, that can go on; -1 if none can. */
static int32_t next_runnable(const planrt_session *session, int32_t from, int64_t periods) {
  int32_t n = session->plan->n_streams;
  for (int32_t k = 0; k < n; k++)
    if (runnable(session, (from + k) % n, periods)) return (from + k) % n;
  return -1;
}

planc_status planrt_interleave(planrt_session *session, int64_t periods, uint64_t seed) {
  int32_t n = session->plan->n_streams, favourite = 0;
  uint64_t draws = 0;
  session->backend->forget(session->device);
  for (int32_t s = 0; s < n; s++)
    session->cursors[s] = (planrt_cursor){.body = -1, .position = session->parts[PLANRT_PROLOGUE].first[s]};

  /* One stream is favoured for a while, short or long, so that streams run in step as well as far ahead. */
  for (int64_t favour = 0;; favour--) {
    if (favour <= 0) {
      uint64_t draw = planrt_random(seed, draws++);
      favourite = n > 0 ? (int32_t)(draw % (uint64_t)n) : 0;
      favour = INT64_C(1) << (draw >> 32) % 12;
    }
    int32_t stream = favourite;
    if (n > 0 && !runnable(session, stream, periods))
      stream = next_runnable(session, (int32_t)(planrt_random(seed, draws++) % (uint64_t)n), periods);
    if (n == 0 || stream < 0) break;
    planrt_cursor *cursor = &session->cursors[stream];
    const planrt_part *part = part_of(session, cursor->body, periods);
    int32_t index = part->by_stream[cursor->position++];
    PLANC_TRY(planc_context(perform(session, &part->actions[index], cursor->body, false), "%s[%d]", part->name, index));
  }
  for (int32_t s = 0; s < n; s++)
    if (settle(session, s, periods)) {
      const planrt_part *part = part_of(session, session->cursors[s].body, periods);
      int32_t index = part->by_stream[session->cursors[s].position];
      return planc_error(PLANC_INVALID_PLAN, "deadlock: stream %d waits at %s[%d] for event %d", s, part->name, index,
                         part->actions[index].id);
    }
  return NULL;
}
