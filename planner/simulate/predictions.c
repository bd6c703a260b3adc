/* What a plan predicts of its run (simulate.h). */
#include "plan/derived.h"
#include "plan/tables.h"
#include "planc/simulate.h"

planc_status planc_simulate_predictions(planc_plan *plan) {
  planc_simulation simulation;
  PLANC_TRY(planc_simulate(plan, &(planc_simulate_options){.jobs = plan->predicted.jobs}, &simulation));
  PLANC_TRY(pl_tables_check_predicted(simulation.period_ns));
  plan->predicted.period_ns = simulation.period_ns;
  pl_plan_find_peaks(plan);
  return NULL;
}

bool planc_predictions_better(const planc_predictions *a, const planc_predictions *b) {
  if (a->period_ns != b->period_ns) return a->period_ns < b->period_ns;
  return a->peak_bytes[PLANC_MEMORY_DEVICE] < b->peak_bytes[PLANC_MEMORY_DEVICE];
}
