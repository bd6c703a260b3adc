/* Links by what they are looked up by. */
#ifndef PLANC_PLAN_LINK_INDEX_H
#define PLANC_PLAN_LINK_INDEX_H

#include "planc/plan.h"
#include "util/arena.h"

typedef struct pl_link_key {
  int32_t engine, from, to;
  int32_t link;
} pl_link_key;

typedef struct pl_link_index {
  int32_t n;
  pl_link_key *keys; /* by engine, from, to */
} pl_link_index;

/* INVALID_PLAN when a link of an engine stands twice. */
planc_status pl_link_index_make(const planc_plan *plan, pl_arena *arena, pl_link_index *out);
/* The engine's link between the two memories, -1 = it has none. */
int32_t pl_link_find(const pl_link_index *index, int32_t engine, int32_t from, int32_t to);

#endif
