/* Lists of stretches by rank, of which `tensile` takes the first around the peak (papers/002, IV-F; tensile.c). */
#include <stdlib.h>

#include "planner/policies/tensile.h"

static int by_rank(const void *left, const void *right) {
  const tensile_rank *a = left, *b = right;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  return (a->stretch > b->stretch) - (a->stretch < b->stretch);
}

void tensile_sort(tensile_rank *ranks, int32_t n) {
  if (n > 0) qsort(ranks, (size_t)n, sizeof *ranks, by_rank);
}

planc_status tensile_make_list(const tensile *t, planc_arena *arena, tensile_rank *ranks, int32_t n,
                               tensile_list *out) {
  tensile_sort(ranks, n);
  PLANC_TRY(PLANC_NEW(arena, &out->stretches, n));
  PLANC_TRY(planc_covers_make(arena, t->trace->n_instances, n, &out->covers));
  for (int32_t place = 0; place < n; place++) {
    tensile_stretch *stretch = &t->stretches[ranks[place].stretch];
    out->stretches[place] = ranks[place].stretch;
    stretch->place = place;
    PLANC_TRY(planc_covers_set(&out->covers, place, stretch->relieves));
  }
  return NULL;
}

planc_status tensile_take_first(tensile *t, tensile_list *list, int32_t peak, tensile_taker take, bool *out_taken) {
  *out_taken = false;
  for (int32_t place; !*out_taken && (place = planc_covers_first(&list->covers, peak)) >= 0;) {
    tensile_stretch *stretch = &t->stretches[list->stretches[place]];
    if (stretch->state == TENSILE_OPEN) PLANC_TRY(take(t, stretch, peak, out_taken));
    if (stretch->state == TENSILE_OPEN && !stretch->waits) {
      PLANC_TRY(planc_covers_set(&list->covers, place, stretch->relieves));
    } else {
      planc_covers_remove(&list->covers, place);
    }
  }
  return NULL;
}
