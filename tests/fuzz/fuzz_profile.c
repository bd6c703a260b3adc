/* Fuzz target: any bytes as a profile. What is accepted must also give costs, and what its model predicts must be a
 * profile again. */
#include <stdlib.h>
#include <string.h>

#include "planc/cost.h"
#include "planc/predict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char graph_text[] =
    "planc-graph: 1\n"
    "name: fuzz\n"
    "tensors: {x: 'input f32[N,4,9,9]', w: 'param f32[4,4,3,3]', y: 'f32[N,4,9,9]', z: 'f32[N,4,9,9]'}\n"
    "ops:\n"
    "  - {op: conv0, type: conv2d, in: [x, w], out: [y], attrs: {pad: [1, 1]}}\n"
    "  - {op: conv1, type: conv2d, in: [y, w], out: [z], attrs: {pad: [1, 1]}}\n"; /* in the corpus it is measured */

/* Costs are either refused or in range and in order. */
static void use(const planc_profile *profile) {
  static const int64_t batches[] = {1, 15, 4096, INT64_C(1) << 40};
  planc_graph *graph = NULL;
  if (planc_graph_parse(graph_text, strlen(graph_text), "graph", &graph)) abort();
  planc_costs *costs = NULL;
  planc_status status = planc_costs_make(profile, graph, 4, batches, &costs);
  if (!status != (costs != NULL)) abort();
  for (int32_t v = 0; costs && v < costs->first[(int64_t)graph->n_ops * costs->n_batches]; v++) {
    const planc_variant *variant = &costs->variants[v];
    if (variant->time_ns < 0 || variant->workspace_bytes < 0) abort();
    if (variant->busy_ppm < 1 || variant->busy_ppm > 1000000) abort();
  }
  planc_status_free(status);
  planc_costs_free(costs);
  planc_graph_free(graph);
}

static void predict(const planc_profile *profile) {
  static const int64_t batches[] = {1, 1000};
  planc_graph *graph = NULL;
  planc_predicted_costs *costs = NULL;
  planc_profile *again = NULL;
  char *text = NULL;
  size_t length = 0;
  if (planc_graph_parse(graph_text, strlen(graph_text), "graph", &graph)) abort();
  planc_predict_options options = {
      .profile = profile, .graph = graph, .n_batches = 2, .batches = batches, .load_ppm = 300000};
  planc_status status = planc_predict(&options, &costs);
  if (!status && planc_predicted_costs_print(costs, &text, &length)) abort();
  if (!status && planc_profile_parse(text, length, "printed", &again)) abort();
  planc_status_free(status);
  free(text);
  planc_profile_free(again);
  planc_predicted_costs_free(costs);
  planc_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  planc_profile *profile = NULL;
  planc_status status = planc_profile_parse((const char *)data, size, "fuzz", &profile);
  if (!status != (profile != NULL)) abort();
  if (profile) {
    const planc_device *device = planc_profile_device(profile);
    if (device->reserved_bytes > device->memory_bytes || planc_link_ns(&device->links[PLANC_ROUTE_H2D], INT64_MAX) < 0)
      abort();
    if (planc_costs_add_ns(profile, 1 << 20) <= 0) abort();
    use(profile);
    predict(profile);
  }
  planc_status_free(status);
  planc_profile_free(profile);
  return 0;
}
