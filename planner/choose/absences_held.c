/* The bytes that absences leave on the device (absences.h). */
#include "planner/choose/absences.h"
#include "planner/choose/restorable.h"
#include "util/math.h"

enum { NONE = -1 };

bool pl_absences_restore(const pl_absences *absences) {
  if (absences->restores) return true;
  for (int64_t k = 0; k < absences->n; k++)
    if (absences->items[k].copy == PL_NO_COPY) return true;
  return false;
}

bool pl_leaves_until_written(const planc_trace *trace, bool restores, const planc_access *from,
                             const planc_access *next) {
  if (!next || next->read >= 0) return false;
  if (!restores) return true;
  int32_t version = from->write >= 0 ? from->write : from->read;
  bool persistent = trace->buffers[from->buffer].flags & PLANC_BUFFER_PERSISTENT;
  return !persistent && pl_writer_of(trace, from->buffer, version) != NONE;
}

/* Adds `bytes` to the positions `from` to `to`, both included; `held` holds differences. */
static void add_span(int64_t *held, int32_t n_positions, int64_t from, int64_t to, int64_t bytes) {
  if (from > to) return;
  held[from] += bytes;
  if (to + 1 < n_positions) held[to + 1] -= bytes;
}

static void add_buffer(const planc_order *order, int32_t b, const int32_t *until, bool restores, int64_t *held) {
  const planc_buffer *buffer = &order->trace->buffers[b];
  int32_t first = order->first_use[b], end = order->first_use[b + 1];
  int64_t bytes = pl_walk_bytes(buffer);
  if (buffer->flags & PLANC_BUFFER_PERSISTENT) {
    add_span(held, order->n, 0, order->n - 1, bytes);
  } else if (first < end) {
    add_span(held, order->n, order->uses[first].position, until ? until[b] : order->uses[end - 1].position, bytes);
  }
  for (int32_t u = first; u + 1 < end; u++) {
    if (pl_leaves_until_written(order->trace, restores, planc_order_access(order, u), planc_order_access(order, u + 1)))
      add_span(held, order->n, (int64_t)order->uses[u].position + 1, (int64_t)order->uses[u + 1].position - 1, -bytes);
  }
}

planc_status pl_absences_held(const planc_order *order, const pl_absences *absences, int64_t *held) {
  const planc_trace *trace = order->trace;
  int64_t sum = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    sum = pl_add_saturate(sum, pl_walk_bytes(&trace->buffers[b]));
  }
  if (sum > INT64_MAX / 4) return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
  for (int32_t p = 0; p < order->n; p++) held[p] = 0;
  bool restores = pl_absences_restore(absences);
  for (int32_t b = 0; b < trace->n_buffers; b++) add_buffer(order, b, absences->until, restores, held);
  for (int64_t k = 0; k < absences->n; k++) {
    const pl_absence *a = &absences->items[k];
    int64_t bytes = pl_walk_bytes(&trace->buffers[a->buffer]);
    if (a->leave < 0) { /* it comes ahead of its first use */
      add_span(held, order->n, a->fetch, (int64_t)planc_order_first(order, a->buffer) - 1, bytes);
      continue;
    }
    int64_t end = a->fetch < order->n && !pl_absence_wraps(a) ? a->fetch : order->n;
    add_span(held, order->n, (int64_t)a->leave + 1, end - 1, -bytes);
    if (pl_absence_wraps(a)) add_span(held, order->n, 0, (int64_t)a->fetch - 1, -bytes);
  }
  for (int32_t p = 1; p < order->n; p++) held[p] += held[p - 1];
  return NULL;
}

planc_status pl_absences_fit(const planc_order *order, const pl_absences *absences, const int64_t *workspace,
                             int64_t room, int64_t *held, bool *out_fit) {
  PLANC_TRY(pl_absences_held(order, absences, held));
  *out_fit = true;
  for (int32_t p = 0; *out_fit && p < order->n; p++) *out_fit = pl_add_saturate(held[p], workspace[p]) <= room;
  return NULL;
}
