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
typedef struct pl_extent {
  int32_t lo, hi;
} pl_extent;

/* Where one interval is: one extent, or with virtual memory one for each stretch of the arena that it is mapped to. All
 * but the first and the last are whole mappings, which all intervals share: a plan of many intervals over many mappings
 * would else take the product of both. */
typedef struct pl_interval_place {
  const pl_extent *ends;  /* the first, and the last where there are several */
  const pl_extent *inner; /* those between them */
  int64_t n;              /* 0: there is no interval, or it does not lie inside its arena */
  int64_t end;            /* the highest byte of the arena, and one more */
} pl_interval_place;

static inline pl_extent pl_place_extent(const pl_interval_place *place, int64_t k) {
  return k == 0 ? place->ends[0] : k + 1 == place->n ? place->ends[1] : place->inner[k - 1];
}

typedef struct pl_extents {
  int32_t n_ranks;
  pl_interval_place *of; /* by instruction in file order: an acquire's residency, an exec's workspace */
} pl_extents;

planc_status pl_extents_make(const planc_plan *plan, pl_arena *arena, pl_extents *out);

#endif
