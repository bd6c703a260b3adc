/* Spans of positions, of which the first around a position is asked for while spans change: a tree over the
 * positions, in which a question takes logarithmic time, and a change the square of that. */
#ifndef PLANC_CHOOSE_COVERS_H
#define PLANC_CHOOSE_COVERS_H

#include <stdbool.h>

#include "util/arena.h"
#include "util/vec.h"

/* The positions between `behind` and `ahead`, or, if that is not behind `behind`, all but those from `ahead` to
 * `behind`. */
typedef struct pl_cover {
  int32_t behind, ahead;
} pl_cover;

bool pl_cover_is_around(pl_cover cover, int32_t position);

typedef VEC(int32_t) pl_cover_heap;

typedef struct pl_covers {
  int32_t n_positions, leaves;
  pl_cover *of; /* by place in the order */
  bool *present;
  pl_cover_heap *nodes; /* the first on top; some are no longer around the node's positions */
} pl_covers;

/* `covers` is zeroed; n spans may be set. */
planc_status pl_covers_make(pl_arena *arena, int32_t n_positions, int32_t n, pl_covers *covers);
void pl_covers_free(pl_covers *covers);

planc_status pl_covers_set(pl_covers *covers, int32_t place, pl_cover cover);
void pl_covers_remove(pl_covers *covers, int32_t place);
/* The first in the order, -1 if there is none. */
int32_t pl_covers_first(pl_covers *covers, int32_t position);

#endif
