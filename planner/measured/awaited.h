/* What each timed instruction of a plan's body awaits before it runs. */
#ifndef PLANC_MEASURED_AWAITED_H
#define PLANC_MEASURED_AWAITED_H

#include "planc/timeline.h"
#include "util/arena.h"
#include "util/vec.h"

/* A timed instruction of the period looked at (back 0) or of the one before (back 1). */
typedef struct pl_awaited_node {
  int32_t timed; /* -1: none known */
  int32_t back;
} pl_awaited_node;

/* Timed instruction k awaits its stream's instruction before it, then others: from nodes.data[first[k]] up to, not
 * including, nodes.data[first[k + 1]]. */
typedef struct pl_awaited {
  int64_t *first;
  VEC(pl_awaited_node) nodes;
  pl_arena arena;
} pl_awaited;

/* By instruction of the body: its index among the timed ones, -1 for others. */
planc_status pl_timed_of(const planc_plan *plan, const planc_timeline *timeline, pl_arena *arena, int32_t **out);
/* Of a plan whose streams and events are right, which pl_section_check checks. */
planc_status pl_awaited_find(const planc_plan *plan, const planc_timeline *timeline, const int32_t *timed_of,
                             pl_awaited *out);
void pl_awaited_free(pl_awaited *awaited);

#endif
