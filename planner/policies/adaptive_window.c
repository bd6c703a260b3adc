/* The schedule-window (papers: out-of-core, 3 and Fig. 2), step by step at every function f:
 *  (a) the window's head moves on while the bytes of the variables in it stay within the window; what comes in new and
 *      has content away from the device is swapped in;
 *  (b) where memory is short, the oldest swap-outs are completed first, then what f makes is given memory;
 *  (c) after f, each of its variables that does not occur in the window again is swapped out;
 *  (d) nothing is copied that is in the window already (its swap-out is cancelled) or that nobody needs (it is
 * cleared).
 *
 * The operands of f itself enter whatever the window says. Prefetches must leave room for what the functions on the
 * way make. The paper's public implementation schedules, finds a function that does not fit, forbids the prefetches
 * that came last until that function is over, and schedules everything again. How far the head may be at a function
 * does not depend on anything but the sequence, so it is computed here beforehand, from the last function back to the
 * first: the same schedule in linear time. */

#include "planner/policies/adaptive_window.h"

#include "util/math.h"

typedef enum variable_state {
  AWAY,     /* no memory: content on the host, or none */
  EXPECTED, /* in the window, no memory yet: a function will make it */
  IN,       /* has memory */
  LEAVING   /* its swap-out has started */
} variable_state;

typedef struct variable {
  variable_state state;
  int32_t occurrences; /* in the window */
  int64_t swap_out;    /* LEAVING: index of the step */
} variable;

typedef struct scheduling {
  const pl_window_sequence *sequence;
  const pl_schedule_window *window;
  pl_window_steps *steps;
  pl_arena arena;
  variable *variables;
  int32_t *limit; /* by function: how far the head may be */
  int32_t head;   /* the first use that is not in the window */
  int64_t window_bytes, in_bytes, out_bytes;
  VEC(int64_t) leaving; /* steps that are swap-outs, oldest first */
  int64_t completed;    /* how many of them are done with */
} scheduling;

int64_t pl_window_least(const pl_window_sequence *sequence, int32_t *out_function) {
  int64_t most = 0;
  *out_function = 0;
  for (int32_t f = 0; f < sequence->n_functions; f++) {
    int64_t bytes = 0;
    for (int32_t u = sequence->first_use[f]; u < sequence->first_use[f + 1]; u++) {
      bytes = pl_add_saturate(bytes, sequence->bytes[sequence->uses[u].variable]);
    }
    if (bytes <= most) continue;
    most = bytes;
    *out_function = f;
  }
  return most;
}

static int64_t bytes_of(const scheduling *s, int32_t use) {
  return s->sequence->bytes[s->sequence->uses[use].variable];
}

static planc_status take(scheduling *s, pl_window_step_kind kind, int32_t use) {
  VEC_PUSH(s->steps, ((pl_window_step){kind, use}));
  return NULL;
}

/* --- Steps (a) to (d) --------------------------------------------------------------------------------------------- */

static planc_status schedule(scheduling *s);
static planc_status find_limits(scheduling *s);
static planc_status swap_in(scheduling *s, int32_t f);
static planc_status reserve(scheduling *s, int32_t f);
static planc_status swap_out(scheduling *s, int32_t f);
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
  PLANC_TRY(PL_NEW(&s->arena, &s->variables, s->sequence->n_variables));
  PLANC_TRY(find_limits(s));
  for (int32_t f = 0; f < s->sequence->n_functions; f++) {
    PLANC_TRY(swap_in(s, f));
    PLANC_TRY(reserve(s, f));
    PLANC_TRY(take(s, PL_WINDOW_CALL, f));
    PLANC_TRY(swap_out(s, f));
  }
  while (s->completed < s->leaving.len) PLANC_TRY(complete_oldest(s));
  return NULL;
}

/* --- How far prefetches may go ------------------------------------------------------------------------------------ */

/* What memory must hold while f runs when the head is at `end`: the variables of f, and of the others in the window
 * those that are read before they are made. */
typedef struct window_demand {
  int32_t end;
  int64_t bytes;
  int32_t *occurrences;
  bool *counted;
} window_demand;

static void count(window_demand *d, const pl_window_sequence *sequence, int32_t v, bool counted) {
  if (d->counted[v] == counted) return;
  d->counted[v] = counted;
  d->bytes += counted ? sequence->bytes[v] : -sequence->bytes[v];
}

/* Turns the demand at function f + 1 into that at function f. */
static void go_back(window_demand *d, const pl_window_sequence *sequence, int32_t f) {
  for (int32_t u = sequence->first_use[f + 1]; f + 1 < sequence->n_functions && u < sequence->first_use[f + 2]; u++) {
    if (!sequence->uses[u].reads) count(d, sequence, sequence->uses[u].variable, false);
  }
  for (int32_t u = sequence->first_use[f]; u < sequence->first_use[f + 1]; u++) {
    int32_t v = sequence->uses[u].variable;
    d->occurrences[v]++;
    count(d, sequence, v, true);
  }
}

static planc_status find_limits(scheduling *s) {
  const pl_window_sequence *sequence = s->sequence;
  window_demand d = {.end = sequence->first_use[sequence->n_functions]};
  PLANC_TRY(PL_NEW(&s->arena, &d.occurrences, sequence->n_variables));
  PLANC_TRY(PL_NEW(&s->arena, &d.counted, sequence->n_variables));
  PLANC_TRY(PL_NEW(&s->arena, &s->limit, sequence->n_functions));
  for (int32_t f = sequence->n_functions - 1; f >= 0; f--) {
    go_back(&d, sequence, f);
    while (d.bytes > s->window->budget_bytes) {
      if (d.end == sequence->first_use[f + 1])
        return planc_error(PLANC_INTERNAL, "window: function %d is too large", f);
      int32_t v = sequence->uses[--d.end].variable;
      if (--d.occurrences[v] == 0) count(&d, sequence, v, false);
    }
    s->limit[f] = d.end;
  }
  return NULL;
}

/* Waits for the oldest swap-out that is not done with and has not been cancelled. */
static planc_status complete_oldest(scheduling *s) {
  int64_t step = s->leaving.data[s->completed++];
  if (s->steps->data[step].kind != PL_WINDOW_SWAP_OUT) return NULL;
  int32_t use = s->steps->data[step].use;
  s->variables[s->sequence->uses[use].variable].state = AWAY;
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
  variable *v = &s->variables[s->sequence->uses[use].variable];
  int64_t bytes = bytes_of(s, use);
  if (v->state == LEAVING) {
    s->steps->data[v->swap_out].kind = PL_WINDOW_CANCELLED;
    s->out_bytes -= bytes;
    s->in_bytes += bytes;
  } else if (!s->sequence->uses[use].reads) {
    v->state = EXPECTED;
    return NULL;
  } else {
    PLANC_TRY(make_room(s, bytes));
    PLANC_TRY(take(s, PL_WINDOW_SWAP_IN, use));
  }
  v->state = IN;
  return NULL;
}

static planc_status swap_in(scheduling *s, int32_t f) {
  while (s->head < s->limit[f]) {
    variable *v = &s->variables[s->sequence->uses[s->head].variable];
    bool counts = v->occurrences == 0 || s->window->per_occurrence, own = s->head < s->sequence->first_use[f + 1];
    int64_t bytes = counts ? bytes_of(s, s->head) : 0;
    if (!own && counts && bytes > s->window->window_bytes - s->window_bytes) return NULL;
    s->window_bytes += bytes;
    if (v->occurrences++ == 0) PLANC_TRY(enter(s, s->head));
    s->head++;
  }
  return NULL;
}

static planc_status reserve(scheduling *s, int32_t f) {
  const pl_window_sequence *sequence = s->sequence;
  int64_t bytes = 0;
  for (int32_t u = sequence->first_use[f]; u < sequence->first_use[f + 1]; u++) {
    if (s->variables[sequence->uses[u].variable].state == EXPECTED) bytes += bytes_of(s, u);
  }
  PLANC_TRY(make_room(s, bytes));
  for (int32_t u = sequence->first_use[f]; u < sequence->first_use[f + 1]; u++) {
    variable *v = &s->variables[sequence->uses[u].variable];
    if (v->state != EXPECTED) continue;
    PLANC_TRY(take(s, PL_WINDOW_RESERVE, u));
    v->state = IN;
  }
  return NULL;
}

static planc_status swap_out(scheduling *s, int32_t f) {
  for (int32_t u = s->sequence->first_use[f]; u < s->sequence->first_use[f + 1]; u++) {
    variable *v = &s->variables[s->sequence->uses[u].variable];
    int64_t bytes = bytes_of(s, u);
    v->occurrences--;
    if (v->occurrences == 0 || s->window->per_occurrence) s->window_bytes -= bytes;
    if (!s->sequence->uses[u].keeps) {
      v->state = v->occurrences > 0 ? EXPECTED : AWAY;
      s->in_bytes -= bytes;
      PLANC_TRY(take(s, PL_WINDOW_CLEAR, u));
    } else if (v->occurrences == 0) {
      v->state = LEAVING;
      v->swap_out = s->steps->len;
      s->in_bytes -= bytes;
      s->out_bytes += bytes;
      VEC_PUSH(&s->leaving, s->steps->len);
      PLANC_TRY(take(s, PL_WINDOW_SWAP_OUT, u));
    }
  }
  return NULL;
}
