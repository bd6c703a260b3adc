/* What `tensile` computes again (papers/002, IV-D; tensile.c): of the stretches around the peak the one that saves most
 * memory per second (MSPS, Eq. 4), until the room suffices. The writer must find all that it reads on the device: only
 * what was never released and lives until then, so that no recompute waits for another, or for a swap. A tensor that is
 * swapped anywhere is not computed again. As in the authors' program the time of a recompute does not move what was
 * planned before. */
#include "planner/choose/recompute.h"
#include "planner/policies/tensile.h"
#include "util/math.h"

enum { SECOND = 1000000000 };

static const planc_access *access_at(const tensile *t, int32_t position) {
  return &t->trace->accesses[t->trace->by_buffer[position]];
}

static tensile_tensor *tensor_read(const tensile *t, const planc_access *access) {
  return &t->tensors[t->first_tensor[access->buffer] + access->read];
}

/* Whether an input of a recompute ahead of instance `to` is there. */
static bool stays(const tensile *t, const planc_access *access, int32_t buffer, int32_t to) {
  if (access->effect || access->read < 0) return true;
  if (access->buffer == buffer || tensor_read(t, access)->released) return false;
  bool persists = t->trace->buffers[access->buffer].flags & PLANC_BUFFER_PERSISTENT;
  return persists || access_at(t, tensor_read(t, access)->last)->instance >= to;
}

static planc_status take_recompute(tensile *t, tensile_stretch *stretch, int32_t peak, bool *out_taken) {
  (void)peak;
  tensile_tensor *tensor = &t->tensors[stretch->tensor];
  const planc_instance *writer = &t->trace->instances[access_at(t, tensor->first)->instance];
  const planc_access *accesses = &t->trace->accesses[writer->first_access];
  bool possible = !tensor->needed;
  for (int32_t a = 0; possible && a < writer->n_accesses; a++)
    possible = stays(t, &accesses[a], tensor->buffer, stretch->to);
  *out_taken = possible;
  if (!possible) {
    stretch->state = TENSILE_HOPELESS;
    return NULL;
  }
  for (int32_t a = 0; a < writer->n_accesses; a++) {
    if (!accesses[a].effect && accesses[a].read >= 0) tensor_read(t, &accesses[a])->needed = true;
  }
  tensor->released = true;
  stretch->state = TENSILE_TAKEN;
  stretch->in_start = t->predicted.start[stretch->to];
  stretch->absence = (planc_absence){.buffer = tensor->buffer,
                                     .version = tensor->version,
                                     .copy = PLANC_NO_COPY,
                                     .leave = stretch->from,
                                     .fetch = stretch->to};
  planc_peaks_add(&t->predicted.peaks, stretch->from + 1, stretch->to - 1, -stretch->bytes);
  return NULL;
}

planc_status tensile_recompute(tensile *t, int32_t peak, bool *out_taken) {
  return tensile_take_first(t, &t->by_saving, peak, take_recompute, out_taken);
}

/* A stretch that no swap found time for may be computed again all the same. */
static bool is_candidate(const tensile *t, const int32_t *latest, const tensile_stretch *stretch) {
  const tensile_tensor *tensor = &t->tensors[stretch->tensor];
  if (stretch->wraps || tensor->released || access_at(t, tensor->first)->write != tensor->version) return false;
  return planc_can_drop(t->trace, latest, tensor->buffer);
}

planc_status tensile_set_up_recomputes(tensile *t, planc_arena *arena) {
  int32_t *latest;
  tensile_rank *ranks;
  int32_t n = 0;
  PLANC_TRY(PLANC_NEW(arena, &latest, t->trace->n_instances));
  PLANC_TRY(PLANC_NEW(arena, &ranks, t->n));
  PLANC_TRY(planc_mark_restorable(t->trace, false, arena, latest));
  for (int32_t k = 0; k < t->n; k++) {
    tensile_stretch *stretch = &t->stretches[k];
    if (stretch->state == TENSILE_TAKEN || !is_candidate(t, latest, stretch)) continue;
    int32_t writer = access_at(t, t->tensors[stretch->tensor].first)->instance;
    int64_t ns = t->predicted.start[writer + 1] - t->predicted.start[writer];
    stretch->state = TENSILE_OPEN;
    stretch->waits = false;
    stretch->relieves = (planc_cover){stretch->from, stretch->to};
    ranks[n++] = (tensile_rank){planc_muldiv_floor(stretch->bytes, SECOND, ns > 0 ? ns : 1), k};
  }
  return tensile_make_list(t, arena, ranks, n, &t->by_saving);
}
