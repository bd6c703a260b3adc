/* Searches in which the ways of some gaps are fixed (pl_priced_search_fixed in priced_search.h). */
#include <string.h>

#include "planner/auto/priced_search.h"
#include "planner/base/goes_on.h"
#include "util/math.h"

typedef struct fixed_search {
  pl_priced *p;
  int32_t n_left;   /* searches that may still be made */
  int32_t n_faster; /* of this round through the gaps, searches that found what is faster */
  uint8_t *ways;    /* by gap: of the last search that found what is faster */
} fixed_search;

static planc_status go_through(fixed_search *f);

planc_status pl_priced_search_fixed(pl_priced *p) {
  fixed_search f = {.p = p, .n_left = p->n_fixed};
  PLANC_TRY(PL_NEW(&p->arena, &f.ways, p->gaps.n));
  memcpy(f.ways, p->search.best, (size_t)p->gaps.n);
  do {
    f.n_faster = 0;
    PLANC_TRY(go_through(&f));
  } while (f.n_faster > 0 && f.n_left > 0);
  return NULL;
}

static planc_status search_with(fixed_search *f, int32_t gap, int way);

static planc_status go_through(fixed_search *f) {
  const pl_auto_search *s = &f->p->search;
  for (int32_t k = 0; k < s->n_heaviest; k++) {
    const int32_t g = s->heaviest[k];
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
