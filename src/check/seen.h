/* What streams have seen end, and what they learn of each other by events.
 *
 * Whoever waits for an event learns what the recording stream had seen, and that this stream itself came so far. So
 * each stream has a clock: of every other stream, up to which of its commands it has seen it end. Its own commands it
 * need not see, for a stream runs in order.
 *
 * With replicas a second clock says the same of the streams of another replica. One is enough: all replicas do the
 * same, so a stream knows the same of any two others, and they know of it what it knows of them. */
#ifndef PLANC_CHECK_SEEN_H
#define PLANC_CHECK_SEEN_H

#include <stdbool.h>

#include "planc/plan.h"
#include "util/arena.h"
#include "util/clocks.h"

/* A run's sections are counted as bodies: the prologue is body -1, the epilogue the one after the last. */
enum { PL_BODY_OF_PROLOGUE = -1, PL_NO_BODY = -2 };

typedef struct pl_knowledge {
  int32_t ours, theirs; /* clocks: of this replica's streams, and of those of each other */
} pl_knowledge;

/* An event as it was recorded last. */
typedef struct pl_event {
  int32_t body, stream; /* in which, and on which */
  int32_t epoch;        /* that the stream had reached */
  pl_knowledge known;
} pl_event;

typedef struct pl_seen {
  const planc_plan *plan;
  pl_clocks clocks;
  pl_knowledge *known; /* by stream */
  int32_t *epochs;     /* by stream: how many commands it has had */
  pl_event *events;
} pl_seen;

/* For one run of a plan, which is borrowed and may be wrong. */
planc_status pl_seen_make(pl_arena *arena, const planc_plan *plan, pl_seen *out);
void pl_seen_free(pl_seen *seen);

/* Event `id` of the plan is recorded on the stream. */
void pl_seen_record(pl_seen *seen, int32_t id, int32_t stream, int32_t body);
/* The wait's stream learns what was known at the record that it means, which has been made. */
planc_status pl_seen_wait(pl_seen *seen, const planc_instr *wait);

/* Whether `stream` has seen the end of command `epoch` of stream `of`. The streams behind the plan's are those of
 * another replica: of what that one has seen, only what it knows of our streams is asked for, since it only reads our
 * bytes and all that write them are ours. */
bool pl_seen_end(const pl_seen *seen, int32_t stream, int32_t of, int32_t epoch);

#endif
