/* What a plan owns. Everything a plan points to, apart from its graphs, is allocated in its arena. */
#ifndef PLANC_PLAN_OWNED_H
#define PLANC_PLAN_OWNED_H

#include "planc/plan.h"
#include "util/arena.h"

struct planc_plan_owned {
  pl_arena arena;
  planc_graph **graphs; /* freed with the plan; the array itself is in the arena. None when graphs are borrowed */
  int32_t n_graphs;
};

/* An empty plan; freed with planc_plan_free. */
planc_status pl_plan_new(planc_plan **out);

#endif
