/* Absences: every instance first finds what it reads. A version that is not resident comes from the host where there is
 * a copy; otherwise its writer runs again, whose own inputs may first have to be restored. What a recompute brings back
 * stays when the rest of the iteration reads it, and goes as soon as the recompute is done when it was only a stepping
 * stone.
 *
 * A buffer whose next access only writes holds nothing worth its place, and leaves until then; but where restores may
 * read it what it was given stays, and whatever a persistent buffer holds, as no recompute would bring them back. */
#include "planner/choose/absences.h"

#include "util/math.h"
#include "util/vec.h"

enum { NONE = -1 };

typedef struct restore {
  int32_t instance;
  bool expanded; /* its inputs have been asked for */
} restore;

/* Absences and buffers by the instance at which something is to be done about them: the first, others by `also`. */
typedef struct agenda {
  int32_t *first; /* per instance */
  int32_t *also;  /* per absence or buffer */
} agenda;

typedef struct run {
  bool restores; /* instances may run again */
  planc_walk *walk;
  const planc_trace *trace;
  planc_schedule *schedule;
  const planc_absences *absences;
  agenda copies, leaves, fetches; /* of absences */
  agenda deaths;                  /* of buffers */
  int32_t *held; /* per buffer: the residency that stays until the buffer is away or dead, NONE = none */
  int32_t *next; /* per buffer: its next access in the trace, index into by_buffer */
  VEC(restore) stack;
  VEC(int32_t) stones; /* residencies that restores opened */
} run;

/* --- What is live ------------------------------------------------------------------------------------------------- */

/* Adds `bytes` to the instances `from` to `to`, both included; `live` holds differences. */
static void add_span(int64_t *live, int32_t n_instances, int64_t from, int64_t to, int64_t bytes) {
  if (from > to) return;
  live[from] += bytes;
  if (to + 1 < n_instances) live[to + 1] -= bytes;
}

static bool are_restored(const planc_absences *absences) {
  for (int64_t k = 0; k < absences->n; k++)
    if (absences->items[k].copy == PLANC_NO_COPY) return true;
  return false;
}

/* Whether a buffer is away from an access to the next, which only writes. */
static bool leaves_until_written(const planc_trace *trace, bool restores, const planc_access *from,
                                 const planc_access *next) {
  if (!next || next->read >= 0) return false;
  if (!restores) return true;
  int32_t version = from->write >= 0 ? from->write : from->read;
  bool persistent = trace->buffers[from->buffer].flags & PLANC_BUFFER_PERSISTENT;
  return !persistent && planc_writer_of(trace, from->buffer, version) != NONE;
}

static void add_buffer(const planc_trace *trace, int32_t b, const int32_t *until, bool restores, int64_t *live) {
  const planc_buffer *buffer = &trace->buffers[b];
  bool persistent = buffer->flags & PLANC_BUFFER_PERSISTENT;
  int64_t bytes = planc_walk_room(buffer);
  if (persistent) add_span(live, trace->n_instances, 0, trace->n_instances - 1, bytes);
  for (int32_t i = buffer->first_access; i < buffer->first_access + buffer->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    bool last = i + 1 == buffer->first_access + buffer->n_accesses;
    const planc_access *next = last ? NULL : &trace->accesses[trace->by_buffer[i + 1]];
    if (!persistent) {
      int32_t end = next ? next->instance - 1 : until ? until[b] : access->instance;
      add_span(live, trace->n_instances, access->instance, end, bytes);
    }
    if (leaves_until_written(trace, restores, access, next)) {
      add_span(live, trace->n_instances, access->instance + 1, next->instance - 1, -bytes);
    }
  }
}

planc_status planc_absences_live(const planc_trace *trace, const planc_absences *absences, int64_t *live) {
  int64_t sum = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    sum = planc_add_saturate(sum, planc_walk_room(&trace->buffers[b]));
  }
  if (sum > INT64_MAX / 4) return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
  for (int32_t i = 0; i < trace->n_instances; i++) live[i] = 0;
  bool restores = are_restored(absences);
  for (int32_t b = 0; b < trace->n_buffers; b++) add_buffer(trace, b, absences->until, restores, live);
  for (int64_t k = 0; k < absences->n; k++) {
    const planc_absence *a = &absences->items[k];
    int64_t bytes = planc_walk_room(&trace->buffers[a->buffer]);
    int64_t end = a->fetch < trace->n_instances && !planc_absence_wraps(a) ? a->fetch : trace->n_instances;
    add_span(live, trace->n_instances, (int64_t)a->leave + 1, end - 1, -bytes);
    if (planc_absence_wraps(a)) add_span(live, trace->n_instances, 0, (int64_t)a->fetch - 1, -bytes);
  }
  for (int32_t i = 1; i < trace->n_instances; i++) live[i] += live[i - 1];
  return NULL;
}

/* --- What can be run again ---------------------------------------------------------------------------------------- */

/* Versions ascend along a buffer's accesses. */
int32_t planc_writer_of(const planc_trace *trace, int32_t buffer, int32_t version) {
  const planc_buffer *b = &trace->buffers[buffer];
  const int32_t *accesses = &trace->by_buffer[b->first_access];
  int32_t low = 0,
          high = b->n_accesses; /* the first access that leaves this version or a later one is in [low, high] */
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    const planc_access *access = &trace->accesses[accesses[middle]];
    if ((access->write >= 0 ? access->write : access->read) < version) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const planc_access *first = low < b->n_accesses ? &trace->accesses[accesses[low]] : NULL;
  return first && first->write == version ? first->instance : NONE;
}

int32_t planc_last_instance(const planc_trace *trace, int32_t buffer) {
  const planc_buffer *b = &trace->buffers[buffer];
  return b->n_accesses ? trace->accesses[trace->by_buffer[b->first_access + b->n_accesses - 1]].instance : NONE;
}

static bool is_given(const planc_trace *trace, int32_t buffer) {
  return trace->buffers[buffer].flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED);
}

/* Per access of a persistent or fed buffer: the first instance that overwrites what it reads, which may be its own; the
 * number of instances where none does. */
static planc_status find_changes(const planc_trace *trace, planc_arena *arena, int32_t **out) {
  int32_t *next;
  PLANC_TRY(PLANC_NEW(arena, &next, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, out, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) next[b] = trace->n_instances;
  for (int32_t i = trace->n_instances - 1; i >= 0; i--) {
    const planc_instance *in = &trace->instances[i];
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      if (trace->accesses[a].write >= 0) next[trace->accesses[a].buffer] = i;
      (*out)[a] = next[trace->accesses[a].buffer];
    }
  }
  return NULL;
}

bool planc_can_drop(const planc_trace *trace, const int32_t *latest, int32_t buffer) {
  int32_t last = planc_last_instance(trace, buffer);
  const planc_buffer *b = &trace->buffers[buffer];
  if (b->kind != PLANC_KIND_activation && b->kind != PLANC_KIND_temp) return false;
  if (b->flags & PLANC_BUFFER_RESULT) return false;
  for (int32_t i = b->first_access; i < b->first_access + b->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    if (access->write >= 0 && latest[access->instance] < last) return false;
  }
  return true;
}

planc_status planc_mark_restorable(const planc_trace *trace, bool keeps, planc_arena *arena, int32_t *latest) {
  enum { UNKNOWN, DROPPED, KEPT };
  int32_t *writer, *changes;
  uint8_t *fate; /* per buffer, once its last version is read */
  PLANC_TRY(PLANC_NEW(arena, &writer, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &fate, trace->n_buffers));
  PLANC_TRY(find_changes(trace, arena, &changes));
  for (int32_t b = 0; b < trace->n_buffers; b++) writer[b] = NONE;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *in = &trace->instances[i];
    bool again = planc_trace_phase(trace, i) == PLANC_PHASE_forward && planc_trace_recomputable(trace, i);
    latest[i] = again ? trace->n_instances : NONE;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      if (access->effect || access->read < 0) continue;
      int32_t from = writer[access->buffer];
      int32_t readable = is_given(trace, access->buffer) ? changes[a] : from >= 0 ? latest[from] : NONE;
      if (keeps && !is_given(trace, access->buffer) && changes[a] == trace->n_instances) {
        uint8_t *of = &fate[access->buffer];
        if (*of == UNKNOWN) *of = planc_can_drop(trace, latest, access->buffer) ? DROPPED : KEPT;
        if (*of == KEPT) readable = trace->n_instances;
      }
      if (readable < latest[i]) latest[i] = readable;
    }
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      if (trace->accesses[a].write >= 0) writer[trace->accesses[a].buffer] = i;
    }
  }
  return NULL;
}

/* --- Finding what an instance reads ------------------------------------------------------------------------------- */

static bool resident(const run *r, const planc_access *access) {
  return planc_schedule_resident(r->schedule, access->buffer, access->read) >= 0;
}

/* Whether `access` finds its residency: the version it reads, or room for what it writes. A recompute must not write
 * over another version of the buffer that is still held. */
static bool has_place(const run *r, const planc_access *access, bool again) {
  if (access->read >= 0) return resident(r, access);
  int32_t open = planc_schedule_open(r->schedule, access->buffer);
  if (open < 0) return false;
  int32_t content = planc_schedule_content(r->schedule, open);
  return !again || content < 0 || content == access->write;
}

static planc_status exec(run *r, int32_t instance, bool again) {
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if ((again && access->effect) || has_place(r, access, again)) continue;
    int32_t residency;
    PLANC_TRY(planc_walk_open(r->walk, access->buffer, &residency));
    if (access->read >= 0) PLANC_TRY(planc_schedule_prefetch(r->schedule, residency, access->read));
    if (again) {
      VEC_PUSH(&r->stones, residency);
    } else {
      r->held[access->buffer] = residency;
    }
  }
  return planc_walk_exec(r->walk, instance, again);
}

/* Pushes the writer of what `access` reads, unless that is resident or can be copied in. */
static planc_status ask_for(run *r, const planc_access *access) {
  if (access->read < 0 || resident(r, access) || planc_schedule_on_host(r->schedule, access->buffer, access->read)) {
    return NULL;
  }
  VEC_PUSH(&r->stack, ((restore){.instance = planc_writer_of(r->trace, access->buffer, access->read)}));
  return NULL;
}

static planc_status ask_for_inputs(run *r, int32_t instance, bool again) {
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (!(again && access->effect)) PLANC_TRY(ask_for(r, access));
  }
  return NULL;
}

/* True when all that the writer makes and something still reads is there already: another path restored it. */
static bool already_restored(const run *r, int32_t instance) {
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (access->write < 0 || access->effect) continue;
    if (planc_schedule_resident(r->schedule, access->buffer, access->write) < 0) return false;
  }
  return true;
}

static planc_status run_restores(run *r) {
  while (r->stack.len) {
    restore *top = &r->stack.data[r->stack.len - 1];
    int32_t instance = top->instance;
    if (instance < 0) return planc_error(PLANC_INTERNAL, "a version that nothing writes is away without a copy");
    if (!top->expanded) {
      top->expanded = true;
      if (already_restored(r, instance)) {
        r->stack.len--;
        continue;
      }
      PLANC_TRY(ask_for_inputs(r, instance, true));
      continue;
    }
    r->stack.len--;
    if (!already_restored(r, instance)) PLANC_TRY(exec(r, instance, true));
  }
  return NULL;
}

/* The next access to the buffer, or NULL. */
static const planc_access *next_access(const run *r, int32_t buffer) {
  const planc_buffer *b = &r->trace->buffers[buffer];
  int32_t next = r->next[buffer];
  return next < b->first_access + b->n_accesses ? &r->trace->accesses[r->trace->by_buffer[next]] : NULL;
}

/* Closes what restores for `instance` opened on the way and is not to stay. */
static planc_status close_stones(run *r, int32_t instance) {
  const bool *brief = r->absences->brief;
  for (int64_t i = 0; i < r->stones.len; i++) {
    int32_t residency = r->stones.data[i];
    int32_t buffer = planc_schedule_residencies(r->schedule)[residency].buffer;
    int32_t version = planc_schedule_content(r->schedule, residency);
    const planc_access *next = next_access(r, buffer);
    bool twice = r->held[buffer] >= 0 && planc_schedule_content(r->schedule, r->held[buffer]) == version;
    bool still_read = next && next->read == version && (next->instance == instance || !brief || !brief[buffer]);
    if (!twice && still_read) {
      r->held[buffer] = residency;
    } else {
      PLANC_TRY(planc_walk_close(r->walk, residency));
    }
  }
  r->stones.len = 0;
  return NULL;
}

/* --- Coming and going --------------------------------------------------------------------------------------------- */

static planc_status fetch_ahead(run *r, int32_t instance) {
  for (int32_t k = r->fetches.first[instance]; k != NONE; k = r->fetches.also[k]) {
    const planc_absence *absence = &r->absences->items[k];
    int32_t version = planc_absence_wraps(absence) ? 0 : absence->version;
    if (r->held[absence->buffer] >= 0 || !planc_schedule_on_host(r->schedule, absence->buffer, version)) continue;
    PLANC_TRY(planc_walk_open(r->walk, absence->buffer, &r->held[absence->buffer]));
    PLANC_TRY(planc_schedule_prefetch(r->schedule, r->held[absence->buffer], version));
  }
  return NULL;
}

static planc_status copy_out(run *r, int32_t instance) {
  for (int32_t k = r->copies.first[instance]; k != NONE; k = r->copies.also[k]) {
    const planc_absence *absence = &r->absences->items[k];
    if (planc_schedule_on_host(r->schedule, absence->buffer, absence->version)) continue;
    int32_t residency = r->held[absence->buffer];
    PLANC_TRY(planc_schedule_offload(r->schedule, residency));
    if (!absence->wait) continue;
    PLANC_TRY(planc_schedule_await(r->schedule, PLANC_STREAM_COMPUTE, residency));
    PLANC_TRY(planc_schedule_await(r->schedule, PLANC_STREAM_H2D, residency));
  }
  return NULL;
}

static planc_status leave(run *r, int32_t buffer) {
  if (r->held[buffer] < 0) return NULL;
  PLANC_TRY(planc_walk_close(r->walk, r->held[buffer]));
  r->held[buffer] = NONE;
  return NULL;
}

static planc_status leave_after(run *r, int32_t instance) {
  for (int32_t k = r->leaves.first[instance]; k != NONE; k = r->leaves.also[k]) {
    PLANC_TRY(leave(r, r->absences->items[k].buffer));
  }
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a], *next = next_access(r, access->buffer);
    if (leaves_until_written(r->trace, r->restores, access, next)) PLANC_TRY(leave(r, access->buffer));
  }
  return NULL;
}

static planc_status close_dead(run *r, int32_t instance) {
  for (int32_t b = r->deaths.first[instance]; b != NONE; b = r->deaths.also[b]) {
    if (r->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) continue;
    int32_t residency = planc_schedule_open(r->schedule, b);
    if (residency < 0) continue;
    if (r->trace->buffers[b].flags & PLANC_BUFFER_RESULT) PLANC_TRY(planc_schedule_deliver(r->schedule, residency));
    PLANC_TRY(planc_walk_close(r->walk, residency));
    r->held[b] = NONE;
  }
  return NULL;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

static planc_status run_instance(run *r, int32_t instance) {
  const planc_instance *in = &r->trace->instances[instance];
  PLANC_TRY(fetch_ahead(r, instance));
  PLANC_TRY(ask_for_inputs(r, instance, false));
  PLANC_TRY(run_restores(r));
  PLANC_TRY(close_stones(r, instance));
  PLANC_TRY(exec(r, instance, false));
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    r->next[r->trace->accesses[a].buffer]++;
  }
  PLANC_TRY(copy_out(r, instance));
  PLANC_TRY(leave_after(r, instance));
  return close_dead(r, instance);
}

static planc_status new_agenda(agenda *a, planc_arena *arena, int32_t n_instances, int64_t n_items) {
  PLANC_TRY(PLANC_NEW(arena, &a->first, n_instances));
  for (int32_t i = 0; i < n_instances; i++) a->first[i] = NONE;
  return PLANC_NEW(arena, &a->also, n_items);
}

static void enter(agenda *a, int32_t instance, int32_t item) {
  a->also[item] = a->first[instance];
  a->first[instance] = item;
}

/* Entered last to first, so that every instance meets its items in their order. */
static planc_status make_agendas(run *r, planc_arena *arena) {
  const planc_absences *absences = r->absences;
  int32_t n_instances = r->trace->n_instances;
  if (absences->n > INT32_MAX) return planc_error(PLANC_INTERNAL, "more than %d absences", INT32_MAX);
  PLANC_TRY(new_agenda(&r->copies, arena, n_instances, absences->n));
  PLANC_TRY(new_agenda(&r->leaves, arena, n_instances, absences->n));
  PLANC_TRY(new_agenda(&r->fetches, arena, n_instances, absences->n));
  PLANC_TRY(new_agenda(&r->deaths, arena, n_instances, r->trace->n_buffers));
  for (int32_t k = (int32_t)absences->n - 1; k >= 0; k--) {
    const planc_absence *absence = &absences->items[k];
    if (absence->copy != PLANC_NO_COPY) enter(&r->copies, absence->copy, k);
    enter(&r->leaves, absence->leave, k);
    enter(&r->fetches, absence->fetch, k);
  }
  for (int32_t b = r->trace->n_buffers - 1; b >= 0; b--) {
    int32_t last = absences->until ? absences->until[b] : planc_last_instance(r->trace, b);
    if (last != NONE) enter(&r->deaths, last, b);
  }
  return NULL;
}

static planc_status open_boundary(run *r, planc_arena *arena) {
  bool *parked;
  PLANC_TRY(PLANC_NEW(arena, &parked, r->trace->n_buffers));
  for (int64_t k = 0; k < r->absences->n; k++) {
    if (planc_absence_wraps(&r->absences->items[k])) parked[r->absences->items[k].buffer] = true;
  }
  return planc_walk_boundary(r->walk, parked);
}

static planc_status run_trace(run *r, planc_arena *arena) {
  PLANC_TRY(open_boundary(r, arena));
  PLANC_TRY(PLANC_NEW(arena, &r->held, r->trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &r->next, r->trace->n_buffers));
  PLANC_TRY(make_agendas(r, arena));
  for (int32_t b = 0; b < r->trace->n_buffers; b++) {
    r->held[b] = planc_schedule_open(r->schedule, b);
    r->next[b] = r->trace->buffers[b].first_access;
  }
  for (int32_t i = 0; i < r->trace->n_instances; i++) PLANC_TRY(run_instance(r, i));
  return planc_schedule_finish(r->schedule);
}

planc_status planc_walk_absences(planc_walk *walk, const planc_absences *absences) {
  run r = {.restores = are_restored(absences),
           .walk = walk,
           .trace = walk->trace,
           .schedule = walk->schedule,
           .absences = absences};
  planc_arena arena = {0};
  planc_status status = run_trace(&r, &arena);
  planc_arena_free(&arena);
  VEC_FREE(&r.stack);
  VEC_FREE(&r.stones);
  return status;
}

planc_status planc_make_absences(const planc_problem *problem, const void *rule, int64_t room, planc_candidate *out) {
  const planc_absence_rule *of = rule;
  planc_walk walk;
  PLANC_TRY(planc_walk_start(&walk, problem, problem->sub_batch ? problem->sub_batch : problem->batch, room, out));
  planc_arena arena = {0};
  planc_absences absences = {0};
  planc_online online = {.handles = {0}};
  planc_status status = of->choose(of->context, &walk, &arena, &absences);
  if (of->online) walk.online = &online;
  if (!status && of->online) status = planc_online_init(&online, problem);
  if (!status) status = planc_walk_absences(&walk, &absences);
  planc_online_free(&online);
  planc_arena_free(&arena);
  return status;
}
