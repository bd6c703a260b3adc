/* The papers' measures of a schedule (metrics.h). */
#include "planc/metrics.h"

#include "plan/plan_trace.h"
#include "planner/analysis/plan_live.h"
#include "planner/analysis/plan_streams.h"
#include "util/math.h"

static int64_t less_one(int64_t ppm);
static int64_t ratio(int64_t a, int64_t b);
static int64_t samples_per_second(int64_t samples, int64_t period_ns);
static int64_t saving(int64_t bytes, int64_t vanilla_bytes);
static int64_t benefit(int64_t saving_ppm, int64_t cost_ppm);

planc_outcome planc_outcome_of(const planc_plan *plan) {
  planc_outcome outcome = {.period_ns = plan->predicted.period_ns, .total = planc_plan_predicted_total(plan)};
  for (int32_t kind = 0; kind < PLANC_N_MEMORY_KINDS; kind++)
    outcome.peak_bytes[kind] = plan->predicted.peak_bytes[kind];
  return outcome;
}

void planc_metrics_of(const planc_outcome *run, int64_t samples, const planc_outcome *vanilla, planc_metrics *out) {
  *out = (planc_metrics){.overhead_ppm = less_one(ratio(run->period_ns, run->total.ideal_ns)),
                         .throughput_ppm = samples_per_second(samples, run->period_ns),
                         .moved_bytes = pl_add_saturate(run->total.copied_bytes[PLANC_ROUTE_D2H],
                                                        run->total.copied_bytes[PLANC_ROUTE_H2D]),
                         .msr_ppm = PLANC_NO_METRIC,
                         .eor_ppm = PLANC_NO_METRIC};
  if (vanilla) {
    out->msr_ppm = saving(run->peak_bytes[PLANC_MEMORY_DEVICE], vanilla->peak_bytes[PLANC_MEMORY_DEVICE]);
    out->eor_ppm = ratio(run->period_ns, vanilla->period_ns);
  }
  out->eor_excess_ppm = less_one(out->eor_ppm);
  out->cbr_ppm = benefit(out->msr_ppm, out->eor_ppm);
}

/* a / b in parts per million. */
static int64_t ratio(int64_t a, int64_t b) {
  return a >= 0 && b > 0 ? pl_muldiv_floor(a, PL_PPM, b) : PLANC_NO_METRIC;
}

static int64_t less_one(int64_t ppm) {
  return ppm == PLANC_NO_METRIC ? ppm : ppm - PL_PPM;
}

static int64_t samples_per_second(int64_t samples, int64_t period_ns) {
  return samples >= 0 && period_ns > 0 ? pl_muldiv_floor(samples, (int64_t)PL_NS * PL_PPM, period_ns) : PLANC_NO_METRIC;
}

/* A schedule that needs more than none saves a negative share. */
static int64_t saving(int64_t bytes, int64_t vanilla_bytes) {
  int64_t kept = ratio(bytes, vanilla_bytes);
  return kept == PLANC_NO_METRIC ? kept : PL_PPM - kept;
}

static int64_t benefit(int64_t saving_ppm, int64_t cost_ppm) {
  if (saving_ppm == PLANC_NO_METRIC || cost_ppm == PLANC_NO_METRIC) return PLANC_NO_METRIC;
  if (saving_ppm >= 0) return ratio(saving_ppm, cost_ppm);
  int64_t loss = ratio(-saving_ppm, cost_ppm);
  return loss == PLANC_NO_METRIC ? loss : -loss;
}

/* Whether the body fetches anything from another memory but what other replicas sent there. */
static planc_status find_swaps(const planc_plan *plan, const planc_trace *trace, pl_arena *arena, bool *out) {
  pl_acquired *acquired;
  PLANC_TRY(pl_plan_check_names(plan, trace));
  PLANC_TRY(pl_plan_acquired(plan, arena, &acquired));
  *out = false;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_copy || instr->id == PLANC_USER || instr->aux == PLANC_USER) continue;
    PLANC_TRY(pl_stream_instr_check(plan, instr));
    bool fetches = pl_way_of_copy(plan, acquired, instr) == PL_COPY_IN && acquired[instr->id].buffer >= 0;
    *out |= fetches && trace->buffers[acquired[instr->id].buffer].peer < 0;
  }
  return NULL;
}

planc_status planc_plan_means(const planc_plan *plan, const char **out) {
  static const char *const words[] = {"everything stays",
                                      "rounds alone (gradient accumulation)",
                                      "swaps",
                                      "rounds, swaps",
                                      "recomputes (checkpointing)",
                                      "rounds, recomputes",
                                      "swaps, recomputes",
                                      "rounds, swaps, recomputes"};
  planc_trace *trace;
  pl_arena arena = {0};
  bool rounds = false, swaps, recomputes = planc_plan_predicted_total(plan).recompute_ns > 0;
  for (int32_t j = 0; j < plan->n_jobs; j++) rounds |= plan->jobs[j].n_rounds > 1;
  PLANC_TRY(pl_plan_expand(plan, &trace));
  planc_status status = find_swaps(plan, trace, &arena, &swaps);
  if (!status) *out = words[(rounds ? 1 : 0) + (swaps ? 2 : 0) + (recomputes ? 4 : 0)];
  pl_arena_free(&arena);
  planc_trace_free(trace);
  return status;
}
