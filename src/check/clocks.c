/* Vector clocks of streams and events (clocks.h). */
#include "check/clocks.h"

#include <string.h>

/* The event that an instruction waits for with this lag, NULL where it does not. */
static planc_event *awaited(const planc_clocks *c, const planc_instr *instr, uint8_t lag) {
  bool waits = instr->op == PLANC_INSTR_wait && instr->lag == lag && instr->id >= 0 && instr->id < c->plan->n_events;
  return waits ? &c->events[instr->id] : NULL;
}

planc_status planc_clocks_make(planc_arena *arena, const planc_plan *plan, planc_clocks *out) {
  const planc_section *sections[] = {&plan->body, &plan->epilogue};
  *out = (planc_clocks){.plan = plan, .length = plan->n_streams, .free_row = -1};
  if (planc_plan_replicas(plan) > 1) out->length *= 2;
  PLANC_TRY(PLANC_NEW(arena, &out->streams, (int64_t)plan->n_streams * out->length));
  PLANC_TRY(PLANC_NEW(arena, &out->events, plan->n_events));
  for (int32_t e = 0; e < plan->n_events; e++) out->events[e] = (planc_event){.body = PLANC_NEVER, .row = -1};
  for (int s = 0; s < 2; s++) {
    for (int32_t i = 0; i < sections[s]->n; i++) {
      planc_event *event = awaited(out, &sections[s]->instrs[i], 1);
      if (event) event->lags = true;
    }
  }
  return NULL;
}

void planc_clocks_free(planc_clocks *c) {
  VEC_FREE(&c->recorded);
}

void planc_clocks_enter(planc_clocks *c, const planc_section *section) {
  for (int32_t i = 0; i < section->n; i++) {
    planc_event *event = awaited(c, &section->instrs[i], 0);
    if (event) event->waits++;
  }
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static int32_t *row_of(const planc_clocks *c, const planc_event *event) {
  return &c->recorded.data[(int64_t)event->row * c->length];
}

static planc_status take_row(planc_clocks *c, planc_event *event) {
  if (c->free_row < 0) {
    PLANC_TRY(VEC_RESERVE(&c->recorded, c->recorded.len + c->length));
    event->row = (int32_t)(c->recorded.len / c->length);
    c->recorded.len += c->length;
  } else {
    event->row = c->free_row;
    c->free_row = *row_of(c, event);
  }
  return NULL;
}

static void give_row(planc_clocks *c, planc_event *event) {
  *row_of(c, event) = c->free_row;
  c->free_row = event->row;
  event->row = -1;
}

/* --- Records and waits -------------------------------------------------------------------------------------------- */

planc_status planc_clocks_record(planc_clocks *c, int32_t id, int32_t stream, int32_t body) {
  planc_event *event = &c->events[id];
  event->body = body;
  event->stream = stream;
  if (event->waits == 0 && !event->lags) return NULL;
  if (event->row < 0) PLANC_TRY(take_row(c, event));
  memcpy(row_of(c, event), planc_clock_of(c, stream), (size_t)c->length * sizeof(int32_t));
  return NULL;
}

/* Adds to `clock` what is known to `with`. */
static void join(int32_t *clock, const int32_t *with, int32_t n) {
  for (int32_t s = 0; s < n; s++)
    if (with[s] > clock[s]) clock[s] = with[s];
}

/* The others' records know of us what our own knows of them, of each of them what ours knows of ourselves and, where
 * there are others beside that one, what ours knows of others. */
static void join_peers(const planc_clocks *c, int32_t *clock, const int32_t *own) {
  int32_t n = c->plan->n_streams;
  join(clock, own + n, n);
  join(clock + n, own, n);
  if (planc_plan_replicas(c->plan) > 2) join(clock + n, own + n, n);
}

void planc_clocks_wait(planc_clocks *c, const planc_instr *wait) {
  planc_event *event = &c->events[wait->id];
  int32_t *clock = planc_clock_of(c, wait->stream);
  if (wait->peers) {
    join_peers(c, clock, row_of(c, event));
  } else {
    join(clock, row_of(c, event), c->length);
  }
  if (wait->lag == 0 && --event->waits == 0 && !event->lags) give_row(c, event);
}
