/* Going back from the end (auto_wants.h): what is computed again for a position is read for it, and so is what that
 * reads, unless it is at hand. */
#include "planner/auto/auto_wants.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1 };

static void find_ends(const pl_auto_wants *w, const planc_instance *in, int32_t position, int32_t *end);
static planc_status list_again(const planc_order *order, const int32_t *latest, pl_arena *arena, pl_auto_wants *w);

planc_status pl_auto_wants_new(const planc_order *order, const int32_t *first_version, const pl_auto_gap *gaps,
                               int32_t n_gaps, const int32_t *latest, pl_arena *arena, pl_auto_wants *out) {
  *out = (pl_auto_wants){.trace = order->trace, .gaps = gaps, .n_gaps = n_gaps, .first_version = first_version};
  int32_t n_versions = first_version[order->trace->n_buffers], *tail, *end;
  PLANC_TRY(PL_NEW(arena, &out->until, n_versions));
  PLANC_TRY(PL_NEW(arena, &end, n_versions));
  PLANC_TRY(PL_NEW(arena, &tail, n_versions));
  for (int32_t v = 0; v < n_versions; v++) tail[v] = end[v] = NONE;
  for (int32_t g = 0; g < n_gaps; g++)
    if (gaps[g].is_tail) tail[out->first_version[gaps[g].buffer] + gaps[g].version] = g;
  for (int32_t p = 0; p < order->n; p++) find_ends(out, planc_order_instance(order, p), p, end);
  out->end = end;
  out->tail = tail;
  return list_again(order, latest, arena, out);
}

static void find_ends(const pl_auto_wants *w, const planc_instance *in, int32_t position, int32_t *end) {
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &w->trace->accesses[a];
    if (access->read >= 0) end[w->first_version[access->buffer] + access->read] = position;
    if (access->write >= 0) end[w->first_version[access->buffer] + access->write] = position;
  }
}

static planc_status list_again(const planc_order *order, const int32_t *latest, pl_arena *arena, pl_auto_wants *w) {
  int32_t *again;
  PLANC_TRY(PL_NEW(arena, &again, order->n));
  for (int32_t p = order->n - 1; p >= 0; p--)
    if (latest[order->runs[p].instance] >= 0) again[w->n_again++] = order->runs[p].instance;
  w->again = again;
  return NULL;
}

static bool is_again(const pl_auto_gap *gap, const uint8_t *ways, int32_t g) {
  if (gap->is_tail || !gap->open[PL_AUTO_AGAIN]) return false;
  return !ways || ways[g] == PL_AUTO_AGAIN || ways[g] == PL_AUTO_TWICE;
}

static bool is_kept(const pl_auto_wants *w, const uint8_t *ways, int32_t version) {
  return ways && w->tail[version] != NONE && ways[w->tail[version]] == PL_AUTO_STAYS;
}

static void read_again(pl_auto_wants *w, const uint8_t *ways, int32_t instance);

void pl_auto_wants_find(pl_auto_wants *w, const uint8_t *ways) {
  bool any = false;
  memset(w->until, 0xFF, (size_t)w->first_version[w->trace->n_buffers] * sizeof *w->until);
  for (int32_t g = 0; g < w->n_gaps; g++) {
    const pl_auto_gap *gap = &w->gaps[g];
    int32_t *until = &w->until[w->first_version[gap->buffer] + gap->version];
    if (!is_again(gap, ways, g)) continue;
    *until = (int32_t)pl_max(*until, gap->to);
    any = true;
  }
  for (int32_t k = 0; any && k < w->n_again; k++) read_again(w, ways, w->again[k]);
}

/* What is in none of its gaps computed again is on the device up to its last use, or comes from the host. */
static void read_again(pl_auto_wants *w, const uint8_t *ways, int32_t instance) {
  const planc_instance *in = &w->trace->instances[instance];
  const planc_access *accesses = &w->trace->accesses[in->first_access];
  int32_t last = NONE;
  for (int32_t a = 0; a < in->n_accesses; a++) {
    if (accesses[a].write < 0 || accesses[a].effect) continue;
    int32_t version = w->first_version[accesses[a].buffer] + accesses[a].write;
    if (!is_kept(w, ways, version)) last = (int32_t)pl_max(last, w->until[version]);
  }
  if (last == NONE) return;
  for (int32_t a = 0; a < in->n_accesses; a++) {
    if (accesses[a].read < 0 || accesses[a].effect) continue;
    int32_t version = w->first_version[accesses[a].buffer] + accesses[a].read;
    if (last > w->end[version] || w->until[version] != NONE)
      w->until[version] = (int32_t)pl_max(w->until[version], last);
  }
}
