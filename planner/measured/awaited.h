/* What each timed instruction of a plan's body awaits before it runs. */
#ifndef PLANC_MEASURED_AWAITED_H
#define PLANC_MEASURED_AWAITED_H

#include "planc/timeline.h"
#include "util/arena.h"
#include "util/vec.h"

/* A timed instruction of the period looked at (back 0) or of the one before (back 1). */
typedef struct planc_awaited_node {
  int32_t timed; /* -1: none known */
  int32_t back;
} planc_awaited_node;

/* Timed instruction k awaits its stream's instruction before it, then others: from nodes.data[first[k]] up to, not
 * including, nodes.data[first[k + 1]]. */
typedef struct planc_awaited {
  int64_t *first;
  VEC(planc_awaited_node) nodes;
  planc_arena arena;
} planc_awaited;

/* By instruction of the body: its index among the timed ones, -1 for others. */
planc_status planc_timed_of(const planc_plan *plan, const planc_timeline *timeline, planc_arena *arena, int32_t **out);
/* Of a plan whose streams and events are right, which planc_section_check checks. */
planc_status planc_awaited_find(const planc_plan *plan, const planc_timeline *timeline, const int32_t *timed_of,
                                planc_awaited *out);
void planc_awaited_free(planc_awaited *awaited);

#endif
