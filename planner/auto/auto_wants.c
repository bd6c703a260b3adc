/* Going back from the end (auto_wants.h): what is computed again for a position is read for it, and so is what that
 * reads, unless it is at hand. */
#include "planner/auto/auto_wants.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1 };

static void find_ends(const pl_auto_wants *w, const planc_instance *in, int32_t position, int32_t *end);
static planc_status list_gaps(const pl_auto_gap *gaps, int32_t n_gaps, pl_arena *arena, pl_auto_wants *w);
static planc_status list_again(const planc_order *order, const int32_t *latest, pl_arena *arena, pl_auto_wants *w);

planc_status pl_auto_wants_new(const planc_order *order, const int32_t *first_version, const pl_auto_gap *gaps,
                               int32_t n_gaps, const int32_t *latest, pl_arena *arena, pl_auto_wants *out) {
  *out = (pl_auto_wants){.trace = order->trace, .first_version = first_version};
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
  PLANC_TRY(list_gaps(gaps, n_gaps, arena, out));
  return list_again(order, latest, arena, out);
}

static void find_ends(const pl_auto_wants *w, const planc_instance *in, int32_t position, int32_t *end) {
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &w->trace->accesses[a];
    if (access->read >= 0) end[w->first_version[access->buffer] + access->read] = position;
    if (access->write >= 0) end[w->first_version[access->buffer] + access->write] = position;
  }
}

/* A walk goes through all of them, so that there is no more of each than that needs. */
static planc_status list_gaps(const pl_auto_gap *gaps, int32_t n_gaps, pl_arena *arena, pl_auto_wants *w) {
  pl_again_gap *list;
  PLANC_TRY(PL_NEW(arena, &list, n_gaps));
  for (int32_t g = 0; g < n_gaps; g++)
    if (!gaps[g].is_tail && gaps[g].open[PL_AUTO_AGAIN])
      list[w->n_gaps++] = (pl_again_gap){g, w->first_version[gaps[g].buffer] + gaps[g].version, gaps[g].to};
  w->gaps = list;
  return NULL;
}

/* Those that an instance reads, or else those that it writes, but for effects, which a recompute leaves out; returns
 * how many there are. */
static int32_t list_versions(const pl_auto_wants *w, const planc_instance *in, bool read, int32_t *out) {
  int32_t n = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &w->trace->accesses[a];
    int32_t version = read ? access->read : access->write;
    if (version >= 0 && !access->effect) out[n++] = w->first_version[access->buffer] + version;
  }
  return n;
}

static planc_status list_again(const planc_order *order, const int32_t *latest, pl_arena *arena, pl_auto_wants *w) {
  int32_t *versions;
  pl_again_run *again;
  PLANC_TRY(PL_NEW(arena, &versions, 2 * (int64_t)order->trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &again, order->n));
  for (int32_t p = order->n - 1; p >= 0; p--) {
    if (latest[order->runs[p].instance] < 0) continue;
    const planc_instance *in = planc_order_instance(order, p);
    int32_t n_written = list_versions(w, in, false, versions);
    int32_t n_read = list_versions(w, in, true, &versions[n_written]);
    again[w->n_again++] = (pl_again_run){versions, &versions[n_written], n_written, n_read};
    versions += n_written + n_read;
  }
  w->again = again;
  return NULL;
}

static bool is_again(const uint8_t *ways, int32_t gap) {
  return !ways || ways[gap] == PL_AUTO_AGAIN || ways[gap] == PL_AUTO_TWICE;
}

static bool is_kept(const pl_auto_wants *w, const uint8_t *ways, int32_t version) {
  return ways && w->tail[version] != NONE && ways[w->tail[version]] == PL_AUTO_STAYS;
}

static void read_again(pl_auto_wants *w, const uint8_t *ways, const pl_again_run *run);

void pl_auto_wants_find(pl_auto_wants *w, const uint8_t *ways) {
  bool any = false;
  memset(w->until, 0xFF, (size_t)w->first_version[w->trace->n_buffers] * sizeof *w->until);
  for (int32_t k = 0; k < w->n_gaps; k++) {
    const pl_again_gap *it = &w->gaps[k];
    if (!is_again(ways, it->gap)) continue;
    w->until[it->version] = (int32_t)pl_max(w->until[it->version], it->to);
    any = true;
  }
  for (int32_t k = 0; any && k < w->n_again; k++) read_again(w, ways, &w->again[k]);
}

/* What is in none of its gaps computed again is on the device up to its last use, or comes from the host. */
static void read_again(pl_auto_wants *w, const uint8_t *ways, const pl_again_run *run) {
  int32_t last = NONE;
  for (int32_t k = 0; k < run->n_written; k++)
    if (!is_kept(w, ways, run->written[k])) last = (int32_t)pl_max(last, w->until[run->written[k]]);
  if (last == NONE) return;
  for (int32_t k = 0; k < run->n_read; k++) {
    int32_t *until = &w->until[run->read[k]];
    if (last > w->end[run->read[k]] || *until != NONE) *until = (int32_t)pl_max(*until, last);
  }
}
