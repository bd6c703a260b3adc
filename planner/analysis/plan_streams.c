/* Whether what instructions say of a plan's streams can be gone by (plan_streams.h). */
#include "planner/analysis/plan_streams.h"

#include "cost/routes.h"
#include "plan/tables.h"

static bool is_memory(const planc_plan *plan, int32_t memory) {
  return memory >= 0 && memory < plan->n_memories;
}

planc_route pl_instr_route(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *instr) {
  if (instr->op != PLANC_INSTR_copy) return PLANC_NO_ROUTE;
  int32_t from = pl_memory_of_side(plan, acquired, instr->aux);
  int32_t to = pl_memory_of_side(plan, acquired, instr->id);
  if (from == to || !is_memory(plan, from) || !is_memory(plan, to)) return PLANC_NO_ROUTE;
  return pl_route_between(plan->memories[from].kind, plan->memories[to].kind);
}

static bool is_place(const planc_plan *plan, int32_t residency) {
  return residency == PLANC_USER || (residency >= 0 && residency < plan->n_residencies);
}

planc_status pl_stream_instr_check(const planc_plan *plan, const planc_instr *instr) {
  bool event = instr->op == PLANC_INSTR_record || instr->op == PLANC_INSTR_wait;
  if (instr->stream < 0 || instr->stream >= plan->n_streams)
    return planc_error(PLANC_INVALID_PLAN, "there is no stream %d", instr->stream);
  if (event && (instr->id < 0 || instr->id >= plan->n_events))
    return planc_error(PLANC_INVALID_PLAN, "there is no event %d", instr->id);
  if (instr->op == PLANC_INSTR_copy && (!is_place(plan, instr->id) || !is_place(plan, instr->aux)))
    return planc_error(PLANC_INVALID_PLAN, "there is no residency %d, or none %d", instr->id, instr->aux);
  if (instr->op == PLANC_INSTR_exec && plan->streams[instr->stream].kind != PLANC_STREAM_KIND_compute)
    return planc_error(PLANC_INVALID_PLAN, "stream %d runs no ops", instr->stream);
  if (instr->time_ns < 0 || instr->bytes < 0) return planc_error(PLANC_INVALID_PLAN, "a time or a size is negative");
  return NULL;
}

planc_status pl_section_check(const planc_plan *plan, const planc_section *section) {
  PLANC_TRY(pl_tables_check(plan));
  for (int32_t i = 0; i < section->n; i++)
    if (pl_instr_has_stream(&section->instrs[i])) PLANC_TRY(pl_stream_instr_check(plan, &section->instrs[i]));
  return NULL;
}
