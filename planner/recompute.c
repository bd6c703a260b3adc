/* Recompute: a version that is not resident is restored by running its writer again, whose own inputs may first have to
 * be restored. What a recompute brings back stays until its last access when the rest of the iteration reads it, and
 * goes as soon as the recompute is done when it was only a stepping stone. */
#include "planner/recompute.h"

#include "planner/walk.h"
#include "util/arena.h"
#include "util/vec.h"

typedef struct restore {
  int32_t instance;
  bool expanded; /* its inputs have been asked for */
} restore;

typedef struct recompute {
  planc_walk walk;
  bool *keep;
  bool *restorable; /* per instance */
  int32_t *held;    /* per buffer: the residency that stays until the buffer is dropped or dead, -1 = none */
  int32_t *next;    /* per buffer: its next access in the trace, index into by_buffer */
  int32_t *until;   /* per buffer: the instance after which it is closed */
  int32_t *closing; /* per instance: the first buffer to close after it, -1 = none; others by `also` */
  int32_t *also;    /* per buffer */
  VEC(restore) stack;
  VEC(int32_t) stones; /* residencies that restores opened */
} recompute;

static planc_phase phase_of(const planc_trace *trace, int32_t instance) {
  return planc_trace_op(trace, instance)->phase;
}

/* The instance that writes `version` of `buffer`. */
static int32_t writer_of(const planc_trace *trace, int32_t buffer, int32_t version) {
  const planc_buffer *b = &trace->buffers[buffer];
  for (int32_t i = b->first_access; i < b->first_access + b->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    if (access->write == version) return access->instance;
  }
  return -1;
}

/* True when something before the optimizer writes the buffer after `version`. */
static bool overwritten(const planc_trace *trace, int32_t buffer, int32_t version) {
  const planc_buffer *b = &trace->buffers[buffer];
  for (int32_t i = b->first_access; i < b->first_access + b->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    if (access->write > version && phase_of(trace, access->instance) != PLANC_PHASE_optimizer) return true;
  }
  return false;
}

/* Marks the forward instances that can be run again at any time before the optimizer: what they read of persistent and
 * fed buffers is still the same, and of others, which may be dead by then, the writer can be run again. */
static void mark_restorable(const planc_trace *trace, bool *restorable) {
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *in = &trace->instances[i];
    restorable[i] = phase_of(trace, i) == PLANC_PHASE_forward && planc_trace_recomputable(trace, i);
    for (int32_t a = in->first_access; restorable[i] && a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      if (access->effect || access->read < 0) continue;
      if (trace->buffers[access->buffer].flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED)) {
        restorable[i] = !overwritten(trace, access->buffer, access->read);
      } else {
        int32_t writer = writer_of(trace, access->buffer, access->read);
        restorable[i] = writer >= 0 && writer < i && restorable[writer];
      }
    }
  }
}

/* A buffer can be dropped when every writer of it can be run again, and nothing asks for it once the optimizer changes
 * what the writers read. */
static bool can_drop(const planc_trace *trace, const bool *restorable, int32_t buffer) {
  const planc_buffer *b = &trace->buffers[buffer];
  if (b->kind != PLANC_KIND_activation && b->kind != PLANC_KIND_temp) return false;
  if (b->flags & PLANC_BUFFER_RESULT) return false;
  for (int32_t i = b->first_access; i < b->first_access + b->n_accesses; i++) {
    const planc_access *access = &trace->accesses[trace->by_buffer[i]];
    if (access->write >= 0 && !restorable[access->instance]) return false;
    if (phase_of(trace, access->instance) == PLANC_PHASE_optimizer) return false;
  }
  return true;
}

static bool resident(const recompute *r, const planc_access *access) {
  return planc_schedule_resident(r->walk.schedule, access->buffer, access->read) >= 0;
}

/* Whether the rest of the trace accesses the buffer. */
static bool accessed_later(const recompute *r, int32_t buffer) {
  const planc_buffer *b = &r->walk.trace->buffers[buffer];
  return r->next[buffer] < b->first_access + b->n_accesses;
}

/* Whether `access` finds its residency: the version it reads, or room for what it writes. A recompute must not write
 * over another version of the buffer that is still held. */
static bool has_place(const recompute *r, const planc_access *access, bool again) {
  if (access->read >= 0) return resident(r, access);
  int32_t open = planc_schedule_open(r->walk.schedule, access->buffer);
  if (open < 0) return false;
  int32_t content = planc_schedule_content(r->walk.schedule, open);
  return !again || content < 0 || content == access->write;
}

static planc_status exec(recompute *r, int32_t instance, bool again) {
  const planc_instance *in = &r->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->walk.trace->accesses[a];
    if ((again && access->effect) || has_place(r, access, again)) continue;
    int32_t residency;
    PLANC_TRY(planc_walk_open(&r->walk, access->buffer, &residency));
    if (access->read >= 0) PLANC_TRY(planc_schedule_prefetch(r->walk.schedule, residency, access->read));
    if (again) {
      VEC_PUSH(&r->stones, residency);
    } else {
      r->held[access->buffer] = residency;
    }
  }
  return planc_walk_exec(&r->walk, instance, again);
}

/* Pushes the writer of what `access` reads, unless that is resident or comes from the user. */
static planc_status ask_for(recompute *r, const planc_access *access) {
  if (access->read < 0 || resident(r, access) ||
      planc_schedule_on_host(r->walk.schedule, access->buffer, access->read)) {
    return NULL;
  }
  int32_t writer = writer_of(r->walk.trace, access->buffer, access->read);
  VEC_PUSH(&r->stack, ((restore){.instance = writer}));
  return NULL;
}

/* Restores everything `instance` reads. */
static planc_status restore_inputs(recompute *r, int32_t instance, bool again) {
  const planc_instance *in = &r->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->walk.trace->accesses[a];
    if (!(again && access->effect)) PLANC_TRY(ask_for(r, access));
  }
  return NULL;
}

/* True when all that the writer makes and something still reads is there already: another path restored it. */
static bool already_restored(const recompute *r, int32_t instance) {
  const planc_instance *in = &r->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->walk.trace->accesses[a];
    if (access->write < 0 || access->effect) continue;
    if (planc_schedule_resident(r->walk.schedule, access->buffer, access->write) < 0) return false;
  }
  return true;
}

static planc_status run_restores(recompute *r) {
  while (r->stack.len) {
    restore *top = &r->stack.data[r->stack.len - 1];
    int32_t instance = top->instance;
    if (!top->expanded) {
      top->expanded = true;
      if (already_restored(r, instance)) {
        r->stack.len--;
        continue;
      }
      PLANC_TRY(restore_inputs(r, instance, true));
      continue;
    }
    r->stack.len--;
    if (!already_restored(r, instance)) PLANC_TRY(exec(r, instance, true));
  }
  return NULL;
}

/* True when the next access to the buffer reads this version. */
static bool still_read(const recompute *r, int32_t buffer, int32_t version) {
  const planc_buffer *b = &r->walk.trace->buffers[buffer];
  int32_t next = r->next[buffer];
  return next < b->first_access + b->n_accesses &&
         r->walk.trace->accesses[r->walk.trace->by_buffer[next]].read == version;
}

/* Closes what restores opened on the way and nothing reads any more. */
static planc_status close_stones(recompute *r) {
  for (int64_t i = 0; i < r->stones.len; i++) {
    int32_t residency = r->stones.data[i];
    int32_t buffer = planc_schedule_residencies(r->walk.schedule)[residency].buffer;
    int32_t version = planc_schedule_content(r->walk.schedule, residency);
    bool twice = r->held[buffer] >= 0 && planc_schedule_content(r->walk.schedule, r->held[buffer]) == version;
    if (!twice && still_read(r, buffer, version)) {
      r->held[buffer] = residency;
      continue;
    }
    PLANC_TRY(planc_walk_close(&r->walk, residency));
  }
  r->stones.len = 0;
  return NULL;
}

/* After a forward op: drops what is not kept and no later forward op reads. */
static planc_status drop_after(recompute *r, int32_t instance) {
  const planc_instance *in = &r->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = r->walk.trace->accesses[a].buffer;
    if (r->keep[buffer] || !accessed_later(r, buffer)) continue;
    const planc_access *next = &r->walk.trace->accesses[r->walk.trace->by_buffer[r->next[buffer]]];
    if (phase_of(r->walk.trace, next->instance) == PLANC_PHASE_forward) continue;
    PLANC_TRY(planc_walk_close(&r->walk, r->held[buffer]));
    r->held[buffer] = -1;
  }
  return NULL;
}

/* An op with one output to keep keeps all: it would have to run again for the others. */
static void keep_whole_ops(const planc_trace *trace, bool *keep) {
  for (int32_t i = 0; i < trace->n_instances && phase_of(trace, i) != PLANC_PHASE_optimizer; i++) {
    const planc_instance *in = &trace->instances[i];
    bool any = false;
    for (int32_t pass = 0; pass < 2; pass++) {
      for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
        const planc_access *access = &trace->accesses[a];
        if (access->write < 0 || access->effect) continue;
        any |= keep[access->buffer];
        if (pass == 1) keep[access->buffer] |= any;
      }
    }
  }
}

/* A kept buffer lives until its last access, and until the last access of whatever is dropped and restored from it. */
static void mark_ends(recompute *r) {
  const planc_trace *trace = r->walk.trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    r->until[b] = trace->accesses[trace->by_buffer[buffer->first_access + buffer->n_accesses - 1]].instance;
    r->also[b] = r->until[b]; /* the own last access, until the lists are made */
  }
  for (int32_t i = trace->n_instances - 1; i >= 0; i--) {
    const planc_instance *in = &trace->instances[i];
    if (phase_of(trace, i) != PLANC_PHASE_forward) continue;
    int32_t needed = -1;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      bool dropped = access->write >= 0 && !access->effect && !r->keep[access->buffer];
      if (dropped && r->until[access->buffer] > needed) needed = r->until[access->buffer];
    }
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      bool read = access->read >= 0 && !access->effect;
      if (read && needed > r->until[access->buffer]) r->until[access->buffer] = needed;
    }
  }
  for (int32_t i = 0; i < trace->n_instances; i++) r->closing[i] = -1;
  for (int32_t b = trace->n_buffers - 1; b >= 0; b--) {
    int32_t end = r->keep[b] ? r->until[b] : r->also[b];
    r->also[b] = r->closing[end];
    r->closing[end] = b;
  }
}

static planc_status close_dead(recompute *r, int32_t instance) {
  for (int32_t b = r->closing[instance]; b >= 0; b = r->also[b]) {
    if (r->walk.trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) continue;
    int32_t residency = planc_schedule_open(r->walk.schedule, b);
    if (residency < 0) continue;
    if (r->walk.trace->buffers[b].flags & PLANC_BUFFER_RESULT) {
      PLANC_TRY(planc_schedule_deliver(r->walk.schedule, residency));
    }
    PLANC_TRY(planc_walk_close(&r->walk, residency));
  }
  return NULL;
}

static planc_status run_task(recompute *r, int32_t instance) {
  const planc_instance *in = &r->walk.trace->instances[instance];
  PLANC_TRY(restore_inputs(r, instance, false));
  PLANC_TRY(run_restores(r));
  PLANC_TRY(close_stones(r));
  PLANC_TRY(exec(r, instance, false));
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    r->next[r->walk.trace->accesses[a].buffer]++;
  }
  if (phase_of(r->walk.trace, instance) == PLANC_PHASE_forward) PLANC_TRY(drop_after(r, instance));
  return close_dead(r, instance);
}

static planc_status run_trace(recompute *r, planc_keep_rule rule) {
  PLANC_TRY(rule(r->walk.trace, r->keep));
  keep_whole_ops(r->walk.trace, r->keep);
  mark_restorable(r->walk.trace, r->restorable);
  for (int32_t b = 0; b < r->walk.trace->n_buffers; b++) {
    r->keep[b] |= !can_drop(r->walk.trace, r->restorable, b);
    r->next[b] = r->walk.trace->buffers[b].first_access;
    r->held[b] = -1;
  }
  mark_ends(r);
  for (int32_t i = 0; i < r->walk.trace->n_instances; i++) PLANC_TRY(run_task(r, i));
  return planc_schedule_finish(r->walk.schedule);
}

static planc_status set_up(recompute *r, planc_arena *arena) {
  int32_t n_buffers = r->walk.trace->n_buffers, n_instances = r->walk.trace->n_instances;
  PLANC_TRY(PLANC_NEW(arena, &r->keep, n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &r->restorable, n_instances));
  PLANC_TRY(PLANC_NEW(arena, &r->held, n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &r->next, n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &r->until, n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &r->also, n_buffers));
  return PLANC_NEW(arena, &r->closing, n_instances);
}

static planc_status make(const planc_problem *problem, const void *context, int64_t room, planc_candidate *out) {
  const planc_keep_rule *rule = context;
  recompute r = {0};
  planc_arena arena = {0};
  PLANC_TRY(planc_walk_start(&r.walk, problem, problem->sub_batch ? problem->sub_batch : problem->batch, room, out));
  planc_status status = set_up(&r, &arena);
  if (!status) status = run_trace(&r, *rule);
  planc_arena_free(&arena);
  VEC_FREE(&r.stack);
  VEC_FREE(&r.stones);
  return status;
}

planc_status planc_recompute_plan(const planc_problem *problem, planc_keep_rule rule, planc_candidate *out) {
  return planc_walk_fit(problem, make, &rule, out);
}
