/* What `tensile` computes again (papers/002, IV-D; tensile.c): of the gaps around the peak the one that saves most
 * memory per second (MSPS, Eq. 4), until the room suffices. The writer must find all that it reads on the device: only
 * what was never released and lives until then, so that no recompute waits for another, or for a swap. A version that
 * is swapped anywhere is not computed again. As in the authors' program the time of a recompute does not move what was
 * planned before. */
#include "planner/policies/tensile.h"

static planc_status take_recompute(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken);

planc_status tensile_recompute(tensile *t, int32_t peak, bool *out_taken) {
  return tensile_take_first(t, &t->by_saving, peak, take_recompute, out_taken);
}

static tensile_version *version_read(const tensile *t, const planc_access *access) {
  return &t->versions[t->first_version[access->buffer] + access->read];
}

/* A pl_source_rule: an input of a recompute stays until then, or is lost. */
static pl_source source_of(const void *context, const pl_wanted *wanted, const planc_access *access) {
  const tensile *t = context;
  if (access->buffer == wanted->buffer || version_read(t, access)->released) return PL_SOURCE_LOST;
  bool persists = t->trace->buffers[access->buffer].flags & PLANC_BUFFER_PERSISTENT;
  bool stays = persists || t->order->uses[version_read(t, access)->last].position >= wanted->to;
  return stays ? PL_SOURCE_DEVICE : PL_SOURCE_LOST;
}

static planc_status take_recompute(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken) {
  (void)peak;
  tensile_version *version = &t->versions[gap->version];
  const planc_instance *writer = planc_order_instance(t->order, t->order->uses[version->first].position);
  const planc_access *accesses = &t->trace->accesses[writer->first_access];
  pl_wanted wanted = {version->buffer, version->number, gap->to};
  pl_price price = pl_price_of_recompute(&t->ways, &wanted, INT64_MAX, source_of, t);
  *out_taken = !version->needed && price.compute_ns != PL_NO_WAY;
  if (!*out_taken) {
    gap->state = TENSILE_HOPELESS;
    return NULL;
  }
  for (int32_t a = 0; a < writer->n_accesses; a++) {
    if (!accesses[a].effect && accesses[a].read >= 0) version_read(t, &accesses[a])->needed = true;
  }
  version->released = true;
  t->n_recomputed++;
  gap->state = TENSILE_TAKEN;
  gap->in_start = t->unswapped.start[gap->to];
  gap->absence = (pl_absence){
      .buffer = version->buffer, .version = version->number, .copy = PL_NO_COPY, .leave = gap->from, .fetch = gap->to};
  pl_peaks_add(&t->unswapped.peaks, gap->from + 1, gap->to - 1, -gap->bytes);
  return NULL;
}

/* A gap that no swap found time for may be computed again all the same. */
static bool is_candidate(const tensile *t, const tensile_gap *gap) {
  const tensile_version *version = &t->versions[gap->version];
  if (gap->wraps || version->released || planc_order_access(t->order, version->first)->write != version->number)
    return false;
  return pl_way_is_open(&t->ways, PL_WAY_RECOMPUTE, version->buffer);
}

planc_status tensile_set_up_recomputes(tensile *t, pl_arena *arena) {
  tensile_rank *ranks;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(arena, &ranks, t->n));
  PLANC_TRY(pl_ways_back_make(t->walk, t->unswapped.start, arena, &t->ways));
  for (int32_t k = 0; k < t->n; k++) {
    tensile_gap *gap = &t->gaps[k];
    if (gap->state == TENSILE_TAKEN || !is_candidate(t, gap)) continue;
    const tensile_version *version = &t->versions[gap->version];
    pl_wanted wanted = {version->buffer, version->number, gap->to};
    pl_price price = pl_price_of_recompute(&t->ways, &wanted, INT64_MAX, NULL, NULL);
    gap->state = TENSILE_OPEN;
    gap->waits = false;
    gap->relieves = (pl_cover){gap->from, gap->to};
    ranks[n++] = (tensile_rank){pl_saving_per_second(gap->bytes, &price), k};
  }
  return tensile_make_list(t, arena, ranks, n, &t->by_saving);
}
