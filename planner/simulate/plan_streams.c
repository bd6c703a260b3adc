/* Whether a plan's streams, and what instructions say of them, can be gone by (plan_streams.h). */
#include "planner/simulate/plan_streams.h"

planc_status planc_streams_check(const planc_plan *plan) {
  for (int32_t s = 0; s < plan->n_streams; s++)
    if (plan->streams[s].job < 0 || plan->streams[s].job >= plan->n_jobs)
      return planc_error(PLANC_INVALID_PLAN, "stream %d: there is no job %d", s, plan->streams[s].job);
  return NULL;
}

planc_status planc_stream_instr_check(const planc_plan *plan, const planc_instr *instr) {
  bool event = instr->op == PLANC_INSTR_record || instr->op == PLANC_INSTR_wait;
  if (instr->stream < 0 || instr->stream >= plan->n_streams)
    return planc_error(PLANC_INVALID_PLAN, "there is no stream %d", instr->stream);
  if (event && (instr->id < 0 || instr->id >= plan->n_events))
    return planc_error(PLANC_INVALID_PLAN, "there is no event %d", instr->id);
  if (instr->time_ns < 0 || instr->bytes < 0) return planc_error(PLANC_INVALID_PLAN, "a time or a size is negative");
  return NULL;
}

planc_status planc_section_check(const planc_plan *plan, const planc_section *section) {
  PLANC_TRY(planc_streams_check(plan));
  for (int32_t i = 0; i < section->n; i++)
    if (planc_instr_has_stream(&section->instrs[i])) PLANC_TRY(planc_stream_instr_check(plan, &section->instrs[i]));
  return NULL;
}
