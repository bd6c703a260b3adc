/* Complete search for addresses (placement_search.h), depth first.
 *
 * Items are placed by ascending address. Each lies on another one or at 0: so every item has one address that it may
 * have next, its `least`, above all placed ones that it lives beside. Of several items with the same least address the
 * one of the higher rank is tried first. The rules that leave something out, but never every placement that there is:
 *
 * - No item is placed below the one before it, nor at the same address where its rank is higher: another order of the
 *   same placement comes to that.
 * - No item is placed where one that is left would fit below it.
 * - A section is a longest stretch in which the same items live. Its floor is the lowest address that it has for those
 *   that are left. Where the floor and the sum of them exceed the room, there is no placement.
 * - Where no item that is left lives on both sides of a boundary of sections, the parts on both sides are searched one
 *   after the other: if one has no placement, nothing in the other can help it.
 * - Other placements of other items may leave the same items with the same least addresses. What has failed is kept in
 *   a table, by keys of 64 bits, and each new failure takes the place of one that it meets there. That two keys are the
 *   same by chance is not reckoned with.
 *
 * Which item comes first decides whether a search takes milliseconds or years. No way to rank items is the best for
 * all, so that each of several gets a share of the visits, which doubles each time. Where a part falls apart, ranks are
 * found anew for each of its parts, by what is left in its sections.
 *
 * The first four rules follow MiniMalloc (Moffitt, ASPLOS 2024: A Lightweight Memory Allocator for Hardware-Accelerated
 * Machine Learning): canonical solutions, dominance, section inference, unallocated and monotonic floors,
 * decomposition. */
#include "planner/memory/placement_search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planc/schedule.h"
#include "planner/memory/search_failures.h"
#include "util/hash.h"
#include "util/math.h"
#include "util/vec.h"

enum { MOST_CHANGES = 1 << 22 };

/* Sections from `start` to before `end`. */
typedef pl_lifetime pl_sections;

/* What an item is ranked by: more comes first. The length of its life is counted in time or in sections. */
typedef enum measure { FULLNESS, LENGTH, AREA, N_MEASURES } measure;
typedef struct ranking {
  measure by[N_MEASURES];
  bool in_sections;
} ranking;
static const ranking rankings[] = {
    {{FULLNESS, LENGTH, AREA}, false}, {{LENGTH, AREA, FULLNESS}, false}, {{AREA, FULLNESS, LENGTH}, false},
    {{FULLNESS, LENGTH, AREA}, true},  {{LENGTH, AREA, FULLNESS}, true},  {{AREA, FULLNESS, LENGTH}, true},
};

typedef struct ranked {
  int64_t by[N_MEASURES];
  int32_t item;
} ranked;

typedef enum change_kind { PLACED, LEAST, FLOOR } change_kind;

/* What to put back. */
typedef struct undo {
  change_kind kind;
  int32_t index; /* an item, or of FLOOR a section */
  int64_t before;
} undo;

/* Sections beside which no item that is left lives, and the items in them by rank: s->ranks, from `first`. */
typedef struct search_part {
  pl_sections sections;
  int32_t first, n;
} search_part;

/* An item that is placed, and the parts into which the rest falls. */
typedef struct placed_level {
  int32_t part;
  pl_failure failure; /* to be kept if it fails */
  int64_t address;    /* the next candidate's is this at least, */
  int32_t rank;       /* and at this one its rank */
  int64_t end;        /* an item that is left could end here: no candidate begins at or above it */
  int32_t n_changes;  /* before the item was placed */
  int32_t n_parts, n_ranks;
  int32_t next_part, end_part; /* parts to search */
} placed_level;

typedef struct address_search {
  pl_arena arena;
  const pl_item *items;
  const int64_t *lengths; /* NULL = by spans */
  int32_t n, n_sections;
  int64_t room;
  ranking ranking;
  pl_sections (*within)[2]; /* of each item, as its spans */
  pl_sections *around;      /* of each item: from its first section to its last */
  bool *is_left;
  int64_t *least, *addresses;
  int64_t *floor, *rest; /* of each section: rest is what is left */
  int32_t *across;       /* of each section: items left that live in the next one as well */
  int32_t *first_of;     /* of each section and one more: in of_section */
  int32_t *of_section;   /* items */
  int32_t *low;          /* of each section: an item that had its floor for its least address */
  placed_level *levels;
  int32_t n_levels;
  ranked *keys;
  pl_failures failures;
  VEC(search_part) parts;
  VEC(int32_t) ranks;
  VEC(undo) changes;
  int64_t visits; /* that are left */
} address_search;

static planc_status prepare(address_search *s, int32_t n);
static planc_status search_by_turns(address_search *s, int64_t *visits, pl_verdict *out);
static planc_status search_all(address_search *s, pl_verdict *out);
static planc_status split(address_search *s, pl_sections sections, int32_t *out_end);
static planc_status fill_part(address_search *s, int32_t index, pl_verdict *out);
static void open_level(address_search *s, int32_t index, int64_t address, int32_t rank);
static planc_status place_next(address_search *s, bool *out_any);
static void take_back(address_search *s, int32_t n_changes);

planc_status pl_placement_search(pl_item *items, const int64_t *lengths, int32_t n, int64_t room, int64_t *visits,
                                 pl_verdict *out) {
  address_search s = {.items = items, .lengths = lengths, .room = room};
  *out = PL_UNDECIDED;
  if (n > PL_SEARCHED_ITEMS) return NULL;
  planc_status status = prepare(&s, n);
  if (!status) status = search_by_turns(&s, visits, out);
  for (int32_t i = 0; !status && *out == PL_PLACED && i < n; i++) items[i].address = s.addresses[i];
  VEC_FREE(&s.parts);
  VEC_FREE(&s.ranks);
  VEC_FREE(&s.changes);
  pl_failures_free(&s.failures);
  pl_arena_free(&s.arena);
  return status;
}

static planc_status search_by_turns(address_search *s, int64_t *visits, pl_verdict *out) {
  int64_t share = 2 * (int64_t)s->n * (s->n + s->n_sections), n_rankings = sizeof rankings / sizeof *rankings;
  for (int64_t turn = 0; *out == PL_UNDECIDED && *visits > 0; turn++) {
    int64_t most = pl_min(share, *visits);
    s->ranking = rankings[turn % n_rankings];
    s->visits = most;
    PLANC_TRY(search_all(s, out));
    *visits -= most - pl_max(s->visits, 0);
    if (*out != PL_PLACED) take_back(s, 0);
    if (turn % n_rankings == n_rankings - 1) share = pl_mul_saturate(share, 2);
  }
  return NULL;
}

static planc_status search_all(address_search *s, pl_verdict *out) {
  int32_t end;
  s->parts.len = s->ranks.len = 0;
  PLANC_TRY(split(s, (pl_sections){0, s->n_sections}, &end));
  *out = PL_PLACED;
  for (int32_t p = 0; *out == PL_PLACED && p < end; p++) PLANC_TRY(fill_part(s, p, out));
  return NULL;
}

/* A level is done when each of its parts is: what is placed then stays. */
static planc_status fill_part(address_search *s, int32_t index, pl_verdict *out) {
  *out = PL_UNDECIDED;
  s->n_levels = 0;
  open_level(s, index, 0, 0);
  while (s->visits > 0 && s->changes.len < MOST_CHANGES) {
    bool any;
    PLANC_TRY(place_next(s, &any));
    if (!any) {
      PLANC_TRY(pl_failures_keep(&s->failures, &s->levels[--s->n_levels].failure));
      if (s->n_levels > 0) continue;
      *out = PL_IMPOSSIBLE;
      return NULL;
    }
    while (s->levels[s->n_levels - 1].next_part == s->levels[s->n_levels - 1].end_part) {
      if (--s->n_levels == 0) {
        *out = PL_PLACED;
        return NULL;
      }
    }
    placed_level *at = &s->levels[s->n_levels - 1];
    int32_t next = at->next_part++;
    bool goes_on = next == at->part;
    open_level(s, next, goes_on ? at->address : 0, goes_on ? at->rank : 0);
  }
  return NULL;
}

/* --- Placing an item ---------------------------------------------------------------------------------------------- */

static int32_t find_candidate(const address_search *s, const search_part *p, const placed_level *at);
static planc_status place(address_search *s, const search_part *p, int32_t item);
static bool is_hopeless(const address_search *s, const search_part *p, int64_t address);
static planc_status fall_apart(address_search *s, const search_part *p, int32_t item, placed_level *at);

/* Of an item and its least address. What is too low for one is no candidate before another item raises it, wherever it
 * is. Keys of several are added up. */
static uint64_t key_of(int32_t item, int64_t least) {
  uint64_t key = PL_HASH_START;
  pl_hash_word(&key, (uint64_t)least);
  pl_hash_word(&key, (uint64_t)item);
  key *= UINT64_C(0x9E3779B97F4A7C15);
  return key ^ key >> 29;
}

/* A candidate begins at `address` and has `rank` there, or comes behind that. */
static void open_level(address_search *s, int32_t index, int64_t address, int32_t rank) {
  placed_level *at = &s->levels[s->n_levels++];
  const search_part p = s->parts.data[index];
  *at = (placed_level){.part = index, .address = address, .rank = rank, .end = INT64_MAX, .failure.address = address};
  at->n_changes = (int32_t)s->changes.len;
  at->n_parts = (int32_t)s->parts.len;
  at->n_ranks = (int32_t)s->ranks.len;
  for (int32_t k = 0; k < p.n; k++) {
    int32_t i = s->ranks.data[p.first + k];
    if (!s->is_left[i]) continue;
    bool too_low = s->least[i] < address || (s->least[i] == address && k < rank);
    at->end = pl_min(at->end, s->least[i] + s->items[i].bytes);
    at->failure.key += key_of(i, too_low ? PLANC_BLANK : s->least[i]);
  }
  if (pl_failures_know(&s->failures, &at->failure)) at->end = 0;
}

/* Takes the level's item back, if it has one, and places the next candidate that is not hopeless. */
static planc_status place_next(address_search *s, bool *out_any) {
  placed_level *at = &s->levels[s->n_levels - 1];
  const search_part p = s->parts.data[at->part];
  s->parts.len = at->n_parts;
  s->ranks.len = at->n_ranks;
  *out_any = false;
  while (!*out_any) {
    take_back(s, at->n_changes);
    int32_t rank = find_candidate(s, &p, at);
    if (rank < 0) return NULL;
    int32_t item = s->ranks.data[p.first + rank];
    at->address = s->least[item];
    at->rank = rank + 1;
    PLANC_TRY(place(s, &p, item));
    *out_any = !is_hopeless(s, &p, at->address);
    if (*out_any) PLANC_TRY(fall_apart(s, &p, item, at));
    s->visits -= 2 * (int64_t)p.n + p.sections.end - p.sections.start;
  }
  return NULL;
}

/* The rank of the next candidate, -1 = there is none. */
static int32_t find_candidate(const address_search *s, const search_part *p, const placed_level *at) {
  const int32_t *ranks = &s->ranks.data[p->first];
  int64_t lowest = at->end;
  int32_t found = -1;
  for (int32_t k = 0; k < p->n; k++) {
    int64_t least = s->least[ranks[k]];
    bool comes_first = least < lowest && (least > at->address || (least == at->address && k >= at->rank));
    if (!comes_first || !s->is_left[ranks[k]]) continue;
    lowest = least;
    found = k;
  }
  return found;
}

static bool meet(pl_sections a, pl_sections b) {
  return a.start < b.end && b.start < a.end;
}

static bool live_beside(const address_search *s, int32_t i, int32_t j) {
  if (!meet(s->around[i], s->around[j])) return false;
  for (int32_t k = 0; k < 4; k++)
    if (meet(s->within[i][k / 2], s->within[j][k % 2])) return true;
  return false;
}

static planc_status raise_floor(address_search *s, int32_t section);

static planc_status place(address_search *s, const search_part *p, int32_t item) {
  int64_t bytes = s->items[item].bytes, end = s->least[item] + bytes;
  pl_sections raised = s->around[item];
  VEC_PUSH(&s->changes, ((undo){PLACED, item, 0}));
  s->addresses[item] = s->least[item];
  s->is_left[item] = false;
  for (int32_t k = 0; k < PL_SPANS; k++) {
    for (int32_t c = s->within[item][k].start; c < s->within[item][k].end; c++) {
      VEC_PUSH(&s->changes, ((undo){FLOOR, c, s->floor[c]}));
      s->floor[c] = end;
      s->rest[c] -= bytes;
    }
  }
  for (int32_t c = raised.start; c + 1 < raised.end; c++) s->across[c]--;
  for (int32_t k = 0; k < p->n; k++) {
    int32_t i = s->ranks.data[p->first + k];
    if (s->least[i] >= end || !s->is_left[i] || !live_beside(s, item, i)) continue;
    VEC_PUSH(&s->changes, ((undo){LEAST, i, s->least[i]}));
    s->least[i] = end;
    raised.start = s->around[i].start < raised.start ? s->around[i].start : raised.start;
    raised.end = s->around[i].end > raised.end ? s->around[i].end : raised.end;
  }
  for (int32_t c = raised.start; c < raised.end; c++) PLANC_TRY(raise_floor(s, c));
  return NULL;
}

/* No floor is below the least address of all that is left in its section. */
static planc_status raise_floor(address_search *s, int32_t section) {
  int32_t *low = &s->low[section];
  int64_t least = INT64_MAX;
  if (s->is_left[*low] && s->least[*low] <= s->floor[section]) return NULL;
  for (int32_t k = s->first_of[section]; k < s->first_of[section + 1]; k++) {
    int32_t i = s->of_section[k];
    if (!s->is_left[i] || s->least[i] >= least) continue;
    least = s->least[i];
    *low = i;
  }
  s->visits -= s->first_of[section + 1] - s->first_of[section];
  if (least == INT64_MAX || least <= s->floor[section]) return NULL;
  VEC_PUSH(&s->changes, ((undo){FLOOR, section, s->floor[section]}));
  s->floor[section] = least;
  return NULL;
}

static void take_back(address_search *s, int32_t n_changes) {
  while (s->changes.len > n_changes) {
    const undo *c = &s->changes.data[--s->changes.len];
    if (c->kind == FLOOR) {
      s->floor[c->index] = c->before;
    } else if (c->kind == LEAST) {
      s->least[c->index] = c->before;
    } else {
      const pl_sections *within = s->within[c->index], around = s->around[c->index];
      for (int32_t k = 0; k < PL_SPANS; k++)
        for (int32_t i = within[k].start; i < within[k].end; i++) s->rest[i] += s->items[c->index].bytes;
      for (int32_t i = around.start; i + 1 < around.end; i++) s->across[i]++;
      s->is_left[c->index] = true;
    }
  }
}

/* What is left begins no lower than what was placed last. */
static bool is_hopeless(const address_search *s, const search_part *p, int64_t address) {
  for (int32_t c = p->sections.start; c < p->sections.end; c++)
    if (pl_max(s->floor[c], address) + s->rest[c] > s->room) return true;
  return false;
}

/* --- Parts -------------------------------------------------------------------------------------------------------- */

static planc_status add_part(address_search *s, pl_sections sections);

/* Finds the parts that the level is to search once the item is placed: its own again, or those that it falls into. */
static planc_status fall_apart(address_search *s, const search_part *p, int32_t item, placed_level *at) {
  bool is_whole = true, any = false;
  for (int32_t c = s->around[item].start; is_whole && c + 1 < s->around[item].end; c++) is_whole = s->across[c] > 0;
  if (!is_whole) {
    at->next_part = (int32_t)s->parts.len;
    return split(s, p->sections, &at->end_part);
  }
  for (int32_t k = 0; !any && k < p->n; k++) any = s->is_left[s->ranks.data[p->first + k]];
  at->next_part = at->part;
  at->end_part = at->part + any;
  return NULL;
}

static planc_status split(address_search *s, pl_sections sections, int32_t *out_end) {
  int32_t start = sections.start;
  for (int32_t c = sections.start; c < sections.end; c++) {
    if (c + 1 < sections.end && s->across[c] > 0) continue;
    PLANC_TRY(add_part(s, (pl_sections){start, c + 1}));
    start = c + 1;
  }
  *out_end = (int32_t)s->parts.len;
  return NULL;
}

static int compare_ranked(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  for (int32_t k = 0; k < N_MEASURES; k++)
    if (a->by[k] != b->by[k]) return a->by[k] > b->by[k] ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static ranked rank_of(const address_search *s, int32_t item);

/* Adds the part of these sections, unless nothing is left there. */
static planc_status add_part(address_search *s, pl_sections sections) {
  search_part p = {.sections = sections, .first = (int32_t)s->ranks.len};
  for (int32_t c = sections.start; c < sections.end; c++) {
    for (int32_t k = s->first_of[c]; k < s->first_of[c + 1]; k++) {
      int32_t i = s->of_section[k];
      if (s->is_left[i] && s->around[i].start == c) s->keys[p.n++] = rank_of(s, i);
    }
    s->visits -= s->first_of[c + 1] - s->first_of[c];
  }
  if (p.n == 0) return NULL;
  qsort(s->keys, (size_t)p.n, sizeof *s->keys, compare_ranked);
  for (int32_t k = 0; k < p.n; k++) VEC_PUSH(&s->ranks, s->keys[k].item);
  VEC_PUSH(&s->parts, p);
  return NULL;
}

static ranked rank_of(const address_search *s, int32_t item) {
  int64_t of[N_MEASURES] = {0};
  for (int32_t k = 0; k < PL_SPANS; k++) {
    const pl_sections within = s->within[item][k];
    for (int32_t c = within.start; c < within.end; c++) of[FULLNESS] = pl_max(of[FULLNESS], s->rest[c]);
    const pl_lifetime span = s->ranking.in_sections ? within : s->items[item].spans[k];
    if (!pl_lifetime_is_empty(span)) of[LENGTH] += span.end - span.start;
  }
  if (s->lengths && !s->ranking.in_sections) of[LENGTH] = s->lengths[item];
  of[AREA] = pl_mul_saturate(of[LENGTH], s->items[item].bytes);
  ranked r = {.item = item};
  for (int32_t k = 0; k < N_MEASURES; k++) r.by[k] = of[s->ranking.by[k]];
  return r;
}

/* --- Sections ----------------------------------------------------------------------------------------------------- */

/* One of an item's spans begins or ends. */
typedef struct event {
  int32_t position, item, span;
  bool begins;
} event;

static planc_status find_sections(address_search *s);
static planc_status list_sections(address_search *s);

static planc_status prepare(address_search *s, int32_t n) {
  s->n = n;
  PLANC_TRY(PL_NEW(&s->arena, &s->within, n));
  PLANC_TRY(PL_NEW(&s->arena, &s->around, n));
  PLANC_TRY(PL_NEW(&s->arena, &s->is_left, n));
  PLANC_TRY(PL_NEW(&s->arena, &s->least, n));
  PLANC_TRY(PL_NEW(&s->arena, &s->addresses, n));
  PLANC_TRY(PL_NEW(&s->arena, &s->levels, n + 1));
  PLANC_TRY(PL_NEW(&s->arena, &s->keys, n));
  PLANC_TRY(find_sections(s));
  PLANC_TRY(PL_NEW(&s->arena, &s->floor, s->n_sections));
  PLANC_TRY(PL_NEW(&s->arena, &s->rest, s->n_sections));
  PLANC_TRY(PL_NEW(&s->arena, &s->across, s->n_sections));
  PLANC_TRY(PL_NEW(&s->arena, &s->low, s->n_sections));
  PLANC_TRY(PL_NEW(&s->arena, &s->first_of, (int64_t)s->n_sections + 1));
  return list_sections(s);
}

static int compare_events(const void *left, const void *right) {
  const event *a = left, *b = right;
  if (a->position != b->position) return a->position < b->position ? -1 : 1;
  return a->begins - b->begins;
}

/* A section begins where an item does, if one has ended since the last section began. */
static planc_status find_sections(address_search *s) {
  event *events;
  size_t n_events = 0;
  bool has_ended = true;
  PLANC_TRY(PL_NEW(&s->arena, &events, INT64_C(4) * s->n));
  for (int32_t i = 0; i < s->n; i++) {
    assert(s->items[i].bytes > 0 && s->items[i].address == PLANC_BLANK);
    for (int32_t k = 0; k < PL_SPANS; k++) {
      pl_lifetime span = s->items[i].spans[k];
      if (pl_lifetime_is_empty(span)) continue;
      events[n_events++] = (event){span.start, i, k, true};
      events[n_events++] = (event){span.end, i, k, false};
    }
  }
  qsort(events, n_events, sizeof *events, compare_events);
  for (size_t e = 0; e < n_events; e++) {
    pl_sections *within = &s->within[events[e].item][events[e].span];
    if (!events[e].begins) {
      within->end = s->n_sections;
      has_ended = true;
      continue;
    }
    if (has_ended) s->n_sections++;
    has_ended = false;
    within->start = s->n_sections - 1;
  }
  return NULL;
}

/* Everything is left, and each section lists its items. */
static planc_status list_sections(address_search *s) {
  for (int32_t i = 0; i < s->n; i++) {
    pl_sections *around = &s->around[i];
    *around = (pl_sections){s->n_sections, 0};
    s->is_left[i] = true;
    for (int32_t k = 0; k < PL_SPANS; k++) {
      pl_sections within = s->within[i][k];
      if (pl_lifetime_is_empty(within)) continue;
      around->start = within.start < around->start ? within.start : around->start;
      around->end = within.end > around->end ? within.end : around->end;
      for (int32_t c = within.start; c < within.end; c++) {
        s->rest[c] += s->items[i].bytes;
        s->first_of[c + 1]++;
      }
    }
    for (int32_t c = around->start; c + 1 < around->end; c++) s->across[c]++;
  }
  for (int32_t c = 0; c < s->n_sections; c++) s->first_of[c + 1] += s->first_of[c];
  PLANC_TRY(PL_NEW(&s->arena, &s->of_section, s->first_of[s->n_sections]));
  int32_t *n_of;
  PLANC_TRY(PL_NEW(&s->arena, &n_of, s->n_sections));
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = 0; k < PL_SPANS; k++)
      for (int32_t c = s->within[i][k].start; c < s->within[i][k].end; c++)
        s->of_section[s->first_of[c] + n_of[c]++] = i;
  for (int32_t c = 0; c < s->n_sections; c++) s->low[c] = s->of_section[s->first_of[c]];
  return NULL;
}
