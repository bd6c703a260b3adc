/* What stands where in a plan's file (layout.h). */
#include "plan/layout.h"

#include <string.h>

enum { SINGLE_ROWS = 3 }; /* header, device, predictions */

/* The header states how many there are of all jobs. */
static planc_status check_replicas(const planc_plan *plan) {
  int32_t n = planc_plan_replicas(plan);
  if (n > PLANC_PLAN_MAX_REPLICAS)
    return planc_error(PLANC_INVALID_PLAN, "%d replicas, at most %d are allowed", n, PLANC_PLAN_MAX_REPLICAS);
  for (int32_t j = 1; j < plan->n_jobs; j++) {
    int32_t of_job = plan->jobs[j].replicas > 1 ? plan->jobs[j].replicas : 1;
    if (of_job != n) return planc_error(PLANC_INVALID_PLAN, "job %d has %d replicas, job 0 has %d", j, of_job, n);
  }
  return NULL;
}

/* A name is one job's. */
static planc_status check_names(const planc_plan *plan) {
  for (int32_t j = 0; j < plan->n_jobs; j++)
    for (int32_t k = 0; k < j && plan->jobs[j].name; k++)
      if (plan->jobs[k].name && strcmp(plan->jobs[k].name, plan->jobs[j].name) == 0)
        return planc_error(PLANC_INVALID_PLAN, "jobs %d and %d have one name, %s", k, j, plan->jobs[j].name);
  return NULL;
}

planc_status pl_plan_layout_make(const planc_plan *plan, pl_arena *arena, pl_plan_layout *out) {
  *out = (pl_plan_layout){0};
  if (plan->n_jobs < 0 || plan->n_jobs > PLANC_PLAN_MAX_JOBS) {
    return planc_error(PLANC_INVALID_PLAN, "%d jobs, at most %d are allowed", plan->n_jobs, PLANC_PLAN_MAX_JOBS);
  }
  PLANC_TRY(PL_NEW(arena, &out->graphs, plan->n_jobs));
  PLANC_TRY(PL_NEW(arena, &out->graph_of_job, plan->n_jobs));
  PLANC_TRY(check_replicas(plan));
  PLANC_TRY(check_names(plan));
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
  out->first_instr_line = 1 + SINGLE_ROWS + plan->n_memories + plan->n_links + out->n_graphs + out->n_tensors +
                          out->n_ops + plan->n_jobs + plan->n_streams + plan->n_algorithms + plan->n_boundary +
                          plan->n_mappings;
  return NULL;
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

const planc_instr *pl_plan_instr_at(const planc_plan *plan, int64_t index) {
  if (index < plan->prologue.n) return &plan->prologue.instrs[index];
  index -= plan->prologue.n;
  if (index < plan->body.n) return &plan->body.instrs[index];
  return &plan->epilogue.instrs[index - plan->body.n];
}

int32_t pl_plan_uses_at(const planc_plan *plan, int64_t index) {
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  int32_t start = pl_plan_instr_at(plan, index)->first_use, end = plan->n_uses;
  for (int64_t next = index + 1; next < n_instrs; next++) {
    const planc_instr *instr = pl_plan_instr_at(plan, next);
    if (instr->op != PLANC_INSTR_exec) continue;
    end = instr->first_use;
    break;
  }
  return start < 0 || end < start || end > plan->n_uses ? -1 : end - start;
}
