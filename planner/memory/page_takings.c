/* Pages that are taken (page_takings.h). Only pages that are taken for later, or in parts, are looked at one by one;
 * each of the others is one item's as a whole, or anybody's. */
#include "planner/memory/page_takings.h"

#include <stdlib.h>

#include "util/heap.h"
#include "util/math.h"

void pl_page_takings_free(pl_page_takings *takings) {
  VEC_FREE(&takings->all);
  VEC_FREE(&takings->first);
  VEC_FREE(&takings->watched);
  VEC_FREE(&takings->free);
  VEC_FREE(&takings->held);
  VEC_FREE(&takings->holders);
  VEC_FREE(&takings->soonest);
}

planc_status pl_page_takings_add(pl_page_takings *takings) {
  VEC_PUSH(&takings->first, PL_NO_TAKING);
  return NULL;
}

planc_status pl_page_take(pl_page_takings *takings, int32_t page, int64_t low, int64_t high, pl_lifetime span) {
  const int32_t own = (int32_t)takings->all.len;
  int32_t before = PL_NO_TAKING, after = takings->first.data[page];
  if (pl_lifetime_is_empty(span)) return NULL;
  for (; after != PL_NO_TAKING && takings->all.data[after].span.start < span.start;
       after = takings->all.data[after].next)
    before = after;
  if (takings->all.len == INT32_MAX) return planc_error(PLANC_INTERNAL, "too many pages are taken");
  if (takings->first.data[page] == PL_NO_TAKING) VEC_PUSH(&takings->watched, page);
  VEC_PUSH(&takings->all, ((pl_page_taking){span, low, high, after}));
  if (before == PL_NO_TAKING)
    takings->first.data[page] = own;
  else
    takings->all.data[before].next = own;
  return NULL;
}

void pl_page_takings_forget_full(pl_page_takings *takings, int32_t horizon) {
  int64_t n = 0;
  for (int64_t k = 0; k < takings->watched.len; k++) {
    const int32_t page = takings->watched.data[k];
    const pl_lifetime first = takings->all.data[takings->first.data[page]].span;
    if (first.start > 0 || first.end < horizon) takings->watched.data[n++] = page;
  }
  takings->watched.len = n;
}

/* --- What has ended ----------------------------------------------------------------------------------------------- */

static bool ends_before(const pl_page_takings *takings, pl_page_holder a, pl_page_holder b) {
  (void)takings;
  return a.end != b.end ? a.end < b.end : a.first < b.first;
}
PL_HEAP(holders, pl_page_holder, pl_page_takings, ends_before)

static bool lies_before(const pl_page_takings *takings, int32_t a, int32_t b) {
  (void)takings;
  return a < b;
}
PL_HEAP(free_pages, int32_t, pl_page_takings, lies_before)

static planc_status set_free(pl_page_takings *takings, int32_t page) {
  VEC_PUSH(&takings->free, page);
  free_pages_rise(takings, takings->free.data, takings->free.len);
  return NULL;
}

static planc_status end_watched(pl_page_takings *takings, int32_t start);

planc_status pl_page_takings_end(pl_page_takings *takings, int32_t start) {
  while (takings->holders.len > 0 && takings->holders.data[0].end <= start) {
    const pl_page_holder ended = takings->holders.data[0];
    for (int64_t k = ended.first; k < ended.first + ended.n; k++) PLANC_TRY(set_free(takings, takings->held.data[k]));
    takings->holders.data[0] = takings->holders.data[--takings->holders.len];
    holders_sink(takings, takings->holders.data, takings->holders.len);
  }
  return end_watched(takings, start);
}

/* Forgets takings that have ended, and watches pages no more that have none left. */
static planc_status end_watched(pl_page_takings *takings, int32_t start) {
  int64_t n = 0;
  for (int64_t k = 0; k < takings->watched.len; k++) {
    const int32_t page = takings->watched.data[k];
    int32_t *first = &takings->first.data[page];
    while (*first != PL_NO_TAKING && takings->all.data[*first].span.end <= start)
      *first = takings->all.data[*first].next;
    if (*first == PL_NO_TAKING)
      PLANC_TRY(set_free(takings, page));
    else
      takings->watched.data[n++] = page;
  }
  takings->watched.len = n;
  return NULL;
}

/* --- What an item gets -------------------------------------------------------------------------------------------- */

static bool is_taken_later(const pl_page_takings *takings, pl_page_choice a, pl_page_choice b) {
  (void)takings;
  return a.until != b.until ? a.until > b.until : a.page > b.page;
}
PL_HEAP(soonest, pl_page_choice, pl_page_takings, is_taken_later)

static planc_status find_soonest(pl_page_takings *takings, const pl_item *item, int64_t needed);

static int ascending(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

planc_status pl_page_takings_choose(pl_page_takings *takings, const pl_item *item, int64_t needed,
                                    pl_page_list *chosen) {
  chosen->len = 0;
  if (needed == 0) return NULL;
  PLANC_TRY(find_soonest(takings, item, needed));
  for (int64_t k = 0; k < takings->soonest.len; k++) VEC_PUSH(chosen, takings->soonest.data[k].page);
  while (takings->free.len > 0 && chosen->len < needed) {
    VEC_PUSH(chosen, takings->free.data[0]);
    takings->free.data[0] = takings->free.data[--takings->free.len];
    free_pages_sink(takings, takings->free.data, takings->free.len);
  }
  while (chosen->len < needed) {
    VEC_PUSH(chosen, (int32_t)takings->first.len);
    PLANC_TRY(pl_page_takings_add(takings));
  }
  qsort(chosen->data, (size_t)needed, sizeof *chosen->data, ascending);
  return NULL;
}

static bool is_free(const pl_page_takings *takings, int32_t page, const pl_item *item);

/* Of the watched pages that are free for the item, so many at most. */
static planc_status find_soonest(pl_page_takings *takings, const pl_item *item, int64_t needed) {
  takings->soonest.len = 0;
  for (int64_t k = 0; k < takings->watched.len; k++) {
    const int32_t page = takings->watched.data[k];
    const pl_page_choice choice = {takings->all.data[takings->first.data[page]].span.start, page};
    const bool has_all = takings->soonest.len == needed;
    if (has_all && !is_taken_later(takings, takings->soonest.data[0], choice)) continue;
    if (!is_free(takings, page, item)) continue;
    if (has_all) {
      takings->soonest.data[0] = choice;
      soonest_sink(takings, takings->soonest.data, needed);
    } else {
      VEC_PUSH(&takings->soonest, choice);
      soonest_rise(takings, takings->soonest.data, takings->soonest.len);
    }
  }
  return NULL;
}

/* Whether a watched page is free while an item lives. */
static bool is_free(const pl_page_takings *takings, int32_t page, const pl_item *item) {
  const int32_t end = pl_item_end(item);
  const pl_page_taking *all = takings->all.data;
  for (int32_t t = takings->first.data[page]; t != PL_NO_TAKING && all[t].span.start < end; t = all[t].next)
    if (pl_item_meets(item, all[t].span)) return false;
  return true;
}

planc_status pl_page_takings_hold(pl_page_takings *takings, const pl_item *item, const pl_page_list *pages) {
  pl_page_holder own = {.end = pl_item_end(item), .first = takings->held.len};
  for (int64_t k = 0; k < pages->len; k++) {
    const int32_t page = pages->data[k];
    if (!pl_item_lives_twice(item) && takings->first.data[page] == PL_NO_TAKING) {
      VEC_PUSH(&takings->held, page);
      continue;
    }
    for (int32_t s = 0; s < PL_SPANS; s++)
      PLANC_TRY(pl_page_take(takings, page, 0, takings->page_bytes, item->spans[s]));
  }
  own.n = takings->held.len - own.first;
  VEC_PUSH(&takings->holders, own);
  holders_rise(takings, takings->holders.data, takings->holders.len);
  return NULL;
}
