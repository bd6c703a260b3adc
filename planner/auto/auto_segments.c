/* Segments (auto_segments.h). */
#include "planner/auto/auto_segments.h"

#include "util/math.h"

enum { NONE = -1 };

static planc_status find_crossing(const pl_auto_segments *s, pl_arena *arena, int64_t **out);
static planc_status find_reach(pl_auto_segments *s, const int64_t *crossing, pl_arena *arena);

planc_status pl_auto_segments_new(const pl_auto_gaps *gaps, pl_arena *arena, pl_auto_segments *out) {
  const planc_order *order = gaps->order;
  int64_t *crossing;
  *out = (pl_auto_segments){.gaps = gaps};
  PLANC_TRY(PL_NEW(arena, &out->first, gaps->trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->last, gaps->trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->reach, order->n));
  PLANC_TRY(PL_NEW(arena, &out->segment, order->n));
  for (int32_t b = 0; b < gaps->trace->n_buffers; b++) {
    out->first[b] = out->last[b] = NONE;
    for (int32_t u = order->first_use[b]; u < order->first_use[b + 1]; u++) {
      int32_t position = order->uses[u].position;
      if (planc_order_phase(order, position) != PLANC_PHASE_forward) break;
      if (out->first[b] == NONE) out->first[b] = position;
      out->last[b] = position;
    }
  }
  PLANC_TRY(find_crossing(out, arena, &crossing));
  return find_reach(out, crossing, arena);
}

/* By position: the bytes that the forward pass has used up to it and uses behind it, without what persists. */
static planc_status find_crossing(const pl_auto_segments *s, pl_arena *arena, int64_t **out) {
  const planc_trace *trace = s->gaps->trace;
  int64_t *crossing;
  PLANC_TRY(PL_NEW(arena, &crossing, s->gaps->order->n));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (s->first[b] == s->last[b] || trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) continue;
    crossing[s->first[b]] += trace->buffers[b].bytes;
    crossing[s->last[b]] -= trace->buffers[b].bytes;
  }
  for (int32_t p = 1; p < s->gaps->order->n; p++) crossing[p] += crossing[p - 1];
  *out = crossing;
  return NULL;
}

/* Of equal positions the first counts as the one with less. */
static planc_status find_reach(pl_auto_segments *s, const int64_t *crossing, pl_arena *arena) {
  const planc_order *order = s->gaps->order;
  int32_t *rising, n = 0; /* forward positions with less each than the next */
  PLANC_TRY(PL_NEW(arena, &rising, order->n));
  for (int32_t p = 0; p < order->n; p++) {
    s->reach[p] = NONE;
    if (planc_order_phase(order, p) != PLANC_PHASE_forward) continue;
    for (; n > 0 && crossing[rising[n - 1]] > crossing[p]; n--)
      s->reach[rising[n - 1]] = (int32_t)pl_min(s->reach[rising[n - 1]], p - rising[n - 1] - 1);
    s->reach[p] = n > 0 ? p - rising[n - 1] - 1 : order->n;
    rising[n++] = p;
  }
  return NULL;
}

int32_t pl_auto_segments_cut(pl_auto_segments *s, int32_t reach) {
  int32_t n_cuts = 0;
  for (int32_t p = 0; p < s->gaps->order->n; p++) {
    s->segment[p] = n_cuts;
    n_cuts += s->reach[p] >= reach;
    if (planc_order_phase(s->gaps->order, p) == PLANC_PHASE_forward) s->end = s->segment[p];
  }
  return n_cuts;
}

void pl_auto_segments_set(pl_auto_segments *s, int32_t n_copied, bool keeps_last, uint8_t *ways) {
  const planc_order *order = s->gaps->order;
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++) {
    const pl_auto_gap *gap = &s->gaps->items[g];
    int32_t first = s->first[gap->buffer], last = s->last[gap->buffer];
    if (!gap->open[PL_AUTO_AGAIN] || gap->needs_tails || first == NONE ||
        planc_order_phase(order, gap->from) != PLANC_PHASE_forward ||
        planc_order_phase(order, gap->to) == PLANC_PHASE_forward)
      continue;
    bool stays = s->segment[first] != s->segment[last] || (keeps_last && s->segment[first] == s->end);
    bool is_copied = stays && gap->open[PL_AUTO_COPIED] && !gap->is_tail && s->segment[first] < n_copied;
    ways[g] = is_copied ? PL_AUTO_COPIED : stays ? PL_AUTO_STAYS : PL_AUTO_AGAIN;
  }
}
