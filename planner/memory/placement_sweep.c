/* The pass over time (placement_sweep.h): pieces by start, each in the lowest range that is free until it ends. */
#include "planner/memory/placement_sweep.h"

#include <assert.h>
#include <stdlib.h>

#include "planc/schedule.h"
#include "planner/memory/free_list.h"
#include "util/arena.h"
#include "util/math.h"

/* One span of one item, in the direction of the sweep. */
typedef struct piece {
  int64_t bytes;
  int32_t start, end, item;
} piece;

/* An item whose address is known before the sweep gets to it, or to its second span: stated, or of two spans. */
typedef struct known {
  int64_t start, end;
  int64_t reach; /* the highest end of any up to here */
  int32_t item;
} known;

/* Known items that follow each other. */
typedef struct stretch {
  int64_t free; /* the most bytes between the end of one, or of the one before them, and the start of the next */
  int64_t end;  /* the highest */
  int32_t due;  /* the last time at which the next span of one begins; all that begins now and ends behind is in the
                   way of all of them */
} stretch;

typedef struct sweep {
  const pl_item *items;
  int32_t n, horizon;
  bool backwards;
  bool chooses; /* some address: else nobody asks what is in the way later */
  int64_t *addresses;
  pl_overlap overlap; /* where the sweep has failed */
  pl_arena arena;
  int32_t n_pieces;
  piece *pieces; /* by start, then the largest first, then by item */
  int32_t *ends; /* pieces by end */
  pl_free_list free;
  VEC(known) known;  /* by address */
  int32_t *known_of; /* by item: its place among the known, -1 = none */
  int32_t leaves;
  stretch *stretches; /* a tree over the known, the root at 1 */
} sweep;

static planc_status run_sweep(sweep *s);
static planc_status place_piece(sweep *s, const piece *p);
static planc_status sort_events(sweep *s);
static int64_t lowest_fit(const sweep *s, const piece *p);
static planc_status refuse(sweep *s, const piece *p);
static planc_status make_stretches(sweep *s);
static planc_status learn_stated(sweep *s);
static planc_status learn(sweep *s, int32_t item, int32_t time);
static void note_end(sweep *s, int32_t item, int32_t time);

planc_status pl_placement_sweep(const pl_item *items, int32_t n, int32_t horizon, bool backwards, int64_t *addresses,
                                pl_overlap *out_overlap) {
  sweep s = {.items = items, .n = n, .horizon = horizon, .backwards = backwards, .addresses = addresses};
  planc_status status = run_sweep(&s);
  pl_arena_free(&s.arena);
  pl_free_list_free(&s.free);
  VEC_FREE(&s.known);
  *out_overlap = s.overlap;
  return status;
}

static planc_status run_sweep(sweep *s) {
  PLANC_TRY(sort_events(s));
  PLANC_TRY(make_stretches(s));
  if (s->chooses) PLANC_TRY(learn_stated(s));
  PLANC_TRY(pl_free_list_reset(&s->free));
  for (int32_t p = 0, e = 0; p < s->n_pieces; p++) {
    for (; s->pieces[s->ends[e]].end <= s->pieces[p].start; e++) {
      const piece *ended = &s->pieces[s->ends[e]];
      int64_t address = s->addresses[ended->item];
      PLANC_TRY(pl_free_list_give(&s->free, (pl_range){address, address + ended->bytes}));
      note_end(s, ended->item, s->pieces[p].start);
    }
    PLANC_TRY(place_piece(s, &s->pieces[p]));
  }
  return NULL;
}

static planc_status place_piece(sweep *s, const piece *p) {
  int64_t *address = &s->addresses[p->item];
  if (*address == PLANC_BLANK) {
    *address = lowest_fit(s, p);
    if (pl_item_lives_twice(&s->items[p->item])) PLANC_TRY(learn(s, p->item, p->start));
  }
  bool taken;
  PLANC_TRY(pl_free_list_take(&s->free, (pl_range){*address, *address + p->bytes}, &taken));
  return taken ? NULL : refuse(s, p);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static bool piece_of(const sweep *s, int32_t item, int32_t span, piece *out) {
  pl_lifetime it = s->items[item].spans[span];
  if (it.start >= it.end) return false;
  *out = (piece){s->items[item].bytes, it.start, it.end, item};
  if (s->backwards) {
    out->start = s->horizon - it.end;
    out->end = s->horizon - it.start;
  }
  return true;
}

static int compare_pieces(const void *left, const void *right) {
  const piece *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

/* Sorts by counting: positions are dense, so this takes linear time. */
static planc_status sort_events(sweep *s) {
  int32_t *at_start, *at_end; /* where the pieces of a position go next */
  PLANC_TRY(PL_NEW(&s->arena, &at_start, (int64_t)s->horizon + 2));
  PLANC_TRY(PL_NEW(&s->arena, &at_end, (int64_t)s->horizon + 2));
  PLANC_TRY(PL_NEW(&s->arena, &s->pieces, (int64_t)s->n * PL_SPANS));
  PLANC_TRY(PL_NEW(&s->arena, &s->ends, (int64_t)s->n * PL_SPANS));

  piece it;
  for (int32_t i = 0; i < s->n; i++) {
    for (int32_t k = 0; k < PL_SPANS; k++) {
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
    for (int32_t k = 0; k < PL_SPANS; k++) {
      if (piece_of(s, i, k, &it)) s->pieces[at_start[it.start]++] = it;
    }
  }
  for (int32_t first = 0, next; first < s->n_pieces; first = next) {
    for (next = first + 1; next < s->n_pieces && s->pieces[next].start == s->pieces[first].start;) next++;
    if (next > first + 1) qsort(&s->pieces[first], (size_t)(next - first), sizeof(piece), compare_pieces);
  }
  for (int32_t p = 0; p < s->n_pieces; p++) s->ends[at_end[s->pieces[p].end]++] = p;
  return NULL;
}

/* --- Choosing an address ------------------------------------------------------------------------------------------ */

static int64_t first_above(const sweep *s, int64_t address);
static bool conflicts(const sweep *s, const piece *p, const known *other);
static int64_t pass(const sweep *s, const piece *p, int64_t c, int64_t *address);

static bool meets(const sweep *s, pl_lifetime own, int32_t other) {
  piece it;
  for (int32_t k = 0; k < PL_SPANS; k++) {
    if (piece_of(s, other, k, &it) && pl_lifetimes_meet(own, (pl_lifetime){it.start, it.end})) return true;
  }
  return false;
}

/* The lowest address where the piece's bytes are free now and clear of what begins later and is known. */
static int64_t lowest_fit(const sweep *s, const piece *p) {
  int64_t address = 0, c = 0;
  for (;;) {
    pl_range range = pl_free_list_first(&s->free, address, p->bytes);
    if (range.start > address) address = range.start;
    int64_t above = first_above(s, address);
    if (above > c) c = above;
    /* Items passed once end at or below `address` for good, or are in nobody's way. */
    for (; c < s->known.len && s->known.data[c].start < address + p->bytes; c++) {
      const known *other = &s->known.data[c];
      if (other->end <= address || !conflicts(s, p, other)) continue;
      address = other->end;
      c = pass(s, p, c + 1, &address) - 1;
    }
    if (address + p->bytes <= range.end) return address;
  }
}

/* The first known item that may end above `address`. */
static int64_t first_above(const sweep *s, int64_t address) {
  int64_t first = 0;
  for (int64_t last = s->known.len; first < last;) {
    int64_t middle = first + (last - first) / 2;
    if (s->known.data[middle].reach <= address) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/* Whether a known item is in the way of `p` or of the other piece of the same item. Those that live now are not free
 * anyway. */
static bool conflicts(const sweep *s, const piece *p, const known *other) {
  piece it;
  for (int32_t k = 0; k < PL_SPANS; k++) {
    if (!piece_of(s, p->item, k, &it)) continue;
    if (meets(s, (pl_lifetime){it.start, it.end}, other->item)) return true;
  }
  return false;
}

/* The first known item from `c` on that is not in the way of `p`, or behind which a free range may be large enough;
 * *address, which is not below the end of the one before, gets behind those in between. */
static int64_t pass(const sweep *s, const piece *p, int64_t c, int64_t *address) {
  if (c >= s->known.len) return c;
  for (int64_t node = c + s->leaves;;) {
    const stretch *it = &s->stretches[node];
    if (it->due < p->end && it->free < p->bytes) {
      if (it->end > *address) *address = it->end;
      node++;
      while (node % 2 == 0) node /= 2;
      if (node == 1) return s->known.len;
    } else if (node < s->leaves) {
      node *= 2;
    } else {
      return node - s->leaves;
    }
  }
}

/* Looks for the item that has bytes of `p`, which are not free: it lives at its start. */
static planc_status refuse(sweep *s, const piece *p) {
  pl_lifetime start = {p->start, p->start + 1};
  int64_t address = s->addresses[p->item];
  int32_t other = 0;
  for (; other < s->n; other++) {
    int64_t its = s->addresses[other];
    if (other == p->item || its == PLANC_BLANK || !meets(s, start, other)) continue;
    if (its < address + p->bytes && address < its + s->items[other].bytes) break;
  }
  assert(other < s->n);
  s->overlap = (pl_overlap){p->item, other, s->backwards ? s->horizon - p->start - 1 : p->start};
  return planc_error(PLANC_INTERNAL, "two stated addresses overlap");
}

/* --- What is known ------------------------------------------------------------------------------------------------ */

static int compare_known(const void *left, const void *right);
static void update_reaches(sweep *s, int64_t from);
static void set_stretch(sweep *s, int64_t at, int32_t time);
static int32_t due_at(const sweep *s, int32_t item, int32_t time);
static void join_stretch(sweep *s, int64_t node);

/* Room for all that are known at the end. */
static planc_status make_stretches(sweep *s) {
  int32_t n = 0;
  for (int32_t i = 0; i < s->n; i++) s->chooses |= s->addresses[i] == PLANC_BLANK;
  for (int32_t i = 0; s->chooses && i < s->n; i++)
    n += s->addresses[i] != PLANC_BLANK || pl_item_lives_twice(&s->items[i]);
  for (s->leaves = 1; s->leaves < n;) s->leaves *= 2;
  PLANC_TRY(PL_NEW(&s->arena, &s->known_of, s->n));
  PLANC_TRY(PL_NEW(&s->arena, &s->stretches, 2 * (int64_t)s->leaves));
  for (int32_t i = 0; i < s->n; i++) s->known_of[i] = -1;
  for (int32_t node = 1; node < 2 * s->leaves; node++) s->stretches[node].due = INT32_MAX;
  return NULL;
}

static planc_status learn_stated(sweep *s) {
  for (int32_t i = 0; i < s->n; i++) {
    if (s->addresses[i] == PLANC_BLANK) continue;
    int64_t start = s->addresses[i];
    VEC_PUSH(&s->known, ((known){.start = start, .end = start + s->items[i].bytes, .item = i}));
  }
  if (s->known.len > 1) qsort(s->known.data, (size_t)s->known.len, sizeof(known), compare_known);
  for (int64_t k = 0; k < s->known.len; k++) {
    int64_t before = k > 0 ? s->known.data[k - 1].reach : 0, end = s->known.data[k].end;
    s->known.data[k].reach = end > before ? end : before;
    s->known_of[s->known.data[k].item] = (int32_t)k;
    set_stretch(s, k, 0);
  }
  for (int32_t node = s->leaves - 1; node > 0; node--) join_stretch(s, node);
  return NULL;
}

static int compare_known(const void *left, const void *right) {
  const known *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

/* Those behind it move on by one place, each with its stretch, and what is above them is joined once. */
static planc_status learn(sweep *s, int32_t item, int32_t time) {
  const int64_t start = s->addresses[item];
  int64_t at = s->known.len;
  VEC_PUSH(&s->known, ((known){.item = item}));
  for (; at > 0 && s->known.data[at - 1].start > start; at--) {
    s->known.data[at] = s->known.data[at - 1];
    s->known_of[s->known.data[at].item] = (int32_t)at;
    s->stretches[s->leaves + at] = s->stretches[s->leaves + at - 1];
  }
  s->known.data[at] = (known){.start = start, .end = start + s->items[item].bytes, .item = item};
  s->known_of[item] = (int32_t)at;
  update_reaches(s, at);
  for (int64_t k = at; k < pl_min(at + 2, s->known.len); k++) set_stretch(s, k, time);
  int64_t first = (s->leaves + at) / 2, last = (s->leaves + s->known.len - 1) / 2;
  for (; first > 0; first /= 2, last /= 2)
    for (int64_t node = first; node <= last; node++) join_stretch(s, node);
  return NULL;
}

/* Makes the reaches from `from` on right, up to where they were. */
static void update_reaches(sweep *s, int64_t from) {
  for (int64_t k = from; k < s->known.len; k++) {
    known *it = &s->known.data[k];
    int64_t before = k > 0 ? it[-1].reach : 0, reach = it->end > before ? it->end : before;
    if (k > from && reach == it->reach) return;
    it->reach = reach;
  }
}

/* Of the known item at `at`. */
static void set_stretch(sweep *s, int64_t at, int32_t time) {
  const known *it = &s->known.data[at];
  int64_t before = at > 0 ? it[-1].end : 0;
  s->stretches[s->leaves + at] = (stretch){it->start - before, it->end, due_at(s, it->item, time)};
}

/* The time is at which a span of an item has ended. */
static void note_end(sweep *s, int32_t item, int32_t time) {
  int32_t at = s->known_of[item];
  if (at < 0) return;
  s->stretches[s->leaves + at].due = due_at(s, item, time);
  for (int64_t node = (s->leaves + at) / 2; node > 0; node /= 2) join_stretch(s, node);
}

/* When an item is in the way next, at a time at which all that ends there has ended. */
static int32_t due_at(const sweep *s, int32_t item, int32_t time) {
  piece it;
  int32_t due = INT32_MAX;
  for (int32_t k = 0; k < PL_SPANS; k++) {
    if (piece_of(s, item, k, &it) && it.end > time && it.start < due) due = it.start;
  }
  return due;
}

static void join_stretch(sweep *s, int64_t node) {
  const stretch *a = &s->stretches[2 * node], *b = &s->stretches[2 * node + 1];
  s->stretches[node] = (stretch){.free = a->free > b->free ? a->free : b->free,
                                 .end = a->end > b->end ? a->end : b->end,
                                 .due = a->due > b->due ? a->due : b->due};
}
