/* Items to place (placements.h). */
#include "tests/support/placements.h"

#include <check.h>

#include "planc/schedule.h"

uint32_t draw_below(uint64_t *seed, uint32_t below) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((*seed >> 33) % below);
}

bool spans_meet(pl_lifetime a, pl_lifetime b) {
  int32_t start = a.start > b.start ? a.start : b.start, end = a.end < b.end ? a.end : b.end;
  return start < end;
}

bool live_together(const pl_item *a, const pl_item *b) {
  for (int i = 0; i < 4; i++) {
    if (spans_meet(a->spans[i / 2], b->spans[i % 2])) return true;
  }
  return false;
}

bool overlap(const pl_item *a, const pl_item *b) {
  return live_together(a, b) && a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

void assert_valid(const pl_item *items, int32_t n, int64_t top) {
  int64_t highest = 0;
  for (int32_t i = 0; i < n; i++) {
    ck_assert_int_ge(items[i].address, 0);
    ck_assert_int_eq(items[i].address % PLANC_ALIGNMENT, 0);
    if (items[i].address + items[i].bytes > highest) highest = items[i].address + items[i].bytes;
    for (int32_t j = 0; j < i; j++) ck_assert_msg(!overlap(&items[i], &items[j]), "items %d and %d overlap", i, j);
  }
  ck_assert_int_eq(top, highest);
}

int64_t lower_bound(const pl_item *items, int32_t n) {
  int64_t bound = 0;
  for (int32_t i = 0; i < n; i++) {
    for (int k = 0; k < 2; k++) {
      pl_lifetime now = {items[i].spans[k].start, items[i].spans[k].start + 1};
      if (items[i].spans[k].start >= items[i].spans[k].end) continue;
      int64_t live = 0;
      for (int32_t j = 0; j < n; j++) {
        bool lives = spans_meet(items[j].spans[0], now) || spans_meet(items[j].spans[1], now);
        if (lives) live += items[j].bytes;
      }
      if (live > bound) bound = live;
    }
  }
  return bound;
}

pl_item random_item(uint64_t *seed, int32_t horizon, uint32_t most, bool two_spans) {
  int32_t points[4];
  for (int i = 0; i < 4; i++) points[i] = (int32_t)draw_below(seed, (uint32_t)horizon);
  for (int i = 0; i < 4; i++) {
    for (int j = i + 1; j < 4; j++) {
      int32_t low = points[i] < points[j] ? points[i] : points[j];
      points[j] = points[i] < points[j] ? points[j] : points[i];
      points[i] = low;
    }
  }
  pl_item item = {.bytes = (int64_t)(1 + draw_below(seed, most)) * PLANC_ALIGNMENT, .address = PLANC_BLANK};
  item.spans[0] = (pl_lifetime){points[0], points[1] + 1};
  if (two_spans && points[2] > points[1]) item.spans[1] = (pl_lifetime){points[2], points[3] + 1};
  return item;
}

/* Some order of lowest-fit placement gives the optimum: that of the optimum's own addresses. */
static int64_t best_of_orders(pl_item *items, int32_t n, int32_t n_placed, int64_t top, int64_t best) {
  if (top >= best) return best;
  if (n_placed == n) return top;
  for (int32_t k = n_placed; k < n; k++) {
    pl_item chosen = items[k];
    items[k] = items[n_placed];
    items[n_placed] = chosen;
    pl_item *it = &items[n_placed];
    it->address = 0;
    for (int32_t j = 0; j < n_placed; j++) {
      if (!overlap(it, &items[j])) continue;
      it->address = items[j].address + items[j].bytes;
      j = -1;
    }
    int64_t end = it->address + it->bytes;
    best = best_of_orders(items, n, n_placed + 1, end > top ? end : top, best);
    items[n_placed] = items[k];
    items[k] = chosen;
  }
  return best;
}

int64_t least_top(pl_item *items, int32_t n) {
  return best_of_orders(items, n, 0, 0, INT64_MAX);
}
