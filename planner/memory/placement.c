/* Placement by several greedy orders, the best result kept.
 *
 * Two sweeps over time (placement_sweep.h) take n log n and always run. Packing items one by one into the lowest or the
 * tightest free range between those already placed, in orders such as by size, looks at up to n^2 / 2 pairs: it is
 * tried for up to PL_MOST_PACKED items and ends for good once VISITS_PER_ITEM * n pairs have been looked at. What is
 * left of those visits goes to repairing the best order: items that ended above the lower bound (most bytes live at a
 * time) are packed first the next time. All of it ends early when the lower bound is met.
 *
 * Where only a room is to be kept to (pl_place_by_repairs), repairs are made from several orders, each of which may
 * look at so many pairs of its own, and what ended above the room is packed first. */
#include "planner/memory/placement.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "planc/schedule.h"
#include "planner/memory/packed.h"
#include "planner/memory/placement_sweep.h"
#include "util/math.h"

enum { VISITS_PER_ITEM = 8192, MAX_REPAIRS = 256 };

/* Sorts items by descending first, then second, then ascending item. */
typedef struct sort_key {
  int64_t first, second;
  int32_t item;
} sort_key;

typedef struct placement {
  pl_arena arena;
  pl_item *items;  /* those with bytes; sizes rounded up to whole units */
  int32_t *source; /* of each, its index among those given */
  int32_t n, horizon;
  int64_t unit;   /* of addresses and sizes */
  int64_t bound;  /* no placement's top, rounded up, is below */
  int64_t enough; /* no lower top is looked for */
  int64_t *addresses, *best;
  int64_t best_top;
  int32_t n_order;
  int32_t *order; /* of the items to place */
  int32_t *spare;
  sort_key *keys;
  pl_packed stated, packed; /* items whose address is given, and all that are packed so far */
  int64_t visits;
  pl_overlap overlap; /* of what is stated, where a sweep has failed */
} placement;

typedef enum order_rule { BY_SIZE, BY_AREA, BY_LIFETIME, BY_START, BY_END, N_RULES } order_rule;

static planc_status place_items(placement *p, pl_item *items, int32_t n, int64_t *out_top);
static planc_status pack_stated(placement *p);
static void try_packings(placement *p);
static void try_repairs(placement *p);
static planc_status try_sweep(placement *p, bool backwards);
static bool is_enough(const placement *p);
static bool try_packing(placement *p, bool tightest, bool to_win);
static sort_key key_of(const pl_item *item, int32_t index, order_rule rule);
static void sort_order(placement *p);
static bool repair_order(placement *p);
static planc_status prepare(placement *p, const pl_item *items, int32_t n);
static bool takes_no_room(const pl_item *item);

planc_status pl_place(pl_item *items, int32_t n, int64_t *out_top, pl_overlap *out_overlap) {
  placement p = {.unit = PLANC_ALIGNMENT};
  planc_status status = prepare(&p, items, n);
  if (!status) status = place_items(&p, items, n, out_top);
  if (planc_status_code(status) == PLANC_INTERNAL && out_overlap)
    *out_overlap = (pl_overlap){p.source[p.overlap.item], p.source[p.overlap.other], p.overlap.position};
  pl_arena_free(&p.arena);
  return status;
}

planc_status pl_place_in_units(pl_item *items, int32_t n, int64_t unit, int64_t *out_live, int64_t *out_top) {
  placement p = {.unit = unit};
  planc_status status = prepare(&p, items, n);
  *out_live = p.bound;
  if (!status) status = place_items(&p, items, n, out_top);
  pl_arena_free(&p.arena);
  return status;
}

static planc_status place_items(placement *p, pl_item *items, int32_t n, int64_t *out_top) {
  p->best_top = INT64_MAX;
  PLANC_TRY(try_sweep(p, false));
  if (p->n_order > 0 && !is_enough(p)) PLANC_TRY(try_sweep(p, true));
  if (p->n_order > 0 && p->n_order <= PL_MOST_PACKED && !is_enough(p)) {
    PLANC_TRY(pack_stated(p));
    try_packings(p);
    try_repairs(p);
  }

  *out_top = 0;
  for (int32_t i = 0; i < n; i++) {
    if (takes_no_room(&items[i])) items[i].address = 0;
  }
  for (int32_t k = 0; k < p->n; k++) {
    pl_item *item = &items[p->source[k]];
    item->address = p->best[k];
    if (item->address + item->bytes > *out_top) *out_top = item->address + item->bytes;
  }
  return NULL;
}

static void order_by(placement *p, order_rule rule) {
  for (int32_t k = 0; k < p->n_order; k++) p->keys[k] = key_of(&p->items[p->order[k]], p->order[k], rule);
  sort_order(p);
}

static void try_packings(placement *p) {
  for (int32_t rule = 0; rule < N_RULES; rule++) {
    order_by(p, (order_rule)rule);
    for (int32_t tightest = 0; tightest < 2; tightest++) {
      if (is_enough(p) || !try_packing(p, tightest, true)) return;
    }
  }
}

/* Starts from the best placement: packed by ascending address no item ends higher than there. */
static void try_repairs(placement *p) {
  for (int32_t k = 0; k < p->n_order; k++) {
    int32_t i = p->order[k];
    p->keys[k] = (sort_key){-p->best[i], 0, i};
  }
  sort_order(p);
  for (int32_t k = 0; k < MAX_REPAIRS && !is_enough(p); k++) {
    if (!try_packing(p, false, false) || !repair_order(p)) return;
  }
}

/* The bound is a multiple of the unit, and the highest item may end less than a unit below it. Where even that is above
 * `room`, nothing fits, and nothing is placed. */
planc_status pl_place_within(pl_item *items, int32_t n, int64_t room, int64_t *out_top) {
  placement p = {.unit = PLANC_ALIGNMENT};
  planc_status status = prepare(&p, items, n);
  *out_top = p.bound;
  if (!status && p.bound - p.unit < room) status = place_items(&p, items, n, out_top);
  pl_arena_free(&p.arena);
  return status;
}

static void repair(placement *p, int32_t n_packed);

/* Each order has a few repairs: where it finds places it mostly does so soon, and if not another one may. */
planc_status pl_place_by_repairs(pl_item *items, int32_t n, int32_t n_large, int64_t room, bool *out_placed,
                                 int64_t *out_least) {
  static const order_rule rules[] = {BY_LIFETIME, BY_END, BY_AREA, BY_START};
  placement p = {.unit = PLANC_ALIGNMENT};
  int32_t n_all = 0, n_first = 0;
  int64_t least = INT64_MAX;
  *out_placed = false;
  planc_status status = prepare(&p, items, n);
  assert(status || p.n_order == p.n); /* none is stated */
  if (!status && p.bound <= room && n <= PL_MOST_PACKED) n_all = p.n;
  if (n_all > 0) status = pack_stated(&p);
  if (status) n_all = 0;
  while (n_first < n_all && p.source[n_first] < n_large) n_first++;
  p.enough = room;
  *out_placed = !status && p.bound <= room && p.n == 0;
  for (size_t k = 0; k < sizeof rules / sizeof *rules && n_all > 0 && !*out_placed; k++) {
    for (int32_t i = 0; i < n_all; i++) p.order[i] = i;
    p.n_order = n_first;
    order_by(&p, rules[k]);
    repair(&p, n_first);
    least = pl_min(least, p.best_top);
    if (is_enough(&p)) repair(&p, n_all);
    *out_placed = is_enough(&p);
    if (n_first == 0) break; /* the others come in their own order, whatever the rule */
  }
  *out_least = least < INT64_MAX ? least : p.bound;
  for (int32_t i = 0; *out_placed && i < n; i++) items[i].address = 0;
  for (int32_t k = 0; *out_placed && k < n_all; k++) items[p.source[k]].address = p.best[k];
  pl_arena_free(&p.arena);
  return status;
}

/* Packs so many of the items, in the order as it stands, until they end within what is enough, or have not come near
 * that soon: of 60 such orders that found places in plans of recorded graphs, all had. */
static void repair(placement *p, int32_t n_packed) {
  enum { REPAIRS = 25, SOON = 4, NEAR = 6, MOST_VISITS = 10000000 };
  p->n = p->n_order = n_packed;
  p->best_top = INT64_MAX;
  p->visits = 0;
  for (int32_t k = 0; k <= REPAIRS && p->visits < MOST_VISITS; k++) {
    if (!try_packing(p, false, false) || is_enough(p) || !repair_order(p)) break;
    if (k >= SOON && p->best_top - p->enough > p->enough / NEAR) break;
  }
}

/* --- Keeping the best --------------------------------------------------------------------------------------------- */

static void keep_if_best(placement *p) {
  int64_t top = 0;
  for (int32_t i = 0; i < p->n; i++) {
    if (p->addresses[i] + p->items[i].bytes > top) top = p->addresses[i] + p->items[i].bytes;
  }
  if (top >= p->best_top) return;
  p->best_top = top;
  memcpy(p->best, p->addresses, (size_t)p->n * sizeof *p->best);
}

static planc_status try_sweep(placement *p, bool backwards) {
  for (int32_t i = 0; i < p->n; i++) p->addresses[i] = p->items[i].address;
  PLANC_TRY(pl_placement_sweep(p->items, p->n, p->horizon, backwards, p->addresses, &p->overlap));
  keep_if_best(p);
  return NULL;
}

static bool is_enough(const placement *p) {
  return p->best_top <= p->enough;
}

/* --- Packing in an order ------------------------------------------------------------------------------------------ */

static planc_status pack_stated(placement *p) {
  PLANC_TRY(pl_packed_make(&p->arena, p->items, p->n, p->horizon, p->n - p->n_order, &p->stated));
  for (int32_t i = 0; i < p->n; i++) {
    if (p->items[i].address != PLANC_BLANK) pl_packed_add(&p->stated, i, p->items[i].address);
  }
  return pl_packed_make(&p->arena, p->items, p->n, p->horizon, p->n, &p->packed);
}

/* Packs the items in p->order, with `to_win` only as long as it may be the best; false when the visits are used up. */
static bool try_packing(placement *p, bool tightest, bool to_win) {
  pl_packed_copy(&p->packed, &p->stated);
  for (int32_t k = 0; k < p->n_order; k++) {
    if (p->visits >= (int64_t)VISITS_PER_ITEM * p->n) return false;
    int32_t i = p->order[k];
    p->addresses[i] = pl_packed_find(&p->packed, i, tightest, &p->visits);
    if (to_win && p->addresses[i] + p->items[i].bytes >= p->best_top) return true;
    pl_packed_add(&p->packed, i, p->addresses[i]);
  }
  keep_if_best(p);
  return true;
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

static int compare_keys(const void *left, const void *right) {
  const sort_key *a = left, *b = right;
  if (a->first != b->first) return a->first > b->first ? -1 : 1;
  if (a->second != b->second) return a->second > b->second ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static int64_t lifetime_of(const pl_item *item) {
  int64_t lifetime = 0;
  for (int32_t k = 0; k < PL_SPANS; k++) {
    if (!pl_lifetime_is_empty(item->spans[k])) lifetime += item->spans[k].end - item->spans[k].start;
  }
  return lifetime;
}

static sort_key key_of(const pl_item *item, int32_t index, order_rule rule) {
  int64_t lifetime = lifetime_of(item), area;
  switch (rule) {
    case BY_AREA:
      if (pl_mul_overflow(item->bytes, lifetime, &area)) area = INT64_MAX;
      return (sort_key){area, item->bytes, index};
    case BY_LIFETIME:
      return (sort_key){lifetime, item->bytes, index};
    case BY_START:
      return (sort_key){-(int64_t)item->spans[0].start, item->bytes, index};
    case BY_END:
      return (sort_key){item->spans[0].end, item->bytes, index};
    default:
      return (sort_key){item->bytes, lifetime, index};
  }
}

static void sort_order(placement *p) {
  qsort(p->keys, (size_t)p->n_order, sizeof *p->keys, compare_keys);
  for (int32_t k = 0; k < p->n_order; k++) p->order[k] = p->keys[k].item;
}

/* Moves the items that ended above what is enough to the front of the order; false when they are there already. */
static bool repair_order(placement *p) {
  int32_t n_front = 0, n_back = 0;
  bool changed = false;
  for (int32_t k = 0; k < p->n_order; k++) {
    int32_t i = p->order[k];
    if (p->addresses[i] + p->items[i].bytes > p->enough) {
      changed |= k != n_front;
      p->order[n_front++] = i;
    } else {
      p->spare[n_back++] = i;
    }
  }
  memcpy(&p->order[n_front], p->spare, (size_t)n_back * sizeof *p->order);
  return changed;
}

/* --- Items and their bound ---------------------------------------------------------------------------------------- */

static planc_status take_items(placement *p, const pl_item *items, int32_t n);
static planc_status find_bound(placement *p);

static planc_status prepare(placement *p, const pl_item *items, int32_t n) {
  PLANC_TRY(PL_NEW(&p->arena, &p->source, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->items, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->addresses, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->best, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->order, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->spare, n));
  PLANC_TRY(PL_NEW(&p->arena, &p->keys, n));
  PLANC_TRY(take_items(p, items, n));
  return find_bound(p);
}

/* Takes over the items that have bytes, and makes sure that no sum of addresses and sizes can overflow. */
static planc_status take_items(placement *p, const pl_item *items, int32_t n) {
  int64_t total = 0, stated_top = 0;
  for (int32_t i = 0; i < n; i++) {
    if (takes_no_room(&items[i])) continue;
    pl_item it = items[i];
    it.bytes = pl_align_up(it.bytes, p->unit);
    total = pl_add_saturate(total, it.bytes);
    if (it.address == PLANC_BLANK) {
      p->order[p->n_order++] = p->n;
    } else {
      int64_t end = pl_add_saturate(it.address, it.bytes);
      if (end > stated_top) stated_top = end;
    }
    p->source[p->n] = i;
    p->items[p->n++] = it;
  }
  p->horizon = pl_items_horizon(p->items, p->n);
  /* No choice ends above everything stacked on what is stated. */
  if (pl_add_saturate(total, stated_top) > INT64_MAX / 2) {
    return planc_error(PLANC_BAD_INPUT, "sizes of more than 2^62 bytes together");
  }
  return NULL;
}

static bool takes_no_room(const pl_item *item) {
  return item->bytes <= 0 || !pl_item_lives(item);
}

/* The most bytes that live at one time, and the highest stated end. */
static planc_status find_bound(placement *p) {
  int64_t *live;
  PLANC_TRY(pl_items_live(&p->arena, p->items, p->n, p->horizon, &live));
  for (int32_t t = 0; t <= p->horizon; t++)
    if (live[t] > p->bound) p->bound = live[t];
  for (int32_t i = 0; i < p->n; i++) {
    const pl_item *item = &p->items[i];
    if (item->address != PLANC_BLANK && item->address + item->bytes > p->bound) p->bound = item->address + item->bytes;
  }
  p->enough = p->bound;
  return NULL;
}

int32_t pl_items_horizon(const pl_item *items, int32_t n) {
  int32_t horizon = 0;
  for (int32_t i = 0; i < n; i++)
    if (pl_item_lives(&items[i])) horizon = (int32_t)pl_max(horizon, pl_item_end(&items[i]));
  return horizon;
}

planc_status pl_items_live(pl_arena *arena, const pl_item *items, int32_t n, int32_t horizon, int64_t **out) {
  int64_t *live;
  PLANC_TRY(PL_NEW(arena, &live, (int64_t)horizon + 1));
  for (int32_t i = 0; i < n; i++) {
    for (int32_t k = 0; k < PL_SPANS; k++) {
      pl_lifetime span = items[i].spans[k];
      if (pl_lifetime_is_empty(span) || items[i].bytes <= 0) continue;
      live[span.start] = pl_add_saturate(live[span.start], items[i].bytes);
      live[span.end] -= items[i].bytes;
    }
  }
  for (int32_t t = 1; t <= horizon; t++) live[t] = pl_add_saturate(live[t], live[t - 1]);
  *out = live;
  return NULL;
}
