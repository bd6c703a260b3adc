/* Searches in which the ways of some gaps are fixed (pl_priced_search_fixed in priced_search.h). */
#include <stdlib.h>
#include <string.h>

#include "planner/auto/priced_search.h"
#include "planner/base/goes_on.h"
#include "util/math.h"

typedef struct weighed_gap {
  pl_signed_wide weight; /* bytes times ns */
  int32_t gap;
} weighed_gap;

typedef struct fixed_search {
  pl_priced *p;
  weighed_gap *gaps; /* the heaviest first */
  int32_t n_gaps;
  int32_t n_left;   /* searches that may still be made */
  int32_t n_faster; /* of this round through the gaps, searches that found what is faster */
  uint8_t *ways;    /* by gap: of the last search that found what is faster */
} fixed_search;

static planc_status weigh_gaps(fixed_search *f);
static planc_status go_through(fixed_search *f);

planc_status pl_priced_search_fixed(pl_priced *p) {
  fixed_search f = {.p = p, .n_left = p->n_fixed};
  PLANC_TRY(PL_NEW(&p->arena, &f.ways, p->gaps.n));
  memcpy(f.ways, p->search.best, (size_t)p->gaps.n);
  PLANC_TRY(weigh_gaps(&f));
  do {
    f.n_faster = 0;
    PLANC_TRY(go_through(&f));
  } while (f.n_faster > 0 && f.n_left > 0);
  return NULL;
}

/* --- Which gaps --------------------------------------------------------------------------------------------------- */

static int by_weight(const void *left, const void *right) {
  const weighed_gap *a = left, *b = right;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  return (a->gap > b->gap) - (a->gap < b->gap);
}

/* How long a gap is between its two uses, by the times of the ops alone. */
static int64_t time_of(const pl_auto_gap *gap, const int64_t *before, int32_t n) {
  int64_t ns = before[gap->to] - before[gap->from + 1];
  return pl_auto_gap_wraps(gap) ? ns + before[n] : ns;
}

static planc_status weigh_gaps(fixed_search *f) {
  const pl_auto_gaps *gaps = &f->p->gaps;
  const int32_t n = gaps->order->n;
  int64_t *before; /* by position and one more: the time of the ops ahead of it */
  PLANC_TRY(PL_NEW(&f->p->arena, &before, (int64_t)n + 1));
  PLANC_TRY(PL_NEW(&f->p->arena, &f->gaps, gaps->n));
  for (int32_t p = 0; p < n; p++) before[p + 1] = before[p] + f->p->search.rehearsal.op_ns[p];
  for (int32_t g = gaps->n_fed; g < gaps->n; g++) {
    const pl_auto_gap *gap = &gaps->items[g];
    if (gap->is_tail) continue;
    f->gaps[f->n_gaps++] = (weighed_gap){(pl_signed_wide)gap->bytes * time_of(gap, before, n), g};
  }
  if (f->n_gaps > 0) qsort(f->gaps, (size_t)f->n_gaps, sizeof *f->gaps, by_weight);
  return NULL;
}

/* --- Searches ----------------------------------------------------------------------------------------------------- */

static planc_status search_with(fixed_search *f, int32_t gap, int way);

static planc_status go_through(fixed_search *f) {
  const pl_auto_search *s = &f->p->search;
  for (int32_t k = 0; k < f->n_gaps; k++) {
    const int32_t g = f->gaps[k].gap;
    const pl_auto_gap *gap = &f->p->gaps.items[g];
    for (int way = PL_AUTO_STAYS; way < PL_AUTO_TWICE; way++) {
      bool needs_more = way == PL_AUTO_AGAIN && gap->needs_tails;
      if (s->fixed[g] != PL_AUTO_ANY_WAY || !gap->open[way] || f->ways[g] == way || needs_more) continue;
      if (f->n_left == 0 || !pl_goes_on(f->p->watch)) return NULL;
      PLANC_TRY(search_with(f, g, way));
    }
  }
  return NULL;
}

static planc_status search_with(fixed_search *f, int32_t gap, int way) {
  pl_auto_search *s = &f->p->search;
  int64_t before_ns = f->p->best.ns;
  f->n_left--;
  pl_auto_search_fix(s, gap, way);
  PLANC_TRY(pl_priced_search(f->p));
  if (f->p->best.ns < before_ns) {
    f->n_faster++;
    memcpy(f->ways, s->best, (size_t)f->p->gaps.n);
  } else {
    pl_auto_search_fix(s, gap, PL_AUTO_ANY_WAY);
  }
  return NULL;
}
