/* What `tensile` computes again (papers/002, IV-D; tensile.c): of the gaps around the peak the one that saves most
 * memory per second (MSPS, Eq. 4), until the room suffices. The writer must find all that it reads on the device: only
 * what was never released and lives until then, so that no recompute waits for another, or for a swap. A tensor that is
 * swapped anywhere is not computed again. As in the authors' program the time of a recompute does not move what was
 * planned before. */
#include "planner/choose/restorable.h"
#include "planner/policies/tensile.h"
#include "util/math.h"

enum { SECOND = 1000000000 };

static planc_status take_recompute(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken);

planc_status tensile_recompute(tensile *t, int32_t peak, bool *out_taken) {
  return tensile_take_first(t, &t->by_saving, peak, take_recompute, out_taken);
}

static tensile_tensor *tensor_read(const tensile *t, const planc_access *access) {
  return &t->tensors[t->first_tensor[access->buffer] + access->read];
}

/* Whether an input of a recompute ahead of position `to` is there. */
static bool stays(const tensile *t, const planc_access *access, int32_t buffer, int32_t to) {
  if (access->effect || access->read < 0) return true;
  if (access->buffer == buffer || tensor_read(t, access)->released) return false;
  bool persists = t->trace->buffers[access->buffer].flags & PLANC_BUFFER_PERSISTENT;
  return persists || t->order->uses[tensor_read(t, access)->last].position >= to;
}

static planc_status take_recompute(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken) {
  (void)peak;
  tensile_tensor *tensor = &t->tensors[gap->tensor];
  const planc_instance *writer = planc_order_instance(t->order, t->order->uses[tensor->first].position);
  const planc_access *accesses = &t->trace->accesses[writer->first_access];
  bool possible = !tensor->needed;
  for (int32_t a = 0; possible && a < writer->n_accesses; a++)
    possible = stays(t, &accesses[a], tensor->buffer, gap->to);
  *out_taken = possible;
  if (!possible) {
    gap->state = TENSILE_HOPELESS;
    return NULL;
  }
  for (int32_t a = 0; a < writer->n_accesses; a++) {
    if (!accesses[a].effect && accesses[a].read >= 0) tensor_read(t, &accesses[a])->needed = true;
  }
  tensor->released = true;
  t->n_recomputed++;
  gap->state = TENSILE_TAKEN;
  gap->in_start = t->unswapped.start[gap->to];
  gap->absence = (pl_absence){
      .buffer = tensor->buffer, .version = tensor->version, .copy = PL_NO_COPY, .leave = gap->from, .fetch = gap->to};
  pl_peaks_add(&t->unswapped.peaks, gap->from + 1, gap->to - 1, -gap->bytes);
  return NULL;
}

/* A gap that no swap found time for may be computed again all the same. */
static bool is_candidate(const tensile *t, const int32_t *latest, const tensile_gap *gap) {
  const tensile_tensor *tensor = &t->tensors[gap->tensor];
  if (gap->wraps || tensor->released || planc_order_access(t->order, tensor->first)->write != tensor->version)
    return false;
  return pl_can_drop(t->order, latest, tensor->buffer);
}

planc_status tensile_set_up_recomputes(tensile *t, pl_arena *arena) {
  int32_t *latest;
  tensile_rank *ranks;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(arena, &latest, t->trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &ranks, t->n));
  PLANC_TRY(pl_mark_restorable(t->order, false, arena, latest));
  for (int32_t k = 0; k < t->n; k++) {
    tensile_gap *gap = &t->gaps[k];
    if (gap->state == TENSILE_TAKEN || !is_candidate(t, latest, gap)) continue;
    int32_t writer = t->order->uses[t->tensors[gap->tensor].first].position;
    int64_t ns = t->unswapped.start[writer + 1] - t->unswapped.start[writer];
    gap->state = TENSILE_OPEN;
    gap->waits = false;
    gap->relieves = (pl_cover){gap->from, gap->to};
    ranks[n++] = (tensile_rank){pl_muldiv_floor(gap->bytes, SECOND, ns > 0 ? ns : 1), k};
  }
  return tensile_make_list(t, arena, ranks, n, &t->by_saving);
}
