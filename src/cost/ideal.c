/* moDNN's ideal (V), against which iterations are measured. */
#include "cost/ideal.h"

#include <assert.h>

#include "util/math.h"

typedef enum part { ALL, ROUND, OPTIMIZER } part; /* of the ops; a round's are all but the optimizer's */
static int64_t sum(const planc_costs *costs, const planc_graph *graph, int64_t batch, part of, const bool *left_out);

int64_t planc_costs_ideal(const planc_costs *costs, const planc_graph *graph, int64_t batch) {
  return sum(costs, graph, batch, ALL, NULL);
}

int64_t pl_ideal_but_for(const planc_costs *costs, const planc_graph *graph, int64_t batch, const bool *left_out) {
  return sum(costs, graph, batch, ALL, left_out);
}

planc_status pl_ideal_of_rounds(const planc_profile *profile, const planc_graph *graph, int64_t batch, int64_t size,
                                int64_t *out_ns) {
  int64_t rest = batch % size, sizes[] = {batch, size, rest};
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(profile, graph, rest > 0 ? 3 : 2, sizes, &costs));
  *out_ns = pl_ideal_in_rounds(costs, graph, batch, size);
  planc_costs_free(costs);
  return NULL;
}

int64_t pl_ideal_in_rounds(const planc_costs *costs, const planc_graph *graph, int64_t batch, int64_t size) {
  int64_t rest = batch % size;
  assert(planc_costs_batch(costs, size) >= 0 && planc_costs_batch(costs, batch) >= 0);
  assert(rest == 0 || planc_costs_batch(costs, rest) >= 0);
  int64_t ns = pl_mul_saturate(batch / size, sum(costs, graph, size, ROUND, NULL));
  if (rest > 0) ns = pl_add_saturate(ns, sum(costs, graph, rest, ROUND, NULL));
  return pl_add_saturate(ns, sum(costs, graph, batch, OPTIMIZER, NULL));
}

static int64_t sum(const planc_costs *costs, const planc_graph *graph, int64_t batch, part of, const bool *left_out) {
  int32_t at = planc_costs_batch(costs, batch);
  int64_t ns = 0;
  for (int32_t op = 0; at >= 0 && op < graph->n_ops; op++) {
    bool optimizes = graph->ops[op].phase == PLANC_PHASE_optimizer;
    if ((left_out && left_out[op]) || (of != ALL && optimizes != (of == OPTIMIZER))) continue;
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, op, at, &count);
    int32_t fastest = planc_variant_fastest(variants, count, INT64_MAX);
    if (fastest >= 0) ns = pl_add_saturate(ns, variants[fastest].time_ns);
  }
  return ns;
}
