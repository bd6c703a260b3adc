/* How long each instance can run again (restorable.h): as long as what it reads is there or can be restored. */
#include "planner/choose/restorable.h"

#include "util/math.h"

enum { NONE = -1 };

/* Versions ascend along a buffer's accesses. */
int32_t pl_writer_of(const planc_trace *trace, int32_t buffer, int32_t version) {
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

static bool is_given(const planc_trace *trace, int32_t buffer) {
  return trace->buffers[buffer].flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED);
}

/* Per access of a persistent or fed buffer: the first position at which what it reads is overwritten, which may be its
 * own; the number of positions where nothing does. */
static planc_status find_changes(const planc_order *order, pl_arena *arena, int32_t **out) {
  const planc_trace *trace = order->trace;
  int32_t *next;
  PLANC_TRY(PL_NEW(arena, &next, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, out, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) next[b] = order->n;
  for (int32_t p = order->n - 1; p >= 0; p--) {
    const planc_instance *in = planc_order_instance(order, p);
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      if (trace->accesses[a].write >= 0) next[trace->accesses[a].buffer] = p;
      (*out)[a] = next[trace->accesses[a].buffer];
    }
  }
  return NULL;
}

bool pl_can_drop(const planc_order *order, const int32_t *latest, int32_t buffer) {
  const planc_buffer *b = &order->trace->buffers[buffer];
  if (b->kind != PLANC_KIND_activation && b->kind != PLANC_KIND_temp && b->kind != PLANC_KIND_grad) return false;
  if (b->flags & PLANC_BUFFER_RESULT) return false;
  for (int32_t u = order->first_use[buffer]; u < order->first_use[buffer + 1]; u++) {
    const planc_access *access = planc_order_access(order, u);
    if (access->write >= 0 && latest[access->instance] < planc_order_last(order, buffer)) return false;
  }
  return true;
}

static bool runs_again(const planc_trace *trace, int32_t instance, pl_kept kept);
static bool is_kept(const planc_buffer *buffer);

planc_status pl_mark_restorable(const planc_order *order, pl_kept kept, pl_arena *arena, int32_t *latest) {
  enum { UNKNOWN, DROPPED, KEPT };
  const planc_trace *trace = order->trace;
  int32_t *writer, *changes;
  uint8_t *fate; /* per buffer, once its last version is read */
  PLANC_TRY(PL_NEW(arena, &writer, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &fate, trace->n_buffers));
  PLANC_TRY(find_changes(order, arena, &changes));
  for (int32_t b = 0; b < trace->n_buffers; b++) writer[b] = NONE;
  for (int32_t p = 0; p < order->n; p++) {
    int32_t i = order->runs[p].instance;
    const planc_instance *in = &trace->instances[i];
    latest[i] = runs_again(trace, i, kept) ? order->n : NONE;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      if (access->effect || access->read < 0) continue;
      int32_t from = writer[access->buffer];
      int32_t readable = is_given(trace, access->buffer) ? changes[a] : from >= 0 ? latest[from] : NONE;
      if (kept == PL_KEPT_ANYTHING && is_kept(&trace->buffers[access->buffer]) && changes[a] == order->n)
        readable = order->n;
      if (kept == PL_KEPT_UNDROPPED && !is_given(trace, access->buffer) && changes[a] == order->n) {
        uint8_t *of = &fate[access->buffer];
        if (*of == UNKNOWN) *of = pl_can_drop(order, latest, access->buffer) ? DROPPED : KEPT;
        if (*of == KEPT) readable = order->n;
      }
      if (readable < latest[i]) latest[i] = readable;
    }
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      if (trace->accesses[a].write >= 0) writer[trace->accesses[a].buffer] = i;
    }
  }
  return NULL;
}

static bool makes_much(const planc_trace *trace, int32_t instance);

static bool runs_again(const planc_trace *trace, int32_t instance, pl_kept kept) {
  bool forward = planc_trace_phase(trace, instance) == PLANC_PHASE_forward;
  if (!forward && (kept != PL_KEPT_ANYTHING || !makes_much(trace, instance))) return false;
  return planc_trace_recomputable(trace, instance);
}

/* As the op does that makes the gradient of a fully connected layer; what is given is there anyway. Other results are
 * not worth what is kept for them. */
static bool makes_much(const planc_trace *trace, int32_t instance) {
  enum { MUCH = 4 };
  const planc_instance *in = &trace->instances[instance];
  int64_t made = 0, read = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    const planc_buffer *buffer = &trace->buffers[access->buffer];
    if (access->effect) continue;
    if (access->write >= 0) made = pl_add_saturate(made, buffer->bytes);
    if (access->read >= 0 && !is_given(trace, access->buffer)) read = pl_add_saturate(read, buffer->bytes);
  }
  return made / MUCH > read;
}

static bool is_kept(const planc_buffer *buffer) {
  return !(buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED | PLANC_BUFFER_RESULT));
}
