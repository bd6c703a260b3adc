/* Making and freeing plans. */
#include "plan/plan_memory.h"

#include <stdlib.h>

planc_status planc_plan_new(planc_plan **out) {
  planc_plan *plan = calloc(1, sizeof *plan);
  struct planc_plan_memory *memory = calloc(1, sizeof *memory);
  if (!plan || !memory) {
    free(plan);
    free(memory);
    return planc_error(PLANC_OUT_OF_MEMORY, "a plan");
  }
  plan->memory = memory;
  *out = plan;
  return NULL;
}

void planc_plan_free(planc_plan *plan) {
  if (!plan) return;
  struct planc_plan_memory *memory = plan->memory;
  if (memory) {
    for (int32_t i = 0; i < memory->n_graphs; ++i) planc_graph_free(memory->graphs[i]);
    planc_arena_free(&memory->arena);
    free(memory);
  }
  free(plan);
}
