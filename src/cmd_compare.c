/* `planc compare`: every policy side by side on one problem. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "planc/analysis.h"
#include "util/progress.h"
#include "util/size.h"

typedef struct row {
  const planc_policy *policy;
  planc_status unsupported; /* why the policy cannot plan this graph under any budget; owned */
  bool feasible;
  int64_t least_budget, sub_batch;
  planc_predictions predicted;
} row;

/* `ideal` is a device on which everything fits: its peak is the liveness peak plus reserved. */
static planc_status ideal_memory(const planc_problem *problem, row *out) {
  planc_job job = {
      .graph = problem->graph, .batch = problem->batch, .n_rounds = 1, .rounds = &problem->batch, .iterations = 1};
  planc_trace *trace;
  PLANC_TRY(planc_expand(&job, 1, &trace));
  planc_memory_needs needs;
  planc_status status = planc_memory_needs_of(trace, &needs);
  planc_trace_free(trace);
  if (status) return status;
  out->predicted.peak_bytes = needs.liveness_bytes + planc_profile_device(problem->profile)->reserved_bytes;
  out->least_budget = out->predicted.peak_bytes;
  return NULL;
}

static planc_status measure(const planc_problem *problem, row *out) {
  planc_plan *plan;
  planc_status status = planc_make_plan(problem, out->policy, &plan);
  out->feasible = !status;
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    status = NULL;
  }
  if (status) return status;
  if (out->feasible) {
    out->predicted = plan->predicted;
    out->sub_batch = plan->jobs[0].rounds[0];
    planc_plan_free(plan);
  }
  if (out->policy->supports & PLANC_POLICY_SIMULATED) return ideal_memory(problem, out);
  status = planc_least_budget(problem, out->policy, &out->least_budget);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  out->least_budget = -1;
  return NULL;
}

/* What fails here after the problem was read is the policy's: no sub-batches for a batch-coupled graph, say. */
static planc_status measure_or_explain(const planc_problem *problem, row *out) {
  planc_status status = measure(problem, out);
  planc_code code = planc_status_code(status);
  if (code != PLANC_USAGE && code != PLANC_BAD_INPUT) return planc_context(status, "%s", out->policy->name);
  out->unsupported = status;
  out->feasible = false;
  out->least_budget = -1;
  return NULL;
}

/* A graph that no policy can plan makes no table: the first reason is the error. */
static planc_status require_supported(row *rows, int32_t n) {
  int32_t supported = 0;
  for (int32_t i = 0; i < n; i++) supported += !rows[i].unsupported;
  if (supported || n == 0) return NULL;
  planc_status first = rows[0].unsupported;
  rows[0].unsupported = NULL;
  return planc_context(first, "%s", rows[0].policy->name);
}

static void add_result(cJSON *object, const char *key, bool there, int64_t value) {
  if (there) {
    planc_report_int(object, key, value);
  } else {
    cJSON_AddNullToObject(object, key);
  }
}

static planc_status print_json(const row *rows, int32_t n, const planc_problem *problem) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "planc", "compare/1");
  cJSON_AddStringToObject(object, "graph", problem->graph->name);
  cJSON_AddStringToObject(object, "device", planc_profile_device(problem->profile)->name);
  planc_report_int(object, "batch", problem->batch);
  planc_report_int(object, "budget_bytes", problem->budget_bytes);
  cJSON *array = cJSON_AddArrayToObject(object, "rows");
  for (int32_t i = 0; i < n; i++) {
    const row *r = &rows[i];
    const planc_predictions *p = &r->predicted;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "policy", r->policy->name);
    cJSON_AddBoolToObject(json, "feasible", r->feasible);
    if (r->unsupported) {
      cJSON_AddStringToObject(json, "unsupported", planc_status_message(r->unsupported));
    } else {
      cJSON_AddNullToObject(json, "unsupported");
    }
    add_result(json, "least_budget", r->least_budget >= 0, r->least_budget);
    add_result(json, "sub_batch", r->feasible, r->sub_batch);
    add_result(json, "iteration_ns", r->feasible, p->iteration_ns);
    add_result(json, "ideal_ns", r->feasible, p->ideal_ns);
    add_result(json, "peak_bytes", r->feasible, p->peak_bytes);
    add_result(json, "host_peak_bytes", r->feasible, p->host_peak_bytes);
    add_result(json, "d2h_bytes", r->feasible, p->d2h_bytes);
    add_result(json, "h2d_bytes", r->feasible, p->h2d_bytes);
    add_result(json, "recompute_ns", r->feasible, p->recompute_ns);
    add_result(json, "stall_ns", r->feasible, p->stall_ns);
    cJSON_AddItemToArray(array, json);
  }
  return planc_report_json(object);
}

static planc_status print_table(const row *rows, int32_t n, const planc_problem *problem) {
  char a[PLANC_SIZE_TEXT], b[PLANC_SIZE_TEXT], c[PLANC_SIZE_TEXT], d[PLANC_SIZE_TEXT], e[PLANC_SIZE_TEXT];
  printf("%s, batch %lld on %s, budget %s\n", problem->graph->name, (long long)problem->batch,
         planc_profile_device(problem->profile)->name, planc_size_format(problem->budget_bytes, a));
  printf("%-10s %12s %6s %16s %8s %12s %12s %12s %14s\n", "policy", "least budget", "round", "iteration", "ideal",
         "peak", "out", "in", "recompute");
  for (int32_t i = 0; i < n; i++) {
    const row *r = &rows[i];
    const planc_predictions *p = &r->predicted;
    const char *least = r->least_budget < 0 ? "-" : planc_size_format(r->least_budget, a);
    if (r->unsupported) {
      printf("%-10s %12s   unsupported: %s\n", r->policy->name, "-", planc_status_message(r->unsupported));
      continue;
    }
    if (!r->feasible) {
      printf("%-10s %12s   does not fit\n", r->policy->name, least);
      continue;
    }
    printf("%-10s %12s %6lld %16s %+7.1f%% %12s %12s %12s %14s\n", r->policy->name, least, (long long)r->sub_batch,
           planc_time_format(p->iteration_ns, b),
           p->ideal_ns ? 100.0 * (double)(p->iteration_ns - p->ideal_ns) / (double)p->ideal_ns : 0.0,
           planc_size_format(p->peak_bytes, c), planc_size_format(p->d2h_bytes, d), planc_size_format(p->h2d_bytes, e),
           p->recompute_ns ? "yes" : "-");
  }
  return NULL;
}

enum { MOST_POLICIES = 64 };

/* Splits "a,b,c" in place. */
static planc_status parse_policies(char *names, row *rows, int32_t *n) {
  char *save = NULL;
  for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
    if (*n == MOST_POLICIES) return planc_error(PLANC_USAGE, "too many policies");
    PLANC_TRY(planc_setup_policy(name, PLANC_USAGE, &rows[*n].policy));
    ++*n;
  }
  return *n ? NULL : planc_error(PLANC_USAGE, "--policies names none");
}

static planc_status choose_policies(const char *names, row *rows, int32_t *n) {
  *n = 0;
  if (!names) {
    for (const planc_policy *policy = planc_policies(); policy->name && *n < MOST_POLICIES; policy++) {
      rows[(*n)++].policy = policy;
    }
    return NULL;
  }
  char *copy = strdup(names);
  if (!copy) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = parse_policies(copy, rows, n);
  free(copy);
  return status;
}

static planc_status run(const planc_arguments *arguments) {
  row rows[MOST_POLICIES] = {0};
  int32_t n;
  PLANC_TRY(choose_policies(planc_option_value(arguments, "policies"), rows, &n));
  planc_setup setup;
  planc_status status = planc_setup_read(arguments, arguments->operands[0], &setup);
  for (int32_t i = 0; !status && i < n; i++) {
    planc_progress(stderr, "%s (%d of %d)", rows[i].policy->name, i + 1, n);
    status = measure_or_explain(&setup.problem, &rows[i]);
  }
  planc_progress_end(stderr);
  if (!status) status = require_supported(rows, n);
  if (!status) {
    status = planc_option_given(arguments, "json") ? print_json(rows, n, &setup.problem)
                                                   : print_table(rows, n, &setup.problem);
  }
  for (int32_t i = 0; i < n; i++) planc_status_free(rows[i].unsupported);
  planc_setup_free(&setup);
  return status;
}

static const planc_option options[] = {
    PLANC_PROBLEM_OPTIONS,
    {"policies", 0, "A,B,...", "which policies (default: all)"},
    {"json", 0, NULL, "the table as one line of JSON"},
    {0},
};

const planc_subcommand planc_cmd_compare = {
    {"compare", "GRAPH", "plan with several policies and compare", options, 1, 1}, run};
