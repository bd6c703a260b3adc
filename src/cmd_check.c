/* `planc check`: is a plan valid, does it fit a budget, was it made from this graph? */
#include "cli.h"
#include "planc/check.h"
#include "util/size.h"

static planc_status compare_graph(const planc_arguments *arguments, const planc_plan *plan) {
  const char *path = planc_option_value(arguments, "graph");
  if (!path) return NULL;
  planc_graph *graph;
  PLANC_TRY(planc_graph_read(path, &graph));
  bool same = planc_graph_hash(graph) == plan->graph_hash;
  planc_status status = NULL;
  if (!same && !planc_graph_has_backward(graph) && planc_graph_has_backward(plan->jobs[0].graph)) {
    /* The plan may have been made from this graph with training derived: one of the optimizers must give its hash. */
    for (int optimizer = PLANC_SGD; optimizer <= PLANC_ADAM && !status && !same; optimizer++) {
      planc_graph *train;
      status = planc_graph_train(graph, (planc_optimizer)optimizer, &train);
      if (status) break;
      same = planc_graph_hash(train) == plan->graph_hash;
      planc_graph_free(train);
    }
  }
  planc_graph_free(graph);
  if (status) return status;
  return same ? NULL : planc_error(PLANC_STALE, "the plan was made from another graph than %s", path);
}

static planc_status print_report(const planc_check_report *report, const planc_plan *plan, int64_t budget, bool json) {
  if (json) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "planc", "check/1");
    cJSON_AddBoolToObject(object, "valid", true);
    planc_report_int(object, "budget_bytes", budget);
    planc_report_int(object, "peak_bytes", report->peak_bytes);
    planc_report_int(object, "host_peak_bytes", report->host_peak_bytes);
    planc_report_int(object, "touched_bytes", report->touched_bytes);
    planc_report_int(object, "instances", report->instances);
    planc_report_int(object, "instructions", report->instructions);
    planc_report_int(object, "recomputed", report->recomputed);
    return planc_report_json(object);
  }
  char a[PLANC_SIZE_TEXT], b[PLANC_SIZE_TEXT];
  printf("valid: %s, %s, peak %s of %s, %d instructions\n", plan->name, plan->policy,
         planc_size_format(report->peak_bytes, a), planc_size_format(budget, b), report->instructions);
  return NULL;
}

/* That a plan does not pass is a report as well, for programs. */
static planc_status print_refusal(planc_status refusal) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "planc", "check/1");
  cJSON_AddBoolToObject(object, "valid", false);
  planc_report_int(object, "exit_code", planc_exit_code(planc_status_code(refusal)));
  cJSON_AddStringToObject(object, "message", planc_status_message(refusal));
  return planc_report_json(object);
}

static planc_status check_plan(const planc_arguments *arguments, const planc_plan *plan) {
  planc_check_options options;
  planc_check_report report;
  bool json = planc_option_given(arguments, "json");
  PLANC_TRY(planc_option_size(arguments, "budget", -1, &options.budget_bytes));
  PLANC_TRY(planc_option_size(arguments, "host-budget", -1, &options.host_budget_bytes));
  planc_status status = compare_graph(arguments, plan);
  if (!status) status = planc_context(planc_check(plan, &options, &report), "%s", arguments->operands[0]);
  planc_code code = planc_status_code(status);
  if (json && (code == PLANC_INVALID_PLAN || code == PLANC_INFEASIBLE || code == PLANC_STALE)) {
    planc_status_free(print_refusal(status)); /* the refusal is what the user is told in any case */
  }
  if (status) return status;
  int64_t budget = options.budget_bytes < 0 ? plan->budget_bytes : options.budget_bytes;
  return print_report(&report, plan, budget, json);
}

static planc_status run(const planc_arguments *arguments) {
  planc_plan *plan;
  PLANC_TRY(planc_plan_read(arguments->operands[0], &plan));
  planc_status status = check_plan(arguments, plan);
  planc_plan_free(plan);
  return status;
}

static const planc_option options[] = {
    {"budget", 'm', "SIZE", "device memory it must fit (default: the plan's own budget)"},
    {"host-budget", 0, "SIZE", "host memory it must fit (default: the plan's own)"},
    {"graph", 'g', "FILE", "the graph it must have been made from"},
    {"json", 0, NULL, "the report as one line of JSON"},
    {0},
};

const planc_subcommand planc_cmd_check = {{"check", "PLAN", "check a plan and its budget", options, 1, 1}, run};
