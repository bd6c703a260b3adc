/* The schedule-window (papers: out-of-core, 3 and Fig. 2), step by step at every instance i:
 *  (a) the window's head moves on while the bytes of the buffers in it stay within the window; what comes in new and
 *      has content away from the device is swapped in;
 *  (b) where memory is short, the oldest swap-outs are completed first, then what i makes is given memory;
 *  (c) after i, each of its buffers that does not occur in the window again is swapped out;
 *  (d) nothing is copied that is in the window already (its swap-out is cancelled) or that nobody needs (it is
 *      cleared).
 *
 * The operands of i itself enter whatever the window says. Prefetches must leave room for what the instances on the
 * way make. The paper's public implementation schedules, finds an instance that does not fit, forbids the prefetches
 * that came last until that instance is over, and schedules everything again. How far the head may be at an instance
 * does not depend on anything but the sequence, so it is computed here beforehand, from the last instance back to the
 * first: the same schedule in linear time. */

#include "planner/policies/adaptive_window.h"

#include "util/math.h"

typedef enum whereabouts {
  AWAY,     /* no memory: content on the host, or none */
  EXPECTED, /* in the window, no memory yet: an instance will make it */
  IN,       /* has memory */
  LEAVING   /* its swap-out has started */
} whereabouts;

typedef struct window_buffer {
  whereabouts state;
  int32_t occurrences; /* in the window */
  int64_t swap_out;    /* LEAVING: index of the step */
} window_buffer;

typedef struct scheduling {
  const pl_window_sequence *sequence;
  const pl_schedule_window *window;
  pl_window_steps *steps;
  pl_arena arena;
  window_buffer *buffers;
  int32_t *limit; /* by instance: how far the head may be */
  int32_t head;   /* the first use that is not in the window */
  int64_t window_bytes, in_bytes, out_bytes;
  VEC(int64_t) leaving; /* steps that are swap-outs, oldest first */
  int64_t completed;    /* how many of them are done with */
} scheduling;

int64_t pl_window_least(const pl_window_sequence *sequence, int32_t *out_instance) {
  int64_t most = 0;
  *out_instance = 0;
  for (int32_t i = 0; i < sequence->n_instances; i++) {
    int64_t bytes = 0;
    for (int32_t u = sequence->first_use[i]; u < sequence->first_use[i + 1]; u++) {
      bytes = pl_add_saturate(bytes, sequence->bytes[sequence->uses[u].buffer]);
    }
    if (bytes <= most) continue;
    most = bytes;
    *out_instance = i;
  }
  return most;
}

static int64_t bytes_of(const scheduling *s, int32_t use) {
  return s->sequence->bytes[s->sequence->uses[use].buffer];
}

static planc_status take(scheduling *s, pl_window_step_kind kind, int32_t use) {
  VEC_PUSH(s->steps, ((pl_window_step){kind, use}));
  return NULL;
}

/* --- Steps (a) to (d) --------------------------------------------------------------------------------------------- */

static planc_status schedule(scheduling *s);
static planc_status find_limits(scheduling *s);
static planc_status swap_in(scheduling *s, int32_t i);
static planc_status reserve(scheduling *s, int32_t i);
static planc_status swap_out(scheduling *s, int32_t i);
static planc_status complete_oldest(scheduling *s);

planc_status pl_window_schedule(const pl_window_sequence *sequence, const pl_schedule_window *window,
                                pl_window_steps *out) {
  scheduling s = {.sequence = sequence, .window = window, .steps = out};
  planc_status status = schedule(&s);
  VEC_FREE(&s.leaving);
  pl_arena_free(&s.arena);
  return status;
}

static planc_status schedule(scheduling *s) {
  PLANC_TRY(PL_NEW(&s->arena, &s->buffers, s->sequence->n_buffers));
  PLANC_TRY(find_limits(s));
  for (int32_t i = 0; i < s->sequence->n_instances; i++) {
    PLANC_TRY(swap_in(s, i));
    PLANC_TRY(reserve(s, i));
    PLANC_TRY(take(s, PL_WINDOW_RUN, i));
    PLANC_TRY(swap_out(s, i));
  }
  while (s->completed < s->leaving.len) PLANC_TRY(complete_oldest(s));
  return NULL;
}

/* --- How far prefetches may go ------------------------------------------------------------------------------------ */

/* What memory must hold while i runs when the head is at `end`: the buffers of i, and of the others in the window
 * those that are read before they are made. */
typedef struct window_demand {
  int32_t end;
  int64_t bytes;
  int32_t *occurrences;
  bool *counted;
} window_demand;

static void count(window_demand *d, const pl_window_sequence *sequence, int32_t b, bool counted) {
  if (d->counted[b] == counted) return;
  d->counted[b] = counted;
  d->bytes += counted ? sequence->bytes[b] : -sequence->bytes[b];
}

/* Turns the demand at instance i + 1 into that at instance i. */
static void go_back(window_demand *d, const pl_window_sequence *sequence, int32_t i) {
  for (int32_t u = sequence->first_use[i + 1]; i + 1 < sequence->n_instances && u < sequence->first_use[i + 2]; u++) {
    if (!sequence->uses[u].reads) count(d, sequence, sequence->uses[u].buffer, false);
  }
  for (int32_t u = sequence->first_use[i]; u < sequence->first_use[i + 1]; u++) {
    int32_t b = sequence->uses[u].buffer;
    d->occurrences[b]++;
    count(d, sequence, b, true);
  }
}

static planc_status find_limits(scheduling *s) {
  const pl_window_sequence *sequence = s->sequence;
  window_demand d = {.end = sequence->first_use[sequence->n_instances]};
  PLANC_TRY(PL_NEW(&s->arena, &d.occurrences, sequence->n_buffers));
  PLANC_TRY(PL_NEW(&s->arena, &d.counted, sequence->n_buffers));
  PLANC_TRY(PL_NEW(&s->arena, &s->limit, sequence->n_instances));
  for (int32_t i = sequence->n_instances - 1; i >= 0; i--) {
    go_back(&d, sequence, i);
    while (d.bytes > s->window->budget_bytes) {
      if (d.end == sequence->first_use[i + 1])
        return planc_error(PLANC_INTERNAL, "window: instance %d is too large", i);
      int32_t b = sequence->uses[--d.end].buffer;
      if (--d.occurrences[b] == 0) count(&d, sequence, b, false);
    }
    s->limit[i] = d.end;
  }
  return NULL;
}

/* Waits for the oldest swap-out that is not done with and has not been cancelled. */
static planc_status complete_oldest(scheduling *s) {
  int64_t step = s->leaving.data[s->completed++];
  if (s->steps->data[step].kind != PL_WINDOW_SWAP_OUT) return NULL;
  int32_t use = s->steps->data[step].use;
  s->buffers[s->sequence->uses[use].buffer].state = AWAY;
  s->out_bytes -= bytes_of(s, use);
  return take(s, PL_WINDOW_COMPLETE, use);
}

/* Completes the oldest swap-outs until `bytes` more find room. */
static planc_status make_room(scheduling *s, int64_t bytes) {
  while (s->in_bytes + s->out_bytes > s->window->budget_bytes - bytes) {
    if (s->completed == s->leaving.len) return planc_error(PLANC_INTERNAL, "window: no swap-out is left to wait for");
    PLANC_TRY(complete_oldest(s));
  }
  s->in_bytes += bytes;
  return NULL;
}

static planc_status enter(scheduling *s, int32_t use) {
  window_buffer *b = &s->buffers[s->sequence->uses[use].buffer];
  int64_t bytes = bytes_of(s, use);
  if (b->state == LEAVING) {
    s->steps->data[b->swap_out].kind = PL_WINDOW_CANCELLED;
    s->out_bytes -= bytes;
    s->in_bytes += bytes;
  } else if (!s->sequence->uses[use].reads) {
    b->state = EXPECTED;
    return NULL;
  } else {
    PLANC_TRY(make_room(s, bytes));
    PLANC_TRY(take(s, PL_WINDOW_SWAP_IN, use));
  }
  b->state = IN;
  return NULL;
}

static planc_status swap_in(scheduling *s, int32_t i) {
  while (s->head < s->limit[i]) {
    window_buffer *b = &s->buffers[s->sequence->uses[s->head].buffer];
    bool counts = b->occurrences == 0 || s->window->per_occurrence, own = s->head < s->sequence->first_use[i + 1];
    int64_t bytes = counts ? bytes_of(s, s->head) : 0;
    if (!own && counts && bytes > s->window->window_bytes - s->window_bytes) return NULL;
    s->window_bytes += bytes;
    if (b->occurrences++ == 0) PLANC_TRY(enter(s, s->head));
    s->head++;
  }
  return NULL;
}

static planc_status reserve(scheduling *s, int32_t i) {
  const pl_window_sequence *sequence = s->sequence;
  int64_t bytes = 0;
  for (int32_t u = sequence->first_use[i]; u < sequence->first_use[i + 1]; u++) {
    if (s->buffers[sequence->uses[u].buffer].state == EXPECTED) bytes += bytes_of(s, u);
  }
  PLANC_TRY(make_room(s, bytes));
  for (int32_t u = sequence->first_use[i]; u < sequence->first_use[i + 1]; u++) {
    window_buffer *b = &s->buffers[sequence->uses[u].buffer];
    if (b->state != EXPECTED) continue;
    PLANC_TRY(take(s, PL_WINDOW_RESERVE, u));
    b->state = IN;
  }
  return NULL;
}

static planc_status swap_out(scheduling *s, int32_t i) {
  for (int32_t u = s->sequence->first_use[i]; u < s->sequence->first_use[i + 1]; u++) {
    window_buffer *b = &s->buffers[s->sequence->uses[u].buffer];
    int64_t bytes = bytes_of(s, u);
    b->occurrences--;
    if (b->occurrences == 0 || s->window->per_occurrence) s->window_bytes -= bytes;
    if (!s->sequence->uses[u].keeps) {
      b->state = b->occurrences > 0 ? EXPECTED : AWAY;
      s->in_bytes -= bytes;
      PLANC_TRY(take(s, PL_WINDOW_CLEAR, u));
    } else if (b->occurrences == 0) {
      b->state = LEAVING;
      b->swap_out = s->steps->len;
      s->in_bytes -= bytes;
      s->out_bytes += bytes;
      VEC_PUSH(&s->leaving, s->steps->len);
      PLANC_TRY(take(s, PL_WINDOW_SWAP_OUT, u));
    }
  }
  return NULL;
}
