/* Addresses within a room (room_places.h). */
#include "planner/memory/room_places.h"

#include "planc/schedule.h"
#include "planner/memory/placement_cache.h"
#include "planner/memory/placement_search.h"
#include "util/math.h"

static int64_t put_lowest(pl_item *items, int32_t n);
static planc_status place_within(pl_arena *arena, pl_item *items, int32_t n, int64_t room, int64_t base,
                                 int64_t *out_top);

planc_status pl_place_in_room(pl_arena *arena, planc_placement_cache *cache, pl_item *items, int32_t n, int64_t room,
                              int64_t *out_top) {
  pl_overlap none;
  const int64_t base = put_lowest(items, n);
  PLANC_TRY(pl_placement_cache_place(cache, items, n, out_top, &none));
  return *out_top > room ? place_within(arena, items, n, room, base, out_top) : NULL;
}

/* What lives all the time gets addresses from 0 on: below it nothing else finds a place at any time, so that it is in
 * nobody's way there, and fewer are left to search addresses for. Returns the address where it ends. */
static int64_t put_lowest(pl_item *items, int32_t n) {
  int64_t top = 0;
  const int32_t horizon = pl_items_horizon(items, n);
  for (int32_t i = 0; i < n; i++) {
    pl_item *item = &items[i];
    if (item->bytes <= 0 || !pl_item_stays(item, horizon)) continue;
    item->address = top;
    top = pl_add_saturate(top, pl_align_up(item->bytes, PLANC_ALIGNMENT));
  }
  return top;
}

/* The items that addresses are searched for. */
typedef struct item_part {
  pl_item *items;  /* without addresses, sizes rounded up; the large ones first */
  int32_t *source; /* by item: which one of all it is */
  int32_t n, n_large;
} item_part;

static planc_status collect_movable(pl_arena *arena, const pl_item *items, int32_t n, int64_t large, int64_t base,
                                    item_part *out);
static planc_status search_places(item_part *part, int64_t room, int64_t *out_top);

/* What lies below `base` stays there; the others are placed by repairs, or else, if these come near the room, by
 * search. Where not all find a place within the room they keep the addresses that they have. */
static planc_status place_within(pl_arena *arena, pl_item *items, int32_t n, int64_t room, int64_t base,
                                 int64_t *out_top) {
  enum { SMALL = 4096 }; /* part of the room that a small item is less than: with 1024 they often find no place */
  enum { NEAR = 8 };     /* part of the room that repairs may miss it by: none was found by search beyond */
  const int64_t above = (room - base) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  item_part part;
  bool is_placed;
  int64_t top, least;
  if (base >= room) return NULL;
  PLANC_TRY(collect_movable(arena, items, n, pl_max(room / SMALL, 1), base, &part));
  PLANC_TRY(pl_place_by_repairs(part.items, part.n, part.n_large, above, &is_placed, &least));
  if (!is_placed && least - above > above / NEAR) return NULL;
  if (is_placed)
    PLANC_TRY(pl_place(part.items, part.n, &top, NULL));
  else
    PLANC_TRY(search_places(&part, above, &top));
  if (top > above) return NULL;
  for (int32_t k = 0; k < part.n; k++) items[part.source[k]].address = base + part.items[k].address;
  *out_top = base + top;
  return NULL;
}

static planc_status search_large(item_part *part, int64_t room, bool *out_placed);

/* Places the large ones by complete search, and the small ones, which are many and take little, between them. Where
 * these end above the room the large ones are placed again, in so much less of it, and then in more and more less.
 * *out_top is above the room where that finds no places. */
static planc_status search_places(item_part *part, int64_t room, int64_t *out_top) {
  enum { TIMES = 4 };
  int64_t for_large = room;
  *out_top = INT64_MAX;
  for (int32_t k = 0; k < TIMES && for_large > 0 && room < *out_top; k++) {
    bool is_placed = false;
    for (int32_t i = 0; i < part->n; i++) part->items[i].address = PLANC_BLANK;
    PLANC_TRY(search_large(part, for_large, &is_placed));
    if (!is_placed) return NULL;
    PLANC_TRY(pl_place(part->items, part->n, out_top, NULL));
    for_large -= pl_mul_saturate(pl_max(*out_top - room, 0), 1 << k);
  }
  return NULL;
}

/* It ends undecided after so many visits. Where none is large there are thousands, for which a search is of no use. */
static planc_status search_large(item_part *part, int64_t room, bool *out_placed) {
  enum { VISITS_PER_ITEM = 20000, MOST_VISITS = 12000000 };
  int64_t visits = pl_min((int64_t)VISITS_PER_ITEM * part->n, MOST_VISITS);
  pl_verdict verdict;
  if (part->n_large == 0) return NULL;
  PLANC_TRY(pl_placement_search(part->items, NULL, part->n_large, room, &visits, &verdict));
  *out_placed = verdict == PL_PLACED;
  return NULL;
}

static void add_movable(const pl_item *items, int32_t n, int64_t least, int64_t most, int64_t base, item_part *out);

/* Of what lies at `base` or above it: items of at least `large` bytes, then the others. */
static planc_status collect_movable(pl_arena *arena, const pl_item *items, int32_t n, int64_t large, int64_t base,
                                    item_part *out) {
  *out = (item_part){.n = 0};
  PLANC_TRY(PL_NEW(arena, &out->items, n));
  PLANC_TRY(PL_NEW(arena, &out->source, n));
  add_movable(items, n, large, INT64_MAX, base, out);
  out->n_large = out->n;
  add_movable(items, n, 1, large - 1, base, out);
  return NULL;
}

static void add_movable(const pl_item *items, int32_t n, int64_t least, int64_t most, int64_t base, item_part *out) {
  for (int32_t i = 0; i < n; i++) {
    const pl_item *item = &items[i];
    if (item->bytes < least || item->bytes > most || item->address < base) continue;
    out->items[out->n] = *item;
    out->items[out->n].bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT);
    out->items[out->n].address = PLANC_BLANK;
    out->source[out->n++] = i;
  }
}
