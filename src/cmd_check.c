/* `planc check`: are plans valid, do they fit budgets, were they made from this graph? */
#define _GNU_SOURCE /* asprintf */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "util/print.h"
#include "util/size.h"
#include "verdict.h"

enum { MOST_BUDGETS = 64, MOST_HASHES = 1 + PLANC_ADAM + 1 };

/* What plans are held against. */
typedef struct expectations {
  const char *graph; /* its path, or NULL */
  int32_t n_hashes;  /* of the graph and of what can be derived from it */
  uint64_t hashes[MOST_HASHES];
  int64_t host_budget_bytes;
  int32_t n_budgets;
  char names[MOST_BUDGETS][PLANC_SIZE_TEXT]; /* as the user wrote them; empty: the plan's own */
  int64_t budgets[MOST_BUDGETS];             /* -1: the plan's own */
} expectations;

/* --- The command line --------------------------------------------------------------------------------------------- */

/* A plan may have been made from a graph as it stands or with training derived, by any optimizer. */
static planc_status read_hashes(expectations *e) {
  planc_graph *graph;
  PLANC_TRY(planc_graph_read(e->graph, &graph));
  planc_status status = NULL;
  e->hashes[e->n_hashes++] = planc_graph_hash(graph);
  for (int optimizer = PLANC_SGD; optimizer <= PLANC_ADAM && !planc_graph_has_backward(graph) && !status; optimizer++) {
    planc_graph *train;
    status = planc_graph_train(graph, (planc_optimizer)optimizer, &train);
    if (planc_status_code(status) == PLANC_BAD_INPUT) { /* it cannot be trained: no plan was made from that */
      planc_status_free(status);
      status = NULL;
      break;
    }
    if (status) break;
    e->hashes[e->n_hashes++] = planc_graph_hash(train);
    planc_graph_free(train);
  }
  planc_graph_free(graph);
  return status;
}

/* "12G,8G" */
static planc_status read_budgets(expectations *e, const char *list) {
  for (bool more = true; more;) {
    int length = (int)strcspn(list, ",");
    if (e->n_budgets == MOST_BUDGETS) return planc_error(PLANC_USAGE, "--budget: more than %d", MOST_BUDGETS);
    char *name = e->names[e->n_budgets];
    if (length >= PLANC_SIZE_TEXT) return planc_error(PLANC_USAGE, "--budget: %.*s is not a size", length, list);
    snprintf(name, PLANC_SIZE_TEXT, "%.*s", length, list);
    PLANC_TRY(planc_context(planc_size_parse(name, &e->budgets[e->n_budgets++]), "--budget"));
    more = list[length] == ',';
    list += length + more;
  }
  return NULL;
}

static planc_status read_expectations(const planc_arguments *arguments, expectations *e) {
  const char *budgets = planc_option_value(arguments, "budget");
  e->graph = planc_option_value(arguments, "graph");
  PLANC_TRY(planc_option_size(arguments, "host-budget", -1, &e->host_budget_bytes));
  if (budgets) {
    PLANC_TRY(read_budgets(e, budgets));
  } else {
    e->budgets[e->n_budgets++] = -1;
  }
  return e->graph ? read_hashes(e) : NULL;
}

static planc_status choose_form(const planc_arguments *arguments, planc_verdict_form *out) {
  const char *format = planc_option_value(arguments, "format");
  bool json = planc_option_given(arguments, "json");
  if (json && format) return planc_error(PLANC_USAGE, "--json and --format exclude each other");
  return planc_verdict_form_parse(json ? "json" : format ? format : "text", out);
}

/* --- Checking ----------------------------------------------------------------------------------------------------- */

static planc_status compare_graph(const expectations *e, const planc_plan *plan) {
  if (!e->graph) return NULL;
  for (int32_t h = 0; h < e->n_hashes; h++)
    if (e->hashes[h] == plan->graph_hash) return NULL;
  return planc_error(PLANC_STALE, "the plan was made from another graph than %s", e->graph);
}

static planc_status summarize(const planc_plan *plan, planc_verdict *verdict) {
  char a[PLANC_SIZE_TEXT], b[PLANC_SIZE_TEXT];
  int length = asprintf(&verdict->summary, "valid: %s, %s, peak %s of %s, %d instructions", plan->name, plan->policy,
                        planc_size_format(verdict->report.peak_bytes, a), planc_size_format(verdict->budget_bytes, b),
                        verdict->report.instructions);
  if (length >= 0) return NULL;
  verdict->summary = NULL;
  return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

static planc_status judge(const expectations *e, const planc_plan *plan, int64_t budget, planc_verdict *verdict) {
  planc_check_options options = {.budget_bytes = budget, .host_budget_bytes = e->host_budget_bytes};
  verdict->budget_bytes = budget < 0 ? plan->budget_bytes : budget;
  PLANC_TRY(compare_graph(e, plan));
  PLANC_TRY(planc_check(plan, &options, &verdict->report));
  return summarize(plan, verdict);
}

static void check_plan(const expectations *e, const char *path, planc_verdict *verdicts) {
  planc_plan *plan;
  planc_status unreadable = planc_plan_read(path, &plan);
  for (int32_t b = 0; b < e->n_budgets; b++) {
    planc_verdict *verdict = &verdicts[b];
    *verdict =
        (planc_verdict){.path = path, .budget = *e->names[b] ? e->names[b] : NULL, .budget_bytes = e->budgets[b]};
    if (unreadable) {
      verdict->refusal = planc_error(planc_status_code(unreadable), "%s", planc_status_message(unreadable));
    } else {
      verdict->refusal = planc_context(judge(e, plan, e->budgets[b], verdict), "%s", path);
    }
  }
  if (!unreadable) planc_plan_free(plan);
  planc_status_free(unreadable);
}

/* Several refusals are told one by one as the program would tell a single one; the worst decides how it ends. */
static planc_status conclude(planc_verdict *verdicts, int32_t n) {
  int32_t refused = 0, last = 0;
  planc_code worst = PLANC_OK;
  for (int32_t v = 0; v < n; v++) {
    planc_code code = planc_status_code(verdicts[v].refusal);
    if (planc_exit_code(code) > planc_exit_code(worst)) worst = code;
    if (code == PLANC_OK) continue;
    refused++;
    last = v;
  }
  if (n == 1) {
    planc_status refusal = verdicts[last].refusal;
    verdicts[last].refusal = NULL;
    return refusal;
  }
  for (int32_t v = 0; v < n; v++)
    if (verdicts[v].refusal) planc_print_line(stderr, "planc: %s", planc_status_message(verdicts[v].refusal));
  return refused ? planc_error(worst, "%d of %d checks did not pass", refused, n) : NULL;
}

static planc_status check_plans(const planc_arguments *arguments, const expectations *e, planc_verdict_form form) {
  int32_t n = arguments->n_operands * e->n_budgets;
  planc_verdict *verdicts = calloc((size_t)n, sizeof *verdicts);
  if (!verdicts) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t p = 0; p < arguments->n_operands; p++)
    check_plan(e, arguments->operands[p], &verdicts[(size_t)p * (size_t)e->n_budgets]);
  planc_status status = planc_verdicts_print(form, verdicts, n);
  if (!status) status = conclude(verdicts, n);
  for (int32_t v = 0; v < n; v++) {
    planc_status_free(verdicts[v].refusal);
    free(verdicts[v].summary);
  }
  free(verdicts);
  return status;
}

static planc_status run(const planc_arguments *arguments) {
  expectations e = {0};
  planc_verdict_form form = PLANC_VERDICT_text;
  PLANC_TRY(choose_form(arguments, &form));
  PLANC_TRY(read_expectations(arguments, &e));
  return check_plans(arguments, &e, form);
}

static const planc_option options[] = {
    {"budget", 'm', "SIZE,...", "device memory they must fit (default: each plan's own budget)"},
    {"host-budget", 0, "SIZE", "host memory they must fit (default: each plan's own)"},
    {"graph", 'g', "FILE", "the graph they must have been made from"},
    {"format", 0, "FORM", "text, json, github (workflow annotations) or junit (XML); default: text"},
    {"json", 0, NULL, "as --format=json: one line of JSON for each plan and budget"},
    {0},
};

const planc_subcommand planc_cmd_check = {
    {"check", "PLAN...", "check plans and their budgets", options, 1, PLANC_MAX_OPERANDS}, run, NULL};
