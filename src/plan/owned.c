/* Making and freeing plans. */
#include "plan/owned.h"

#include <stdlib.h>

planc_status pl_plan_new(planc_plan **out) {
  planc_plan *plan = calloc(1, sizeof *plan);
  planc_plan_owned *owned = calloc(1, sizeof *owned);
  if (!plan || !owned) {
    free(plan);
    free(owned);
    return planc_error(PLANC_OUT_OF_MEMORY, "a plan");
  }
  plan->owned = owned;
  *out = plan;
  return NULL;
}

void planc_plan_free(planc_plan *plan) {
  if (!plan) return;
  planc_plan_owned *owned = plan->owned;
  if (owned) {
    for (int32_t i = 0; i < owned->n_graphs; ++i) planc_graph_free(owned->graphs[i]);
    pl_arena_free(&owned->arena);
    free(owned);
  }
  free(plan);
}
