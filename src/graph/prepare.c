/* From a file to the graph that is planned, profiled and run. */
#include "graph/train.h"

planc_status planc_graph_optimizer(const planc_graph *graph, const char *name, planc_optimizer *out,
                                   const char **out_name) {
  const char *chosen = name ? name : graph->optimizer ? graph->optimizer : pl_optimizer_name(PLANC_SGD);
  planc_status status = planc_optimizer_parse(chosen, out);
  if (status && name) {
    planc_status usage = planc_error(PLANC_USAGE, "%s", planc_status_message(status));
    planc_status_free(status);
    return usage;
  }
  PLANC_TRY(status);
  *out_name = pl_optimizer_name(*out);
  return NULL;
}

planc_status planc_graph_prepare(const char *path, const char *optimizer, bool inference, planc_graph **out,
                                 const char **out_derived) {
  planc_graph *graph;
  *out_derived = NULL;
  if (inference && optimizer) return planc_error(PLANC_USAGE, "an optimizer and inference exclude each other");
  PLANC_TRY(planc_graph_read(path, &graph));
  bool trains = planc_graph_has_backward(graph);
  if (trains && (optimizer || inference)) {
    planc_graph_free(graph);
    return planc_error(PLANC_USAGE, "%s has backward ops already, %s is for graphs without", path,
                       inference ? "inference" : "an optimizer");
  }
  if (trains || inference) {
    *out = graph;
    return NULL;
  }
  planc_optimizer chosen = PLANC_SGD;
  planc_status status = NULL;
  if (graph->loss < 0) {
    status = planc_refusal(PLANC_BAD_INPUT, PLANC_REMEDY_INFERENCE, "%s: graph %s has no loss to derive training from",
                           path, graph->name);
  }
  if (!status) status = planc_graph_optimizer(graph, optimizer, &chosen, out_derived);
  if (!status) status = planc_context(planc_graph_train(graph, chosen, out), "%s", path);
  planc_graph_free(graph);
  return status;
}
