/* Parts of pages (page_parts.h). */
#include "planner/memory/page_parts.h"

#include <stdlib.h>

#include "planc/schedule.h"
#include "util/math.h"

void pl_page_parts_free(pl_page_parts *parts) {
  VEC_FREE(&parts->parted);
  VEC_FREE(&parts->parts);
}

static planc_status list_parts(pl_page_parts *parts, const pl_page_takings *takings, const pl_item *item);
static pl_page_split with_head(const pl_page_parts *parts, int64_t page_bytes, int64_t bytes, int64_t head,
                               const pl_page_part *of);
static bool is_better(const pl_page_split *a, const pl_page_split *b);

/* Without a head, or with one that fills up what is left of a page, or has no tail behind it. */
planc_status pl_page_parts_split(pl_page_parts *parts, const pl_page_takings *takings, const pl_item *item,
                                 pl_page_split *out) {
  const int64_t page_bytes = takings->page_bytes, bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT);
  const int64_t rest = bytes % page_bytes;
  int32_t first = -1; /* the parted page that the best head is of */
  PLANC_TRY(list_parts(parts, takings, item));
  *out = with_head(parts, page_bytes, bytes, 0, NULL);
  for (int64_t k = 0; k < parts->parts.len && rest > 0; k++) {
    const pl_page_part *of = &parts->parts.data[k];
    const int64_t heads[] = {of->at_last, of->at_last > rest ? rest : 0};
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
      const pl_page_split other = with_head(parts, page_bytes, bytes, heads[h], of);
      if (heads[h] <= 0 || is_better(out, &other)) continue;
      if (!is_better(&other, out) && of->number >= first) continue;
      *out = other;
      first = of->number;
    }
  }
  return NULL;
}

static int least_first(const void *left, const void *right) {
  const pl_page_part *a = left, *b = right;
  if (a->at_first != b->at_first) return a->at_first < b->at_first ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static planc_status list_parts(pl_page_parts *parts, const pl_page_takings *takings, const pl_item *item) {
  const int64_t page_bytes = takings->page_bytes;
  parts->parts.len = 0;
  for (int64_t k = 0; k < parts->parted.len; k++) {
    const int32_t page = parts->parted.data[k];
    int64_t low = page_bytes, high = 0;
    for (int32_t t = takings->first.data[page]; t != PL_NO_TAKING; t = takings->all.data[t].next) {
      const pl_page_taking *taken = &takings->all.data[t];
      if (!pl_item_meets(item, taken->span)) continue;
      low = pl_min(low, taken->low);
      high = pl_max(high, taken->high);
    }
    if (high > 0 && (low > 0 || high < page_bytes))
      VEC_PUSH(&parts->parts, ((pl_page_part){low, page_bytes - high, page, (int32_t)k}));
  }
  if (parts->parts.len > 1) qsort(parts->parts.data, (size_t)parts->parts.len, sizeof *parts->parts.data, least_first);
  return NULL;
}

static const pl_page_part *find_tail(const pl_page_parts *parts, int64_t bytes, const pl_page_part *head);

/* Its head on the part of a page; NULL: it has none. Its tail goes where least is left beside it. */
static pl_page_split with_head(const pl_page_parts *parts, int64_t page_bytes, int64_t bytes, int64_t head,
                               const pl_page_part *of) {
  const int64_t behind = bytes - head, tail = behind % page_bytes;
  const pl_page_part *tail_of = tail > 0 ? find_tail(parts, tail, of) : NULL;
  return (pl_page_split){.head = head,
                         .tail = tail,
                         .n_whole = behind / page_bytes,
                         .head_page = of ? of->page : PL_NO_PAGE,
                         .tail_page = tail_of ? tail_of->page : PL_NO_PAGE};
}

/* The first part with so many bytes at its beginning, on another page than the head; NULL = there is none. */
static const pl_page_part *find_tail(const pl_page_parts *parts, int64_t bytes, const pl_page_part *head) {
  int64_t first = 0, last = parts->parts.len;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (parts->parts.data[middle].at_first < bytes)
      first = middle + 1;
    else
      last = middle;
  }
  if (first < parts->parts.len && &parts->parts.data[first] == head) first++;
  return first < parts->parts.len ? &parts->parts.data[first] : NULL;
}

int64_t pl_page_split_whole(const pl_page_split *split) {
  return split->n_whole + (split->tail > 0 && split->tail_page == PL_NO_PAGE);
}

/* Of as many whole pages the one that parts none, or else the one with the shorter tail: more is left beside it. */
static bool is_better(const pl_page_split *a, const pl_page_split *b) {
  const int64_t own = pl_page_split_whole(a), others = pl_page_split_whole(b);
  if (own != others) return own < others;
  bool parts = own > a->n_whole, other = others > b->n_whole;
  return parts != other ? other : a->tail < b->tail;
}

planc_status pl_page_parts_part(pl_page_parts *parts, pl_page_split *split, pl_page_list *whole) {
  if (split->tail == 0 || split->tail_page != PL_NO_PAGE) return NULL;
  split->tail_page = whole->data[--whole->len];
  for (int64_t k = 0; k < parts->parted.len; k++)
    if (parts->parted.data[k] == split->tail_page) return NULL;
  VEC_PUSH(&parts->parted, split->tail_page);
  return NULL;
}

planc_status pl_page_split_take(const pl_page_split *split, const pl_item *item, pl_page_takings *takings) {
  const int64_t page_bytes = takings->page_bytes;
  for (int32_t s = 0; s < PL_SPANS; s++) {
    const pl_lifetime span = item->spans[s];
    if (split->head > 0) PLANC_TRY(pl_page_take(takings, split->head_page, page_bytes - split->head, page_bytes, span));
    if (split->tail > 0) PLANC_TRY(pl_page_take(takings, split->tail_page, 0, split->tail, span));
  }
  return NULL;
}
