/* Offline placement in virtual memory (paged_places.h).
 *
 * Items get pages in the order in which they begin to live. Were each alive once, any free page would do and there
 * would be as many as are needed at a time. But some are taken for later: by what comes back to its place at the end of
 * the period, and by what shares pages. So an item gets those pages that are taken next, among those that are free as
 * long as it needs them (page_takings.h). */
#include "planner/memory/paged_places.h"

#include <stdlib.h>

#include "planner/memory/page_parts.h"
#include "util/math.h"
#include "util/vec.h"

enum { MAX_MAPPED = 1 << 22 };

typedef struct page_placing {
  pl_arena *arena;
  pl_item *items;
  int32_t n;
  int32_t horizon; /* the position behind the last */
  pl_page_takings pages;
  pl_page_parts parts;
  pl_page_list chosen; /* an item's whole pages */
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
      .arena = arena, .items = items, .n = n, .horizon = pl_items_horizon(items, n), .pages.page_bytes = page_bytes};
  planc_status status = place(&p, out_placed);
  if (!status && *out_placed) status = take_mappings(&p, out);
  pl_page_takings_free(&p.pages);
  pl_page_parts_free(&p.parts);
  VEC_FREE(&p.chosen);
  VEC_FREE(&p.mappings);
  return status;
}

static planc_status place(page_placing *p, bool *out_placed) {
  PLANC_TRY(place_shared(p, out_placed));
  if (*out_placed && are_too_many(p)) *out_placed = false;
  return *out_placed ? place_others(p) : NULL;
}

static planc_status take_mappings(const page_placing *p, planc_virtual_memory *out) {
  *out = (planc_virtual_memory){.arena_bytes = (int64_t)p->pages.first.len * p->pages.page_bytes,
                                .chunk_bytes = p->pages.page_bytes,
                                .paged = true,
                                .n = (int32_t)p->mappings.len};
  return pl_arena_copy(p->arena, p->mappings.data, p->mappings.len, sizeof *p->mappings.data, (void *)&out->mappings);
}

/* What shares pages: what is small, and what lives all the time or never, between which nothing is lost. */
static bool is_shared(const page_placing *p, const pl_item *item) {
  return item->bytes <= p->pages.page_bytes || pl_item_stays(item, p->horizon) || !pl_item_lives(item);
}

static planc_status map_run(page_placing *p, int64_t first, int64_t n) {
  p->n_mapped += n;
  VEC_PUSH(&p->mappings, ((planc_mapping){first, n}));
  return NULL;
}

/* --- What shares pages -------------------------------------------------------------------------------------------- */

/* That some item lives on a page. */
typedef struct page_span {
  int32_t page;
  pl_lifetime span;
} page_span;

static planc_status list_spans(const page_placing *p, const pl_item *shared, int32_t n, page_span **out,
                               int64_t *out_n);
static planc_status take_spans(page_placing *p, page_span *spans, int64_t n);

/* They lie at the beginning of the arena, at addresses that are the arena's. */
static planc_status place_shared(page_placing *p, bool *out_placed) {
  pl_item *shared;
  int32_t *source, n = 0;
  page_span *spans;
  int64_t top, n_spans, n_pages;
  PLANC_TRY(PL_NEW(p->arena, &shared, p->n));
  PLANC_TRY(PL_NEW(p->arena, &source, p->n));
  for (int32_t i = 0; i < p->n; i++) {
    if (!is_shared(p, &p->items[i])) continue;
    shared[n] = p->items[i];
    source[n++] = i;
  }
  PLANC_TRY(pl_place(shared, n, &top, NULL));
  for (int32_t k = 0; k < n; k++) p->items[source[k]].address = shared[k].address;
  n_pages = pl_align_up(top, p->pages.page_bytes) / p->pages.page_bytes;
  *out_placed = n_pages <= MAX_MAPPED;
  if (n_pages == 0 || !*out_placed) return NULL;
  PLANC_TRY(map_run(p, 0, n_pages));
  for (int64_t c = 0; c < n_pages; c++) PLANC_TRY(pl_page_takings_add(&p->pages));
  PLANC_TRY(list_spans(p, shared, n, &spans, &n_spans));
  PLANC_TRY(take_spans(p, spans, n_spans));
  pl_page_takings_forget_full(&p->pages, p->horizon);
  return NULL;
}

typedef struct page_range {
  int64_t first, end;
} page_range;

static page_range pages_of(const page_placing *p, const pl_item *item) {
  if (item->bytes <= 0 || !pl_item_lives(item)) return (page_range){0, 0};
  return (page_range){item->address / p->pages.page_bytes, (item->address + item->bytes - 1) / p->pages.page_bytes + 1};
}

static planc_status list_spans(const page_placing *p, const pl_item *shared, int32_t n, page_span **out,
                               int64_t *out_n) {
  page_span *spans;
  int64_t most = 0, n_spans = 0;
  for (int32_t k = 0; k < n; k++) most += PL_SPANS * (pages_of(p, &shared[k]).end - pages_of(p, &shared[k]).first);
  PLANC_TRY(PL_NEW(p->arena, &spans, most));
  for (int32_t k = 0; k < n; k++) {
    const page_range pages = pages_of(p, &shared[k]);
    for (int64_t c = pages.first; c < pages.end; c++)
      for (int32_t s = 0; s < PL_SPANS; s++)
        if (!pl_lifetime_is_empty(shared[k].spans[s])) spans[n_spans++] = (page_span){(int32_t)c, shared[k].spans[s]};
  }
  *out = spans;
  *out_n = n_spans;
  return NULL;
}

static int latest_first(const void *left, const void *right) {
  const page_span *a = left, *b = right;
  if (a->page != b->page) return a->page < b->page ? -1 : 1;
  return (a->span.start < b->span.start) - (a->span.start > b->span.start);
}

/* What overlaps or meets is one taking. The latest of a page come first, so that each is put ahead of all others. */
static planc_status take_spans(page_placing *p, page_span *spans, int64_t n) {
  if (n > 0) qsort(spans, (size_t)n, sizeof *spans, latest_first);
  for (int64_t k = 0; k < n; k++) {
    const int32_t first = p->pages.first.data[spans[k].page];
    if (first == PL_NO_TAKING || spans[k].span.end < p->pages.all.data[first].span.start) {
      PLANC_TRY(pl_page_take(&p->pages, spans[k].page, 0, p->pages.page_bytes, spans[k].span));
      continue;
    }
    pl_lifetime *span = &p->pages.all.data[first].span;
    span->start = spans[k].span.start;
    span->end = (int32_t)pl_max(span->end, spans[k].span.end);
  }
  return NULL;
}

/* --- What has pages of its own ------------------------------------------------------------------------------------ */

typedef struct starting {
  int32_t start, item;
} starting;

static planc_status list_others(const page_placing *p, starting **out, int32_t *out_n);
static planc_status map_split(page_placing *p, const pl_page_split *of, pl_item *item);

static planc_status place_others(page_placing *p) {
  starting *order;
  int32_t n;
  PLANC_TRY(list_others(p, &order, &n));
  for (int32_t k = 0; k < n; k++) {
    pl_item *item = &p->items[order[k].item];
    pl_page_split split;
    PLANC_TRY(pl_page_takings_end(&p->pages, order[k].start));
    PLANC_TRY(pl_page_parts_split(&p->parts, &p->pages, item, &split));
    PLANC_TRY(pl_page_takings_choose(&p->pages, item, pl_page_split_whole(&split), &p->chosen));
    PLANC_TRY(pl_page_parts_part(&p->parts, &split, &p->chosen));
    PLANC_TRY(map_split(p, &split, item));
    PLANC_TRY(pl_page_split_take(&split, item, &p->pages));
    PLANC_TRY(pl_page_takings_hold(&p->pages, item, &p->chosen));
  }
  return NULL;
}

/* Each may have a part of a page at both ends. */
static bool are_too_many(const page_placing *p) {
  int64_t n = p->n_mapped;
  for (int32_t i = 0; i < p->n; i++)
    if (!is_shared(p, &p->items[i])) n = pl_add_saturate(n, p->items[i].bytes / p->pages.page_bytes + 2);
  return n > MAX_MAPPED;
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
    if (!is_shared(p, &p->items[i])) order[n++] = (starting){pl_item_start(&p->items[i]), i};
  if (n > 0) qsort(order, (size_t)n, sizeof *order, earliest_first);
  *out = order;
  *out_n = n;
  return NULL;
}

/* To addresses behind all others. */
static planc_status map_split(page_placing *p, const pl_page_split *of, pl_item *item) {
  const int32_t *pages = p->chosen.data;
  item->address = p->n_mapped * p->pages.page_bytes + (of->head > 0 ? p->pages.page_bytes - of->head : 0);
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
