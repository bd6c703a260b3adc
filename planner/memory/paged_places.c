/* Offline placement in virtual memory (paged_places.h).
 *
 * Items get pages in the order in which they begin to live. Were each alive once, any free page would do and there
 * would be as many as are needed at a time. But some are taken for later: by what comes back to its place at the end of
 * the period, and by what shares pages. So an item gets those pages that are taken next, among those that are free as
 * long as it needs them: what lives longer finds the others. Only pages that are taken for later, or in parts, are
 * looked at one by one; each of the others is one item's as a whole, or anybody's.
 *
 * An item's first bytes may be the last of a page, and its last bytes the first of one, where another item has the
 * rest: so that hardly anything is lost inside pages. */
#include "planner/memory/paged_places.h"

#include <stdlib.h>

#include "util/heap.h"
#include "util/math.h"
#include "util/vec.h"

enum { MAX_MAPPED = 1 << 22, NONE = -1, N_SPANS = 2 };

/* When bytes [low, high) of a page are taken that is looked at by itself. */
typedef struct page_taking {
  pl_lifetime span;
  int64_t low, high;
  int32_t next; /* the page's next one in time, NONE = there is none */
} page_taking;

/* The other pages of an item, [first, first + n) of those that are held, and where it ends. */
typedef struct page_holder {
  int32_t end;
  int64_t first, n;
} page_holder;

/* A page that is free for an item, and the position at which it is taken next. */
typedef struct page_choice {
  int32_t until, page;
} page_choice;

/* The bytes at both ends of a page that are free for an item, where some between them are taken. */
typedef struct page_part {
  int64_t at_first, at_last;
  int32_t page;
} page_part;

typedef struct page_placing {
  pl_arena *arena;
  pl_item *items;
  int32_t n;
  int32_t horizon; /* the position behind the last */
  int64_t page_bytes;
  VEC(page_taking) takings;
  VEC(int32_t) first;       /* by page: its first taking that has not ended; of as many pages as the arena has */
  VEC(int32_t) watched;     /* pages that have takings */
  VEC(int32_t) free;        /* pages that nobody has, a heap */
  VEC(int32_t) held;        /* pages that are one item's as a whole, once and for none later, by item */
  VEC(page_holder) holders; /* whose these are, a heap */
  VEC(page_choice) soon;    /* free for the item, but taken later */
  VEC(int32_t) chosen;      /* the item's whole pages */
  VEC(int32_t) parted;      /* pages that items have had parts of */
  VEC(page_part) parts;     /* of them, what is free for the item */
  VEC(planc_mapping) mappings;
  int64_t n_mapped; /* pages of the addresses so far */
} page_placing;

static planc_status place(page_placing *p, bool *out_placed);
static planc_status place_shared(page_placing *p, bool *out_placed);
static planc_status place_others(page_placing *p);
static bool are_too_many(const page_placing *p);
static planc_status take_mappings(const page_placing *p, planc_virtual_memory *out);

planc_status pl_place_in_pages(pl_arena *arena, pl_item *items, int32_t n, int64_t page_bytes, bool *out_placed,
                               planc_virtual_memory *out) {
  page_placing p = {
      .arena = arena, .items = items, .n = n, .horizon = pl_items_horizon(items, n), .page_bytes = page_bytes};
  planc_status status = place(&p, out_placed);
  if (!status && *out_placed) status = take_mappings(&p, out);
  VEC_FREE(&p.takings);
  VEC_FREE(&p.first);
  VEC_FREE(&p.watched);
  VEC_FREE(&p.free);
  VEC_FREE(&p.held);
  VEC_FREE(&p.holders);
  VEC_FREE(&p.soon);
  VEC_FREE(&p.chosen);
  VEC_FREE(&p.parted);
  VEC_FREE(&p.parts);
  VEC_FREE(&p.mappings);
  return status;
}

static planc_status place(page_placing *p, bool *out_placed) {
  PLANC_TRY(place_shared(p, out_placed));
  if (*out_placed && are_too_many(p)) *out_placed = false;
  return *out_placed ? place_others(p) : NULL;
}

static planc_status take_mappings(const page_placing *p, planc_virtual_memory *out) {
  *out = (planc_virtual_memory){.arena_bytes = (int64_t)p->first.len * p->page_bytes,
                                .chunk_bytes = p->page_bytes,
                                .paged = true,
                                .n = (int32_t)p->mappings.len};
  return pl_arena_copy(p->arena, p->mappings.data, p->mappings.len, sizeof *p->mappings.data, (void *)&out->mappings);
}

/* What shares pages: what is small, and what lives all the time, between which nothing is lost. */
static bool is_shared(const page_placing *p, const pl_item *item) {
  return item->bytes <= p->page_bytes || pl_item_stays(item, p->horizon);
}

static planc_status map_run(page_placing *p, int64_t first, int64_t n) {
  p->n_mapped += n;
  VEC_PUSH(&p->mappings, ((planc_mapping){first, n}));
  return NULL;
}

/* Keeps the page's takings in the order of time. A page that has none is watched from now on. */
static planc_status take(page_placing *p, int32_t page, int64_t low, int64_t high, pl_lifetime span) {
  int32_t before = NONE, after = p->first.data[page], own = (int32_t)p->takings.len;
  if (pl_lifetime_is_empty(span)) return NULL;
  for (; after != NONE && p->takings.data[after].span.start < span.start; after = p->takings.data[after].next)
    before = after;
  if (p->takings.len == INT32_MAX) return planc_error(PLANC_INTERNAL, "too many pages are taken");
  if (p->first.data[page] == NONE) VEC_PUSH(&p->watched, page);
  VEC_PUSH(&p->takings, ((page_taking){span, low, high, after}));
  if (before == NONE)
    p->first.data[page] = own;
  else
    p->takings.data[before].next = own;
  return NULL;
}

/* --- What shares pages -------------------------------------------------------------------------------------------- */

typedef struct page_piece {
  int32_t page;
  pl_lifetime span;
} page_piece;

static planc_status list_pieces(const page_placing *p, const pl_item *shared, int32_t n, page_piece **out,
                                int64_t *out_n);
static planc_status take_pieces(page_placing *p, page_piece *pieces, int64_t n);
static void forget_full(page_placing *p);

/* They lie at the beginning of the arena, at addresses that are the arena's. */
static planc_status place_shared(page_placing *p, bool *out_placed) {
  pl_item *shared;
  int32_t *source, n = 0;
  page_piece *pieces;
  int64_t top, n_pieces, n_pages;
  PLANC_TRY(PL_NEW(p->arena, &shared, p->n));
  PLANC_TRY(PL_NEW(p->arena, &source, p->n));
  for (int32_t i = 0; i < p->n; i++) {
    if (!is_shared(p, &p->items[i])) continue;
    shared[n] = p->items[i];
    source[n++] = i;
  }
  PLANC_TRY(pl_place(shared, n, &top, NULL));
  for (int32_t k = 0; k < n; k++) p->items[source[k]].address = shared[k].address;
  n_pages = pl_align_up(top, p->page_bytes) / p->page_bytes;
  *out_placed = n_pages <= MAX_MAPPED;
  if (n_pages == 0 || !*out_placed) return NULL;
  PLANC_TRY(map_run(p, 0, n_pages));
  for (int64_t c = 0; c < n_pages; c++) VEC_PUSH(&p->first, NONE);
  PLANC_TRY(list_pieces(p, shared, n, &pieces, &n_pieces));
  PLANC_TRY(take_pieces(p, pieces, n_pieces));
  forget_full(p);
  return NULL;
}

/* Nobody else ever has what is taken at all positions. */
static void forget_full(page_placing *p) {
  int64_t n = 0;
  for (int64_t k = 0; k < p->watched.len; k++) {
    const pl_lifetime first = p->takings.data[p->first.data[p->watched.data[k]]].span;
    if (first.start > 0 || first.end < p->horizon) p->watched.data[n++] = p->watched.data[k];
  }
  p->watched.len = n;
}

typedef struct page_range {
  int64_t first, end;
} page_range;

static page_range pages_of(const page_placing *p, const pl_item *item) {
  if (item->bytes <= 0) return (page_range){0, 0};
  return (page_range){item->address / p->page_bytes, (item->address + item->bytes - 1) / p->page_bytes + 1};
}

static planc_status list_pieces(const page_placing *p, const pl_item *shared, int32_t n, page_piece **out,
                                int64_t *out_n) {
  page_piece *pieces;
  int64_t most = 0, n_pieces = 0;
  for (int32_t k = 0; k < n; k++) most += N_SPANS * (pages_of(p, &shared[k]).end - pages_of(p, &shared[k]).first);
  PLANC_TRY(PL_NEW(p->arena, &pieces, most));
  for (int32_t k = 0; k < n; k++) {
    const page_range pages = pages_of(p, &shared[k]);
    for (int64_t c = pages.first; c < pages.end; c++)
      for (int32_t s = 0; s < N_SPANS; s++)
        if (!pl_lifetime_is_empty(shared[k].spans[s]))
          pieces[n_pieces++] = (page_piece){(int32_t)c, shared[k].spans[s]};
  }
  *out = pieces;
  *out_n = n_pieces;
  return NULL;
}

static int latest_first(const void *left, const void *right) {
  const page_piece *a = left, *b = right;
  if (a->page != b->page) return a->page < b->page ? -1 : 1;
  return (a->span.start < b->span.start) - (a->span.start > b->span.start);
}

/* What overlaps or meets is one taking. The latest of a page come first, so that each is put ahead of all others. */
static planc_status take_pieces(page_placing *p, page_piece *pieces, int64_t n) {
  if (n > 0) qsort(pieces, (size_t)n, sizeof *pieces, latest_first);
  for (int64_t k = 0; k < n; k++) {
    const int32_t first = p->first.data[pieces[k].page];
    if (first == NONE || pieces[k].span.end < p->takings.data[first].span.start) {
      PLANC_TRY(take(p, pieces[k].page, 0, p->page_bytes, pieces[k].span));
      continue;
    }
    pl_lifetime *span = &p->takings.data[first].span;
    span->start = pieces[k].span.start;
    span->end = (int32_t)pl_max(span->end, pieces[k].span.end);
  }
  return NULL;
}

/* --- What has pages of its own ------------------------------------------------------------------------------------ */

typedef struct starting {
  int32_t start, item;
} starting;

/* Where an item lies: on the last `head` bytes of a page, whole pages, and the first `tail` bytes of a page. */
typedef struct split {
  int64_t head, tail, n_whole;
  int32_t head_page, tail_page; /* NONE = another whole page is to be parted for its tail */
} split;

static planc_status list_others(const page_placing *p, starting **out, int32_t *out_n);
static planc_status release_ended(page_placing *p, int32_t start);
static planc_status choose_split(page_placing *p, const pl_item *item, split *out);
static planc_status choose_whole(page_placing *p, const pl_item *item, int64_t needed);
static planc_status part_page(page_placing *p, split *of);
static planc_status map_split(page_placing *p, const split *of, pl_item *item);
static planc_status take_split(page_placing *p, const split *of, const pl_item *item);

static planc_status place_others(page_placing *p) {
  starting *order;
  int32_t n;
  PLANC_TRY(list_others(p, &order, &n));
  for (int32_t k = 0; k < n; k++) {
    pl_item *item = &p->items[order[k].item];
    split of = {.head = 0};
    PLANC_TRY(release_ended(p, order[k].start));
    PLANC_TRY(choose_split(p, item, &of));
    PLANC_TRY(choose_whole(p, item, of.n_whole + (of.tail > 0 && of.tail_page == NONE)));
    PLANC_TRY(part_page(p, &of));
    PLANC_TRY(map_split(p, &of, item));
    PLANC_TRY(take_split(p, &of, item));
  }
  return NULL;
}

/* Each may have a part of a page at both ends. */
static bool are_too_many(const page_placing *p) {
  int64_t n = p->n_mapped;
  for (int32_t i = 0; i < p->n; i++)
    if (!is_shared(p, &p->items[i])) n = pl_add_saturate(n, p->items[i].bytes / p->page_bytes + 2);
  return n > MAX_MAPPED;
}

static bool ends_before(const page_placing *p, page_holder a, page_holder b) {
  (void)p;
  return a.end != b.end ? a.end < b.end : a.first < b.first;
}
PL_HEAP(holders, page_holder, page_placing, ends_before)

static bool lies_before(const page_placing *p, int32_t a, int32_t b) {
  (void)p;
  return a < b;
}
PL_HEAP(free_pages, int32_t, page_placing, lies_before)

static planc_status set_free(page_placing *p, int32_t page) {
  VEC_PUSH(&p->free, page);
  free_pages_rise(p, p->free.data, p->free.len);
  return NULL;
}

static planc_status release_watched(page_placing *p, int32_t start);

/* Pages of items that have ended at `start`, where no item that is still to be placed begins before. */
static planc_status release_ended(page_placing *p, int32_t start) {
  while (p->holders.len > 0 && p->holders.data[0].end <= start) {
    const page_holder ended = p->holders.data[0];
    for (int64_t k = ended.first; k < ended.first + ended.n; k++) PLANC_TRY(set_free(p, p->held.data[k]));
    p->holders.data[0] = p->holders.data[--p->holders.len];
    holders_sink(p, p->holders.data, p->holders.len);
  }
  return release_watched(p, start);
}

/* Forgets takings that have ended, and watches pages no more that have none left. */
static planc_status release_watched(page_placing *p, int32_t start) {
  int64_t n = 0;
  for (int64_t k = 0; k < p->watched.len; k++) {
    const int32_t page = p->watched.data[k];
    int32_t *first = &p->first.data[page];
    while (*first != NONE && p->takings.data[*first].span.end <= start) *first = p->takings.data[*first].next;
    if (*first == NONE)
      PLANC_TRY(set_free(p, page));
    else
      p->watched.data[n++] = page;
  }
  p->watched.len = n;
  return NULL;
}

static planc_status take_whole(page_placing *p, const pl_item *item);

static planc_status take_split(page_placing *p, const split *of, const pl_item *item) {
  for (int32_t s = 0; s < N_SPANS; s++) {
    const pl_lifetime span = item->spans[s];
    if (of->head > 0) PLANC_TRY(take(p, of->head_page, p->page_bytes - of->head, p->page_bytes, span));
    if (of->tail > 0) PLANC_TRY(take(p, of->tail_page, 0, of->tail, span));
  }
  return take_whole(p, item);
}

static planc_status take_whole(page_placing *p, const pl_item *item) {
  const bool is_once = pl_lifetime_is_empty(item->spans[0]) || pl_lifetime_is_empty(item->spans[1]);
  page_holder own = {.end = (int32_t)pl_max(item->spans[0].end, item->spans[1].end), .first = p->held.len};
  for (int64_t k = 0; k < p->chosen.len; k++) {
    const int32_t page = p->chosen.data[k];
    if (is_once && p->first.data[page] == NONE) {
      VEC_PUSH(&p->held, page);
      continue;
    }
    for (int32_t s = 0; s < N_SPANS; s++) PLANC_TRY(take(p, page, 0, p->page_bytes, item->spans[s]));
  }
  own.n = p->held.len - own.first;
  VEC_PUSH(&p->holders, own);
  holders_rise(p, p->holders.data, p->holders.len);
  return NULL;
}

static int32_t start_of(const pl_item *item) {
  if (pl_lifetime_is_empty(item->spans[0])) return item->spans[1].start;
  if (pl_lifetime_is_empty(item->spans[1])) return item->spans[0].start;
  return (int32_t)pl_min(item->spans[0].start, item->spans[1].start);
}

static int earliest_first(const void *left, const void *right) {
  const starting *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static planc_status list_others(const page_placing *p, starting **out, int32_t *out_n) {
  starting *order;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(p->arena, &order, p->n));
  for (int32_t i = 0; i < p->n; i++)
    if (!is_shared(p, &p->items[i])) order[n++] = (starting){start_of(&p->items[i]), i};
  if (n > 0) qsort(order, (size_t)n, sizeof *order, earliest_first);
  *out = order;
  *out_n = n;
  return NULL;
}

static int soonest_first(const void *left, const void *right) {
  const page_choice *a = left, *b = right;
  if (a->until != b->until) return a->until < b->until ? -1 : 1;
  return (a->page > b->page) - (a->page < b->page);
}

static int ascending(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

static planc_status list_soon(page_placing *p, const pl_item *item);

/* Pages that are taken soonest, then those that nobody has, then new ones; in the order in which they lie. */
static planc_status choose_whole(page_placing *p, const pl_item *item, int64_t needed) {
  PLANC_TRY(list_soon(p, item));
  if (p->soon.len > 0) qsort(p->soon.data, (size_t)p->soon.len, sizeof *p->soon.data, soonest_first);
  p->chosen.len = 0;
  for (int64_t k = 0; k < p->soon.len && p->chosen.len < needed; k++) VEC_PUSH(&p->chosen, p->soon.data[k].page);
  while (p->free.len > 0 && p->chosen.len < needed) {
    VEC_PUSH(&p->chosen, p->free.data[0]);
    p->free.data[0] = p->free.data[--p->free.len];
    free_pages_sink(p, p->free.data, p->free.len);
  }
  while (p->chosen.len < needed) {
    VEC_PUSH(&p->chosen, (int32_t)p->first.len);
    VEC_PUSH(&p->first, NONE);
  }
  if (needed > 0) qsort(p->chosen.data, (size_t)needed, sizeof *p->chosen.data, ascending);
  return NULL;
}

static bool is_free(const page_placing *p, int32_t page, const pl_item *item);

static planc_status list_soon(page_placing *p, const pl_item *item) {
  p->soon.len = 0;
  for (int64_t k = 0; k < p->watched.len; k++) {
    const int32_t page = p->watched.data[k];
    if (is_free(p, page, item))
      VEC_PUSH(&p->soon, ((page_choice){p->takings.data[p->first.data[page]].span.start, page}));
  }
  return NULL;
}

static bool meets(const pl_item *item, pl_lifetime span) {
  for (int32_t s = 0; s < N_SPANS; s++) {
    const pl_lifetime own = item->spans[s];
    if (!pl_lifetime_is_empty(own) && own.start < span.end && span.start < own.end) return true;
  }
  return false;
}

/* Whether a page that has takings is free while an item lives. */
static bool is_free(const page_placing *p, int32_t page, const pl_item *item) {
  const int32_t end = (int32_t)pl_max(item->spans[0].end, item->spans[1].end);
  const page_taking *all = p->takings.data;
  for (int32_t t = p->first.data[page]; t != NONE && all[t].span.start < end; t = all[t].next)
    if (meets(item, all[t].span)) return false;
  return true;
}

/* --- Parts of pages ----------------------------------------------------------------------------------------------- */

static planc_status list_parts(page_placing *p, const pl_item *item);
static split with_head(const page_placing *p, int64_t bytes, int64_t head, int32_t page);
static bool is_better(const split *a, const split *b);

/* The one with the fewest whole pages: without a head, or with one that fills up what is left of a page, or has no
 * tail behind it. */
static planc_status choose_split(page_placing *p, const pl_item *item, split *out) {
  const int64_t bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT), rest = bytes % p->page_bytes;
  PLANC_TRY(list_parts(p, item));
  *out = with_head(p, bytes, 0, NONE);
  for (int64_t k = 0; k < p->parts.len && rest > 0; k++) {
    const page_part *of = &p->parts.data[k];
    const int64_t heads[] = {of->at_last, of->at_last > rest ? rest : 0};
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
      const split other = with_head(p, bytes, heads[h], of->page);
      if (heads[h] > 0 && is_better(&other, out)) *out = other;
    }
  }
  return NULL;
}

static planc_status list_parts(page_placing *p, const pl_item *item) {
  p->parts.len = 0;
  for (int64_t k = 0; k < p->parted.len; k++) {
    const int32_t page = p->parted.data[k];
    int64_t low = p->page_bytes, high = 0;
    for (int32_t t = p->first.data[page]; t != NONE; t = p->takings.data[t].next) {
      const page_taking *taken = &p->takings.data[t];
      if (!meets(item, taken->span)) continue;
      low = pl_min(low, taken->low);
      high = pl_max(high, taken->high);
    }
    if (high > 0 && (low > 0 || high < p->page_bytes))
      VEC_PUSH(&p->parts, ((page_part){low, p->page_bytes - high, page}));
  }
  return NULL;
}

/* Its tail goes where least is left beside it. */
static split with_head(const page_placing *p, int64_t bytes, int64_t head, int32_t page) {
  const int64_t behind = bytes - head;
  split out = {.head = head,
               .tail = behind % p->page_bytes,
               .n_whole = behind / p->page_bytes,
               .head_page = page,
               .tail_page = NONE};
  int64_t least = INT64_MAX;
  for (int64_t k = 0; k < p->parts.len && out.tail > 0; k++) {
    const page_part *of = &p->parts.data[k];
    if (of->page == page || of->at_first < out.tail || of->at_first >= least) continue;
    least = of->at_first;
    out.tail_page = of->page;
  }
  return out;
}

static int64_t whole_pages(const split *of) {
  return of->n_whole + (of->tail > 0 && of->tail_page == NONE);
}

/* Of as many whole pages the one that parts none, or else the one with the shorter tail: more is left beside it. */
static bool is_better(const split *a, const split *b) {
  if (whole_pages(a) != whole_pages(b)) return whole_pages(a) < whole_pages(b);
  bool parts = a->tail > 0 && a->tail_page == NONE, other = b->tail > 0 && b->tail_page == NONE;
  return parts != other ? other : a->tail < b->tail;
}

/* The last of the whole ones is parted where no other has room for the tail. */
static planc_status part_page(page_placing *p, split *of) {
  if (of->tail == 0 || of->tail_page != NONE) return NULL;
  of->tail_page = p->chosen.data[--p->chosen.len];
  for (int64_t k = 0; k < p->parted.len; k++)
    if (p->parted.data[k] == of->tail_page) return NULL;
  VEC_PUSH(&p->parted, of->tail_page);
  return NULL;
}

/* To addresses behind all others. */
static planc_status map_split(page_placing *p, const split *of, pl_item *item) {
  const int32_t *pages = p->chosen.data;
  item->address = p->n_mapped * p->page_bytes + (of->head > 0 ? p->page_bytes - of->head : 0);
  if (of->head > 0) PLANC_TRY(map_run(p, of->head_page, 1));
  for (int64_t k = 0, end; k < p->chosen.len; k = end) {
    for (end = k + 1; end < p->chosen.len && pages[end] == pages[end - 1] + 1;) end++;
    PLANC_TRY(map_run(p, pages[k], end - k));
  }
  return of->tail > 0 ? map_run(p, of->tail_page, 1) : NULL;
}

planc_status pl_map_one_piece(pl_arena *arena, int64_t page_bytes, int64_t bytes, planc_virtual_memory *out) {
  const int64_t n = pl_align_up(bytes, page_bytes) / page_bytes;
  planc_mapping *all;
  if (n > MAX_MAPPED) {
    return planc_error(PLANC_USAGE, "%lld pages of %lld bytes: at most %d are mapped", (long long)n,
                       (long long)page_bytes, MAX_MAPPED);
  }
  PLANC_TRY(PL_NEW(arena, &all, 1));
  all->n = n;
  *out = (planc_virtual_memory){
      .arena_bytes = n * page_bytes, .chunk_bytes = page_bytes, .paged = true, .mappings = all, .n = n > 0};
  return NULL;
}
