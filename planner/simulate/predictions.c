/* What a plan predicts of its run (simulate.h). */
#include "plan/layout.h"
#include "planc/simulate.h"
#include "util/math.h"

planc_predictions planc_simulation_predictions(const planc_plan *plan, const planc_simulation *simulation) {
  planc_predictions predicted = plan->predicted;
  predicted.peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_DEVICE);
  predicted.host_peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_HOST);
  predicted.iteration_ns = simulation->iteration_ns;
  predicted.d2h_bytes = simulation->d2h_bytes;
  predicted.h2d_bytes = simulation->h2d_bytes;
  predicted.recompute_ns = simulation->recompute_ns;
  predicted.stall_ns = 0;
  for (int32_t i = 0; i < PLANC_N_STALLS; i++)
    predicted.stall_ns = planc_add_saturate(predicted.stall_ns, simulation->stall_ns[i]);
  return predicted;
}

bool planc_predictions_better(const planc_predictions *a, const planc_predictions *b) {
  if (a->iteration_ns != b->iteration_ns) return a->iteration_ns < b->iteration_ns;
  return a->peak_bytes < b->peak_bytes;
}
