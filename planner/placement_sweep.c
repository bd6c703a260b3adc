#include "placement_sweep.h"

#include <stdlib.h>

#include "free_list.h"
#include "planc/schedule.h"
#include "util/arena.h"

/* One span of one item, in the direction of the sweep. */
typedef struct piece {
  int64_t bytes;
  int32_t start, end, item;
} piece;

typedef struct sweep {
  const planc_item *items;
  int32_t n, horizon;
  bool backwards;
  int64_t *addresses;
  planc_arena arena;
  int32_t n_pieces;
  piece *pieces; /* by start, then the largest first, then by item */
  int32_t *ends; /* pieces by end */
  /* Pieces whose address may be known before the sweep gets to them: of items with a stated address or two spans. */
  int32_t n_early;
  int32_t *early; /* by start */
  planc_free_list free;
  VEC(planc_range) conflicts;
} sweep;

/* --- Events ------------------------------------------------------------------------------------------------------ */

static bool piece_of(const sweep *s, int32_t item, int32_t span, piece *out) {
  planc_span it = s->items[item].spans[span];
  if (it.start >= it.end) return false;
  *out = (piece){s->items[item].bytes, it.start, it.end, item};
  if (s->backwards) {
    out->start = s->horizon - it.end;
    out->end = s->horizon - it.start;
  }
  return true;
}

static bool has_two_spans(const planc_item *item) {
  return item->spans[0].start < item->spans[0].end && item->spans[1].start < item->spans[1].end;
}

static int compare_pieces(const void *left, const void *right) {
  const piece *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

/* Sorts by counting: positions are dense, so this takes linear time. */
static planc_status sort_events(sweep *s) {
  int32_t *at_start, *at_end; /* where the pieces of a position go next */
  PLANC_TRY(PLANC_NEW(&s->arena, &at_start, (int64_t)s->horizon + 2));
  PLANC_TRY(PLANC_NEW(&s->arena, &at_end, (int64_t)s->horizon + 2));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->pieces, (int64_t)s->n * 2));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->ends, (int64_t)s->n * 2));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->early, (int64_t)s->n * 2));

  piece it;
  for (int32_t i = 0; i < s->n; i++) {
    for (int32_t k = 0; k < 2; k++) {
      if (!piece_of(s, i, k, &it)) continue;
      at_start[it.start + 1]++;
      at_end[it.end + 1]++;
      s->n_pieces++;
    }
  }
  for (int32_t p = 0; p <= s->horizon; p++) {
    at_start[p + 1] += at_start[p];
    at_end[p + 1] += at_end[p];
  }
  for (int32_t i = 0; i < s->n; i++) {
    for (int32_t k = 0; k < 2; k++) {
      if (piece_of(s, i, k, &it)) s->pieces[at_start[it.start]++] = it;
    }
  }
  for (int32_t first = 0, next; first < s->n_pieces; first = next) {
    for (next = first + 1; next < s->n_pieces && s->pieces[next].start == s->pieces[first].start;) next++;
    if (next > first + 1) qsort(&s->pieces[first], (size_t)(next - first), sizeof(piece), compare_pieces);
  }
  for (int32_t p = 0; p < s->n_pieces; p++) {
    s->ends[at_end[s->pieces[p].end]++] = p;
    const planc_item *item = &s->items[s->pieces[p].item];
    if (item->address != PLANC_BLANK || has_two_spans(item)) s->early[s->n_early++] = p;
  }
  return NULL;
}

/* --- Choosing an address ----------------------------------------------------------------------------------------- */

static int compare_ranges(const void *left, const void *right) {
  const planc_range *a = left, *b = right;
  return (a->start > b->start) - (a->start < b->start);
}

/* Collects where `p` must not lie because of pieces that are placed but begin later. Those that live now are not in the
 * way: what they hold is not free. */
static planc_status find_conflicts(sweep *s, const piece *p) {
  const planc_item *item = &s->items[p->item];
  s->conflicts.len = 0;
  bool whole = has_two_spans(item);
  int32_t first = 0;
  for (int32_t last = whole ? 0 : s->n_early; first < last;) {
    int32_t middle = first + (last - first) / 2;
    if (s->pieces[s->early[middle]].start < p->start) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  for (int32_t e = first; e < s->n_early; e++) {
    const piece *other = &s->pieces[s->early[e]];
    if (!whole && other->start >= p->end) break;
    bool meets = !whole;
    for (int32_t k = 0; k < 2 && !meets; k++) {
      piece own;
      meets = piece_of(s, p->item, k, &own) && own.start < other->end && other->start < own.end;
    }
    int64_t address = s->addresses[other->item];
    if (meets && address != PLANC_BLANK) {
      VEC_PUSH(&s->conflicts, ((planc_range){address, address + other->bytes}));
    }
  }
  if (s->conflicts.len > 1) {
    qsort(s->conflicts.data, (size_t)s->conflicts.len, sizeof(planc_range), compare_ranges);
  }
  return NULL;
}

/* The lowest address where `bytes` are free now and clear of every conflict. */
static int64_t lowest_fit(const sweep *s, int64_t bytes) {
  int64_t address = 0, c = 0;
  for (;;) {
    planc_range gap = planc_free_list_first(&s->free, address, bytes);
    if (gap.start > address) address = gap.start;
    /* Conflicts passed once end at or below `address` for good. */
    for (; c < s->conflicts.len && s->conflicts.data[c].start < address + bytes; c++) {
      if (s->conflicts.data[c].end > address) address = s->conflicts.data[c].end;
    }
    if (address + bytes <= gap.end) return address;
  }
}

static planc_status place_piece(sweep *s, const piece *p) {
  int64_t *address = &s->addresses[p->item];
  if (*address == PLANC_BLANK) {
    PLANC_TRY(find_conflicts(s, p));
    *address = lowest_fit(s, p->bytes);
  }
  bool taken;
  PLANC_TRY(planc_free_list_take(&s->free, (planc_range){*address, *address + p->bytes}, &taken));
  if (taken) return NULL;
  return planc_error(PLANC_INTERNAL, "item %d at address %lld overlaps another at position %d", p->item,
                     (long long)*address, s->backwards ? s->horizon - p->start - 1 : p->start);
}

static planc_status run_sweep(sweep *s) {
  PLANC_TRY(sort_events(s));
  PLANC_TRY(planc_free_list_reset(&s->free));
  for (int32_t p = 0, e = 0; p < s->n_pieces; p++) {
    for (; s->pieces[s->ends[e]].end <= s->pieces[p].start; e++) {
      const piece *ended = &s->pieces[s->ends[e]];
      int64_t address = s->addresses[ended->item];
      PLANC_TRY(planc_free_list_give(&s->free, (planc_range){address, address + ended->bytes}));
    }
    PLANC_TRY(place_piece(s, &s->pieces[p]));
  }
  return NULL;
}

planc_status planc_placement_sweep(const planc_item *items, int32_t n, int32_t horizon, bool backwards,
                                   int64_t *addresses) {
  sweep s = {.items = items, .n = n, .horizon = horizon, .backwards = backwards, .addresses = addresses};
  planc_status status = run_sweep(&s);
  planc_arena_free(&s.arena);
  planc_free_list_free(&s.free);
  VEC_FREE(&s.conflicts);
  return status;
}
