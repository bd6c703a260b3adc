/* Every byte interval that a plan's instructions name, as ranks.
 *
 * All intervals are known before the run. Their ends, sorted and without repetitions, cut the memories into pieces that
 * no interval divides; the checker works on the pieces' numbers ("ranks") and needs neither addresses nor a balanced
 * tree. The arenas lie one after the other in the same sequence of ranks. */
#ifndef PLANC_CHECK_EXTENTS_H
#define PLANC_CHECK_EXTENTS_H

#include "planc/plan.h"
#include "util/arena.h"

/* Ranks lo .. hi-1. */
typedef struct planc_extent {
  int32_t lo, hi;
} planc_extent;

/* Where one interval is: one extent, or with virtual memory one for each stretch of the arena that it is mapped to. All
 * but the first and the last are whole mappings, which all intervals share: a plan of many intervals over many mappings
 * would else take the product of both. */
typedef struct planc_interval_place {
  const planc_extent *ends;  /* the first, and the last where there are several */
  const planc_extent *inner; /* those between them */
  int64_t n;                 /* 0: there is no interval, or it does not lie inside its arena */
  int64_t end;               /* the highest byte of the arena, and one more */
} planc_interval_place;

static inline planc_extent planc_place_extent(const planc_interval_place *place, int64_t k) {
  return k == 0 ? place->ends[0] : k + 1 == place->n ? place->ends[1] : place->inner[k - 1];
}

typedef struct planc_extents {
  int32_t n_ranks;
  planc_interval_place *of; /* by instruction in file order: an acquire's residency, an exec's workspace */
} planc_extents;

planc_status planc_extents_make(const planc_plan *plan, planc_arena *arena, planc_extents *out);

#endif
