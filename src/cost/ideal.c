/* moDNN's ideal (V), against which iterations are measured. */
#include "cost/ideal.h"

#include "util/math.h"

int64_t planc_costs_ideal(const planc_costs *costs, const planc_graph *graph, int64_t batch) {
  return pl_ideal_but_for(costs, graph, batch, NULL);
}

int64_t pl_ideal_but_for(const planc_costs *costs, const planc_graph *graph, int64_t batch, const bool *left_out) {
  int32_t at = planc_costs_batch(costs, batch);
  int64_t sum = 0;
  for (int32_t op = 0; at >= 0 && op < graph->n_ops; op++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, op, at, &count);
    int32_t fastest = planc_variant_fastest(variants, count, INT64_MAX);
    if (fastest >= 0 && !(left_out && left_out[op])) sum = pl_add_saturate(sum, variants[fastest].time_ns);
  }
  return sum;
}

planc_status planc_ideal_time(const planc_profile *profile, const planc_graph *graph, int64_t batch, int64_t *out_ns) {
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(profile, graph, 1, &batch, &costs));
  *out_ns = planc_costs_ideal(costs, graph, batch);
  planc_costs_free(costs);
  return NULL;
}
