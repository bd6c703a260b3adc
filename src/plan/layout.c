/* What stands where in a plan's file (layout.h). */
#include "plan/layout.h"

enum { ROWS_BEFORE_GRAPHS = 3 }; /* header, device, predictions */

planc_status planc_plan_layout_make(const planc_plan *plan, planc_arena *arena, planc_plan_layout *out) {
  *out = (planc_plan_layout){0};
  if (plan->n_jobs < 0 || plan->n_jobs > PLANC_PLAN_MAX_JOBS) {
    return planc_error(PLANC_INVALID_PLAN, "%d jobs, at most %d are allowed", plan->n_jobs, PLANC_PLAN_MAX_JOBS);
  }
  PLANC_TRY(PLANC_NEW(arena, &out->graphs, plan->n_jobs));
  PLANC_TRY(PLANC_NEW(arena, &out->graph_of_job, plan->n_jobs));
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_graph *graph = plan->jobs[j].graph;
    int32_t g = 0;
    while (g < out->n_graphs && out->graphs[g] != graph) g++;
    out->graph_of_job[j] = g;
    if (g < out->n_graphs) continue;
    out->graphs[out->n_graphs++] = graph;
    out->n_tensors += graph->n_tensors;
    out->n_ops += graph->n_ops;
  }
  out->n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  out->first_instr_line = 1 + ROWS_BEFORE_GRAPHS + out->n_graphs + out->n_tensors + out->n_ops + plan->n_jobs +
                          plan->n_streams + plan->n_algorithms + plan->n_boundary + plan->n_mappings;
  return NULL;
}

int32_t planc_gpu_of_job(const planc_plan *plan, int32_t job) {
  for (int32_t s = 0; s < plan->n_streams; s++) {
    if (plan->streams[s].job == job) return plan->streams[s].gpu;
  }
  return 0;
}

const planc_instr *planc_plan_instr_at(const planc_plan *plan, int64_t index) {
  if (index < plan->prologue.n) return &plan->prologue.instrs[index];
  index -= plan->prologue.n;
  if (index < plan->body.n) return &plan->body.instrs[index];
  return &plan->epilogue.instrs[index - plan->body.n];
}

int32_t planc_plan_uses_at(const planc_plan *plan, int64_t index) {
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  int32_t start = planc_plan_instr_at(plan, index)->first_use, end = plan->n_uses;
  for (int64_t next = index + 1; next < n_instrs; next++) {
    const planc_instr *instr = planc_plan_instr_at(plan, next);
    if (instr->op != PLANC_INSTR_exec) continue;
    end = instr->first_use;
    break;
  }
  return start < 0 || end < start || end > plan->n_uses ? -1 : end - start;
}
