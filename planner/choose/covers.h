/* Spans of instances in an order, of which the first around an instance is asked for while spans change: a tree over
 * the instances, in which a question takes logarithmic time, and a change the square of that. */
#ifndef PLANC_CHOOSE_COVERS_H
#define PLANC_CHOOSE_COVERS_H

#include <stdbool.h>

#include "util/arena.h"
#include "util/vec.h"

/* The instances between `behind` and `ahead`, or, if that is not behind `behind`, all but those from `ahead` to
 * `behind`. */
typedef struct planc_cover {
  int32_t behind, ahead;
} planc_cover;

bool planc_cover_is_around(planc_cover cover, int32_t instance);

typedef VEC(int32_t) planc_cover_heap;

typedef struct planc_covers {
  int32_t n_instances, leaves;
  planc_cover *of; /* by place in the order */
  bool *present;
  planc_cover_heap *nodes; /* the first on top; some are no longer around the node's instances */
} planc_covers;

/* `covers` is zeroed; n spans may be set. */
planc_status planc_covers_make(planc_arena *arena, int32_t n_instances, int32_t n, planc_covers *covers);
void planc_covers_free(planc_covers *covers);

planc_status planc_covers_set(planc_covers *covers, int32_t place, planc_cover cover);
void planc_covers_remove(planc_covers *covers, int32_t place);
/* The first in the order, -1 if there is none. */
int32_t planc_covers_first(planc_covers *covers, int32_t instance);

#endif
