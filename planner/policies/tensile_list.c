/* Lists of gaps by rank, of which `tensile` takes the first around the peak (papers/002, IV-F; tensile.c). */
#include <stdlib.h>

#include "planner/policies/tensile.h"

static int by_rank(const void *left, const void *right) {
  const tensile_rank *a = left, *b = right;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  return (a->gap > b->gap) - (a->gap < b->gap);
}

void tensile_sort(tensile_rank *ranks, int32_t n) {
  if (n > 0) qsort(ranks, (size_t)n, sizeof *ranks, by_rank);
}

planc_status tensile_make_list(const tensile *t, pl_arena *arena, tensile_rank *ranks, int32_t n, tensile_list *out) {
  tensile_sort(ranks, n);
  PLANC_TRY(PL_NEW(arena, &out->gaps, n));
  PLANC_TRY(pl_covers_make(arena, t->order->n, n, &out->covers));
  for (int32_t place = 0; place < n; place++) {
    tensile_gap *gap = &t->gaps[ranks[place].gap];
    out->gaps[place] = ranks[place].gap;
    gap->place = place;
    PLANC_TRY(pl_covers_set(&out->covers, place, gap->relieves));
  }
  return NULL;
}

planc_status tensile_take_first(tensile *t, tensile_list *list, int32_t peak, tensile_taker take, bool *out_taken) {
  *out_taken = false;
  for (int32_t place; !*out_taken && (place = pl_covers_first(&list->covers, peak)) >= 0;) {
    tensile_gap *gap = &t->gaps[list->gaps[place]];
    if (gap->state == TENSILE_OPEN) PLANC_TRY(take(t, gap, peak, out_taken));
    if (gap->state == TENSILE_OPEN && !gap->waits) {
      PLANC_TRY(pl_covers_set(&list->covers, place, gap->relieves));
    } else {
      pl_covers_remove(&list->covers, place);
    }
  }
  return NULL;
}
