/* What streams know to have ended, and what their events tell each other.
 *
 * A stream's clock has an entry for each stream: the last of that stream's commands whose end it has seen, of its own
 * how many there were. With replicas a second half follows: the same of these streams in each other replica. All
 * replicas do the same, so of any two others a stream knows the same, and what it knows of them is what theirs know of
 * this one. */
#ifndef PLANC_CHECK_CLOCKS_H
#define PLANC_CHECK_CLOCKS_H

#include <stdbool.h>

#include "planc/plan.h"
#include "util/arena.h"
#include "util/vec.h"

/* A run's sections are counted as bodies: the prologue is body -1, the epilogue the one after the last. */
enum { PLANC_BODY_OF_PROLOGUE = -1, PLANC_NEVER = -2 };

typedef struct planc_event {
  int32_t body;   /* in which it was recorded last */
  int32_t stream; /* on which */
  int32_t waits;  /* on it with lag 0 that the present section still has */
  bool lags;      /* waits on it with lag 1 are there */
  int32_t row;    /* of `recorded`, -1 = none */
} planc_event;

typedef struct planc_clocks {
  const planc_plan *plan;
  int32_t length;   /* of a clock */
  int32_t *streams; /* by stream: its clock */
  planc_event *events;
  /* The clocks of records, each for as long as waits may mean that record: a plan has many events, but few at a time. A
   * row that is free begins with the next one, -1 = none. */
  VEC(int32_t) recorded;
  int32_t free_row;
} planc_clocks;

/* For one run of a plan, which is borrowed and may be wrong. */
planc_status planc_clocks_make(planc_arena *arena, const planc_plan *plan, planc_clocks *out);
void planc_clocks_free(planc_clocks *clocks);
/* Before the section's first instruction. */
void planc_clocks_enter(planc_clocks *clocks, const planc_section *section);

static inline int32_t *planc_clock_of(const planc_clocks *clocks, int32_t stream) {
  return &clocks->streams[(int64_t)stream * clocks->length];
}
/* The same of the streams behind the plan's, which are those of another replica: what it knows of our streams. That is
 * all that its accesses of our bytes are ordered by, since they are reads, and all writes of our bytes are ours. */
static inline const int32_t *planc_clock_about_us(const planc_clocks *clocks, int32_t stream) {
  int32_t n = clocks->plan->n_streams;
  return stream < n ? planc_clock_of(clocks, stream) : planc_clock_of(clocks, stream - n) + n;
}

/* Event `id` of the plan is recorded on the stream. */
planc_status planc_clocks_record(planc_clocks *clocks, int32_t id, int32_t stream, int32_t body);
/* The wait's stream learns what was known at the record that it means, which has been made. */
void planc_clocks_wait(planc_clocks *clocks, const planc_instr *wait);

#endif
