/* Recompute: a version that is not resident is restored by running its writer again, whose own inputs may first have to
 * be restored. What a recompute brings back stays until its last access when the rest of the iteration reads it, and
 * goes as soon as the recompute is done when it was only a stepping stone. */
#include "planner/recompute.h"

#include <stdlib.h>

#include "planner/walk.h"
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
  return planc_walk_close_dead(&r->walk, instance);
}

static planc_status run_trace(recompute *r, planc_keep_rule rule) {
  PLANC_TRY(rule(r->walk.trace, r->keep));
  mark_restorable(r->walk.trace, r->restorable);
  for (int32_t b = 0; b < r->walk.trace->n_buffers; b++) {
    r->keep[b] |= !can_drop(r->walk.trace, r->restorable, b);
    r->next[b] = r->walk.trace->buffers[b].first_access;
    r->held[b] = -1;
  }
  for (int32_t i = 0; i < r->walk.trace->n_instances; i++) PLANC_TRY(run_task(r, i));
  return planc_schedule_finish(r->walk.schedule);
}

static planc_status make(const planc_problem *problem, const void *context, int64_t room, planc_candidate *out) {
  const planc_keep_rule *rule = context;
  recompute r = {0};
  PLANC_TRY(planc_walk_start(&r.walk, problem, problem->sub_batch ? problem->sub_batch : problem->batch, room, out));
  r.keep = calloc((size_t)out->trace->n_buffers + 1, sizeof *r.keep);
  r.next = calloc((size_t)out->trace->n_buffers + 1, sizeof *r.next);
  r.held = calloc((size_t)out->trace->n_buffers + 1, sizeof *r.held);
  r.restorable = calloc((size_t)out->trace->n_instances + 1, sizeof *r.restorable);
  planc_status status = r.keep && r.next && r.held && r.restorable ? run_trace(&r, *rule)
                                                                   : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  free(r.keep);
  free(r.restorable);
  free(r.held);
  free(r.next);
  VEC_FREE(&r.stack);
  VEC_FREE(&r.stones);
  return status;
}

planc_status planc_recompute_plan(const planc_problem *problem, planc_keep_rule rule, planc_candidate *out) {
  return planc_walk_fit(problem, make, &rule, out);
}
