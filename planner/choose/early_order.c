/* Updates early and other ops late (early_order.h): list scheduling of what is ready, optimizer ops first; then, from
 * the last op to the first, each goes right ahead of the first that waits for it, if what it makes is more than what it
 * lets go. */
#include "planner/choose/early_order.h"

#include <stdlib.h>

#include "util/arena.h"
#include "util/heap.h"
#include "util/math.h"

enum { NONE = -1 };

/* That one instance waits for another. */
typedef struct wait_for {
  int32_t waiter, next; /* the next that waits for the same one, NONE = none */
} wait_for;

typedef struct list_schedule {
  const planc_trace *trace;
  pl_arena arena;
  wait_for *waits;
  int32_t n_waits;
  int32_t *first_wait, *n_open; /* by instance: of those that wait for it; how many it waits for still */
  int32_t *ready;               /* a heap */
  int32_t *numbers;             /* by position */
  int64_t *key;                 /* by instance: where it stands in the end */
} list_schedule;

static planc_status schedule(list_schedule *s, planc_order **out);

planc_status pl_early_order(const planc_trace *trace, planc_order **out) {
  list_schedule s = {.trace = trace};
  *out = NULL;
  planc_status status = schedule(&s, out);
  pl_arena_free(&s.arena);
  return status;
}

static bool is_update(const list_schedule *s, int32_t instance) {
  return planc_trace_phase(s->trace, instance) == PLANC_PHASE_optimizer;
}

static bool goes_before(const list_schedule *s, int32_t a, int32_t b) {
  return is_update(s, a) != is_update(s, b) ? is_update(s, a) : a < b;
}
PL_HEAP(ready, int32_t, list_schedule, goes_before)

static planc_status list_waits(list_schedule *s);
static planc_status run_late(list_schedule *s);

static planc_status schedule(list_schedule *s, planc_order **out) {
  int32_t n = s->trace->n_instances, n_ready = 0, done = 0;
  PLANC_TRY(PL_NEW(&s->arena, &s->ready, n));
  PLANC_TRY(PL_NEW(&s->arena, &s->numbers, n));
  PLANC_TRY(list_waits(s));
  for (int32_t i = 0; i < n; i++) {
    if (s->n_open[i] > 0) continue;
    s->ready[n_ready++] = i;
    ready_rise(s, s->ready, n_ready);
  }
  while (n_ready > 0) {
    int32_t instance = s->ready[0];
    s->ready[0] = s->ready[--n_ready];
    ready_sink(s, s->ready, n_ready);
    s->numbers[done++] = instance;
    for (int32_t w = s->first_wait[instance]; w != NONE; w = s->waits[w].next) {
      if (--s->n_open[s->waits[w].waiter] > 0) continue;
      s->ready[n_ready++] = s->waits[w].waiter;
      ready_rise(s, s->ready, n_ready);
    }
  }
  PLANC_TRY(run_late(s));
  return planc_order_of_instances(s->trace, s->numbers, out);
}

static void add_wait(list_schedule *s, int32_t waiter, int32_t waited_for);
static void list_waits_of(list_schedule *s, const planc_buffer *buffer);

/* Each access waits for at most one writer, and is waited for by at most one. */
static planc_status list_waits(list_schedule *s) {
  const planc_trace *trace = s->trace;
  PLANC_TRY(PL_NEW(&s->arena, &s->waits, 2 * (int64_t)trace->n_accesses));
  PLANC_TRY(PL_NEW(&s->arena, &s->first_wait, trace->n_instances));
  PLANC_TRY(PL_NEW(&s->arena, &s->n_open, trace->n_instances));
  for (int32_t i = 0; i < trace->n_instances; i++) s->first_wait[i] = NONE;
  for (int32_t b = 0; b < trace->n_buffers; b++) list_waits_of(s, &trace->buffers[b]);
  return NULL;
}

/* Readers wait for the writer before them, and a writer for all since the one before it. */
static void list_waits_of(list_schedule *s, const planc_buffer *buffer) {
  int32_t writer = NONE, since = buffer->first_access;
  for (int32_t k = since; k < buffer->first_access + buffer->n_accesses; k++) {
    const planc_access *access = &s->trace->accesses[s->trace->by_buffer[k]];
    if (writer != NONE) add_wait(s, access->instance, writer);
    if (access->write < 0) continue;
    for (; since < k; since++) add_wait(s, access->instance, s->trace->accesses[s->trace->by_buffer[since]].instance);
    since = k + 1;
    writer = access->instance;
  }
}

static void add_wait(list_schedule *s, int32_t waiter, int32_t waited_for) {
  if (waiter == waited_for) return;
  s->waits[s->n_waits] = (wait_for){waiter, s->first_wait[waited_for]};
  s->first_wait[waited_for] = s->n_waits++;
  s->n_open[waiter]++;
}

/* --- Late --------------------------------------------------------------------------------------------------------- */

/* Where an op stands: by key, of equal ones by position in the list. */
typedef struct late_place {
  int64_t key;
  int32_t position, instance;
} late_place;

static int64_t late_key(const list_schedule *s, int32_t instance);
static int by_place(const void *left, const void *right);

static planc_status run_late(list_schedule *s) {
  enum { APART = 1 << 20 };
  int32_t n = s->trace->n_instances;
  late_place *places;
  PLANC_TRY(PL_NEW(&s->arena, &s->key, n));
  PLANC_TRY(PL_NEW(&s->arena, &places, n));
  for (int32_t p = 0; p < n; p++) s->key[s->numbers[p]] = (int64_t)p * APART;
  for (int32_t p = n - 1; p >= 0; p--) {
    int32_t instance = s->numbers[p];
    s->key[instance] = late_key(s, instance);
    places[p] = (late_place){s->key[instance], p, instance};
  }
  qsort(places, (size_t)n, sizeof *places, by_place);
  for (int32_t p = 0; p < n; p++) s->numbers[p] = places[p].instance;
  return NULL;
}

static int by_place(const void *left, const void *right) {
  const late_place *a = left, *b = right;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->position > b->position) - (a->position < b->position);
}

static pl_signed_wide saved_until(const list_schedule *s, int32_t instance, int64_t until);

/* Ahead of the first that waits for it, or where it is. */
static int64_t late_key(const list_schedule *s, int32_t instance) {
  int64_t now = s->key[instance], until = INT64_MAX;
  for (int32_t w = s->first_wait[instance]; w != NONE; w = s->waits[w].next)
    until = pl_min(until, s->key[s->waits[w].waiter] - 1);
  bool moves = until < INT64_MAX && until > now && !is_update(s, instance) && saved_until(s, instance, until) > 0;
  return moves ? until : now;
}

/* Bytes times the stretch for which they are not held, where the op runs then, less those that are held longer. */
static pl_signed_wide saved_until(const list_schedule *s, int32_t instance, int64_t until) {
  const planc_trace *trace = s->trace;
  const planc_instance *in = &trace->instances[instance];
  int64_t now = s->key[instance];
  pl_signed_wide saved = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_buffer *buffer = &trace->buffers[trace->accesses[a].buffer];
    if ((buffer->flags & PLANC_BUFFER_PERSISTENT) || buffer->n_accesses == 1) continue;
    bool begins = true, ends = true;
    int64_t last = now;
    for (int32_t k = buffer->first_access; k < buffer->first_access + buffer->n_accesses; k++) {
      int32_t other = trace->accesses[trace->by_buffer[k]].instance;
      if (other == instance) continue;
      begins &= s->key[other] > now;
      ends &= s->key[other] < until;
      last = pl_max(last, pl_min(s->key[other], until));
    }
    if (begins) saved += (pl_signed_wide)buffer->bytes * (until - now);
    if (ends && !begins) saved -= (pl_signed_wide)buffer->bytes * (until - last);
  }
  return saved;
}
