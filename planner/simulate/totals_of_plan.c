/* Sums over a plan's instructions, and its peaks (totals_of_plan.h). */
#include "planner/simulate/totals_of_plan.h"

#include "plan/derived.h"
#include "plan/memories.h"
#include "planner/analysis/plan_live.h"
#include "planner/analysis/plan_streams.h"
#include "util/math.h"

static planc_status count_body(const planc_plan *plan, const pl_acquired *acquired, pl_arena *arena,
                               planc_simulation *out);
static planc_status find_live_peak(const planc_plan *plan, const pl_acquired *acquired, pl_arena *arena,
                                   planc_simulation *out);

planc_status pl_plan_totals(const planc_plan *plan, const pl_acquired *acquired, planc_simulation *out) {
  pl_arena arena = {0};
  out->peak_bytes = pl_plan_peak(plan, PLANC_MEMORY_DEVICE);
  planc_status status = count_body(plan, acquired, &arena, out);
  if (!status) status = find_live_peak(plan, acquired, &arena, out);
  pl_arena_free(&arena);
  return status;
}

/* Times are of one GPU, bytes of all. */
static planc_status count_body(const planc_plan *plan, const pl_acquired *acquired, pl_arena *arena,
                               planc_simulation *out) {
  int32_t gpus = planc_plan_gpus(plan);
  planc_job_predictions *jobs;
  PLANC_TRY(PL_NEW(arena, &jobs, plan->n_jobs));
  pl_plan_count_body(plan, acquired, jobs);
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    for (int r = 0; r < PLANC_N_ROUTES; r++)
      out->copied_bytes[r] = pl_add_saturate(out->copied_bytes[r], jobs[j].copied_bytes[r]);
    out->recompute_ns = pl_add_saturate(out->recompute_ns, jobs[j].recompute_ns);
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (pl_instr_is_kernel(plan, instr)) out->compute_ns = pl_add_saturate(out->compute_ns, instr->time_ns);
  }
  if (gpus > 1) out->compute_ns /= gpus;
  return NULL;
}

static planc_status find_live_peak(const planc_plan *plan, const pl_acquired *acquired, pl_arena *arena,
                                   planc_simulation *out) {
  pl_fullest fullest;
  PLANC_TRY(pl_find_fullest(plan, PLANC_MEMORY_DEVICE, acquired, arena, &fullest));
  out->live_peak_bytes = fullest.bytes;
  out->live_peak_instr = fullest.instr;
  return NULL;
}
