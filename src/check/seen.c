/* What streams have seen end (seen.h): clocks are kept by records and joined by waits. */
#include "check/seen.h"

#include <assert.h>

planc_status pl_seen_make(pl_arena *arena, const planc_plan *plan, pl_seen *out) {
  *out = (pl_seen){.plan = plan, .clocks = pl_clocks_of(plan->n_streams)};
  PLANC_TRY(PL_NEW(arena, &out->known, plan->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->epochs, plan->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->events, plan->n_events));
  for (int32_t s = 0; s < plan->n_streams; s++) out->known[s] = (pl_knowledge){PL_CLOCK_NONE, PL_CLOCK_NONE};
  for (int32_t e = 0; e < plan->n_events; e++) out->events[e] = (pl_event){.body = PL_NO_BODY};
  return NULL;
}

void pl_seen_free(pl_seen *seen) {
  pl_clocks_free(&seen->clocks);
}

void pl_seen_record(pl_seen *seen, int32_t id, int32_t stream, int32_t body) {
  seen->events[id] =
      (pl_event){.body = body, .stream = stream, .epoch = seen->epochs[stream], .known = seen->known[stream]};
}

static planc_status learn_of_theirs(pl_seen *seen, pl_knowledge *known, const pl_event *event);
static planc_status learn_of_ours(pl_seen *seen, pl_knowledge *known, const pl_event *event);
static planc_status learn_end(pl_seen *seen, int32_t *clock, const pl_event *event);

planc_status pl_seen_wait(pl_seen *seen, const planc_instr *wait) {
  const pl_event *event = &seen->events[wait->id];
  assert(event->body != PL_NO_BODY);
  return (wait->peers ? learn_of_theirs : learn_of_ours)(seen, &seen->known[wait->stream], event);
}

bool pl_seen_end(const pl_seen *seen, int32_t stream, int32_t of, int32_t epoch) {
  int32_t n = seen->plan->n_streams;
  if (stream == of) return true;
  if (stream < n && of < n) return pl_clock_at(&seen->clocks, seen->known[stream].ours, of) >= epoch;
  assert(stream < n || of < n);
  int32_t own = stream < n ? stream : stream - n, other = of < n ? of : of - n;
  return pl_clock_at(&seen->clocks, seen->known[own].theirs, other) >= epoch;
}

static planc_status learn_of_ours(pl_seen *seen, pl_knowledge *known, const pl_event *event) {
  PLANC_TRY(pl_clock_join(&seen->clocks, &known->ours, event->known.ours));
  PLANC_TRY(pl_clock_join(&seen->clocks, &known->theirs, event->known.theirs));
  return learn_end(seen, &known->ours, event);
}

/* The event of each other replica. Whoever recorded it knew of us what our own event's stream knew of them, and knew of
 * its own replica's streams what ours knew of ours. Where there are third replicas it knew of those, too. */
static planc_status learn_of_theirs(pl_seen *seen, pl_knowledge *known, const pl_event *event) {
  PLANC_TRY(pl_clock_join(&seen->clocks, &known->ours, event->known.theirs));
  PLANC_TRY(pl_clock_join(&seen->clocks, &known->theirs, event->known.ours));
  if (planc_plan_replicas(seen->plan) > 2) PLANC_TRY(pl_clock_join(&seen->clocks, &known->theirs, event->known.theirs));
  return learn_end(seen, &known->theirs, event);
}

/* Learns that the event's stream came as far as its record. The clock may know more of that stream already. */
static planc_status learn_end(pl_seen *seen, int32_t *clock, const pl_event *event) {
  if (pl_clock_at(&seen->clocks, *clock, event->stream) >= event->epoch) return NULL;
  return pl_clock_set(&seen->clocks, clock, event->stream, event->epoch);
}
