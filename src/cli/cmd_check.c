/* `planc check`: are plans valid, do they fit budgets, were they made from these graphs? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/budget_list.h"
#include "cli/cli.h"
#include "cli/verdict.h"
#include "plan/memories.h"
#include "program/print.h"
#include "util/emit.h"
#include "util/size.h"

enum { MAX_FORMS = 1 + PLANC_ADAM + 1 };

/* A graph's file, and what a plan may have been made of: the graph as it stands or with training derived. */
typedef struct source {
  const char *path;
  int32_t n_forms;
  planc_graph *forms[MAX_FORMS];
} source;

/* What plans are held against. */
typedef struct expectations {
  int32_t n_sources; /* 0: any graph will do */
  source sources[PROG_MAX_REPEATS];
  planc_check_options limits; /* but for the device */
  cli_budget_list budgets;    /* the device's; one without a name, of -1 bytes: the plan's own */
} expectations;

static const prog_option own_options[] = {
    {"budget", 'm', "SIZE,...", "device memory they must fit (default: each plan's own budget)"},
    {"host-budget", 0, "SIZE", "host memory they must fit (default: each plan's own)"},
    {"storage", 0, "SIZE", "storage they must fit (default: each plan's own)"},
    {"graph", 'g', "FILE ...", "the graph they must have been made from; of several, each in turn"},
    {"format", 0, "FORM", "text, json, github (workflow annotations) or junit (XML); default: text"},
    {"json", 0, NULL, "as --format=json: one line of JSON for each plan and budget"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status choose_form(const prog_arguments *arguments, cli_verdict_form *out);
static planc_status read_expectations(const prog_arguments *arguments, expectations *e);
static planc_status check_plans(const prog_arguments *arguments, const expectations *e, cli_verdict_form form);
static void free_sources(const expectations *e);
static void check_plan(const expectations *e, const char *path, cli_verdict *verdicts);
static planc_status conclude(cli_verdict *verdicts, int32_t n);

const prog_subcommand cli_cmd_check = {
    {"check", "PLAN...", "check plans and their budgets", own_options, 1, PROG_MAX_OPERANDS}, run, NULL};

static planc_status run(const prog_arguments *arguments) {
  expectations e = {0};
  cli_verdict_form form = CLI_VERDICT_text;
  PLANC_TRY(choose_form(arguments, &form));
  planc_status status = read_expectations(arguments, &e);
  if (!status) status = check_plans(arguments, &e, form);
  free_sources(&e);
  return status;
}

static planc_status check_plans(const prog_arguments *arguments, const expectations *e, cli_verdict_form form) {
  int32_t n = arguments->n_operands * e->budgets.n;
  cli_verdict *verdicts = calloc((size_t)n, sizeof *verdicts);
  if (!verdicts) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t p = 0; p < arguments->n_operands; p++)
    check_plan(e, arguments->operands[p], &verdicts[(size_t)p * (size_t)e->budgets.n]);
  planc_status status = cli_verdicts_print(form, verdicts, n);
  if (!status) status = conclude(verdicts, n);
  for (int32_t v = 0; v < n; v++) {
    planc_status_free(verdicts[v].refusal);
    free(verdicts[v].summary);
    cJSON_Delete(verdicts[v].jobs);
  }
  free(verdicts);
  return status;
}

/* --- The command line --------------------------------------------------------------------------------------------- */

/* Training may have been derived by any optimizer. */
static planc_status read_source(const char *path, source *out) {
  *out = (source){.path = path};
  PLANC_TRY(planc_graph_read(path, &out->forms[0]));
  out->n_forms = 1;
  for (int optimizer = PLANC_SGD; optimizer <= PLANC_ADAM && !planc_graph_has_backward(out->forms[0]); optimizer++) {
    planc_status status = planc_graph_train(out->forms[0], (planc_optimizer)optimizer, &out->forms[out->n_forms]);
    if (planc_status_code(status) == PLANC_BAD_INPUT) { /* it cannot be trained: no plan was made from that */
      planc_status_free(status);
      return NULL;
    }
    PLANC_TRY(status);
    out->n_forms++;
  }
  return NULL;
}

static planc_status read_sources(expectations *e, const prog_arguments *arguments) {
  const char *path;
  while ((path = prog_option_repeated(arguments, "graph", e->n_sources)))
    PLANC_TRY(read_source(path, &e->sources[e->n_sources++]));
  return NULL;
}

static void free_sources(const expectations *e) {
  for (int32_t s = 0; s < e->n_sources; s++)
    for (int32_t f = 0; f < e->sources[s].n_forms; f++) planc_graph_free(e->sources[s].forms[f]);
}

static planc_status read_expectations(const prog_arguments *arguments, expectations *e) {
  const char *budgets = prog_option_value(arguments, "budget");
  PLANC_TRY(prog_option_size(arguments, "host-budget", -1, &e->limits.budgets[PLANC_MEMORY_HOST]));
  PLANC_TRY(prog_option_size(arguments, "storage", -1, &e->limits.budgets[PLANC_MEMORY_STORAGE]));
  if (budgets) {
    PLANC_TRY(cli_budget_list_parse("budget", budgets, &e->budgets));
  } else {
    e->budgets.bytes[e->budgets.n++] = -1;
  }
  return read_sources(e, arguments);
}

static planc_status choose_form(const prog_arguments *arguments, cli_verdict_form *out) {
  const char *format = prog_option_value(arguments, "format");
  bool json = prog_option_given(arguments, "json");
  if (json && format) return planc_error(PLANC_USAGE, "--json and --format exclude each other");
  return cli_verdict_form_parse(json ? "json" : format ? format : "text", out);
}

/* --- Checking ----------------------------------------------------------------------------------------------------- */

static planc_status judge(const expectations *e, const planc_plan *plan, int64_t budget, cli_verdict *verdict);
static planc_status compare_graphs(const expectations *e, const planc_plan *plan);
static planc_status compare_batches(const expectations *e, const planc_plan *plan);
static planc_status refuse_batch(const planc_job *job, const source *from);
static bool is_made_from(const planc_graph *graph, const source *from);
static planc_status summarize(const expectations *e, const planc_plan *plan, cli_verdict *verdict);
static void emit_jobs(pl_emit *emit, const planc_plan *plan);
static int64_t budget_of(const expectations *e, const planc_plan *plan, planc_memory_kind kind);
static void emit_away(pl_emit *emit, const expectations *e, const planc_plan *plan, const cli_verdict *verdict,
                      planc_memory_kind kind);

static void check_plan(const expectations *e, const char *path, cli_verdict *verdicts) {
  planc_plan *plan;
  planc_status unreadable = planc_plan_read(path, &plan);
  for (int32_t b = 0; b < e->budgets.n; b++) {
    cli_verdict *verdict = &verdicts[b];
    *verdict = (cli_verdict){
        .path = path, .budget = *e->budgets.names[b] ? e->budgets.names[b] : NULL, .budget_bytes = e->budgets.bytes[b]};
    if (unreadable) {
      verdict->refusal = planc_error(planc_status_code(unreadable), "%s", planc_status_message(unreadable));
    } else {
      verdict->refusal = planc_context(judge(e, plan, e->budgets.bytes[b], verdict), "%s", path);
    }
  }
  if (!unreadable) planc_plan_free(plan);
  planc_status_free(unreadable);
}

static planc_status judge(const expectations *e, const planc_plan *plan, int64_t budget, cli_verdict *verdict) {
  planc_check_options options = e->limits;
  options.budgets[PLANC_MEMORY_DEVICE] = budget;
  verdict->budget_bytes = budget < 0 ? pl_plan_peak_memory(plan, PLANC_MEMORY_DEVICE)->budget_bytes : budget;
  PLANC_TRY(compare_graphs(e, plan));
  PLANC_TRY(compare_batches(e, plan));
  PLANC_TRY(planc_check(plan, &options, &verdict->report));
  return summarize(e, plan, verdict);
}

/* Every job must have been made from one of the files, and every file must be of some job. */
static planc_status compare_graphs(const expectations *e, const planc_plan *plan) {
  bool used[PROG_MAX_REPEATS] = {false};
  for (int32_t j = 0; j < plan->n_jobs && e->n_sources > 0; j++) {
    const planc_graph *graph = plan->jobs[j].graph;
    if (j > 0 && graph == plan->jobs[j - 1].graph) continue;
    bool found = false;
    for (int32_t s = 0; s < e->n_sources; s++) {
      if (!is_made_from(graph, &e->sources[s])) continue;
      used[s] = found = true;
    }
    if (found) continue;
    if (plan->n_jobs == 1 && e->n_sources == 1)
      return planc_error(PLANC_STALE, "the plan was made from another graph than %s", e->sources[0].path);
    return planc_error(PLANC_STALE, "job %d: its graph, %s, is none of those given", j, graph->name);
  }
  for (int32_t s = 0; s < e->n_sources; s++)
    if (!used[s]) return planc_error(PLANC_STALE, "no job of the plan was made from %s", e->sources[s].path);
  return NULL;
}

/* A graph in which no size depends on the batch is of one batch size, in one round. Its header may tell which, and a
 * plan's graph does not. */
static planc_status compare_batches(const expectations *e, const planc_plan *plan) {
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &plan->jobs[j];
    const source *other = NULL;
    bool found = e->n_sources == 0;
    if (planc_graph_has_samples(job->graph)) continue;
    if (job->n_rounds > 1)
      return planc_error(PLANC_INVALID_PLAN, "job %d is in %d rounds, and no size in graph %s depends on the batch", j,
                         job->n_rounds, job->graph->name);
    for (int32_t s = 0; s < e->n_sources && !found; s++) {
      if (!is_made_from(job->graph, &e->sources[s])) continue;
      other = &e->sources[s];
      found = job->batch == (other->forms[0]->batch ? other->forms[0]->batch : 1);
    }
    if (!found) return refuse_batch(job, other);
  }
  return NULL;
}

static planc_status refuse_batch(const planc_job *job, const source *from) {
  const planc_graph *graph = from->forms[0];
  char its[32] = " that it does not tell";
  if (graph->batch) snprintf(its, sizeof its, ", %lld", (long long)graph->batch);
  return planc_error(PLANC_STALE, "the plan is of batch %lld, and %s of one batch size%s: make the plan again",
                     (long long)job->batch, from->path, its);
}

static bool is_made_from(const planc_graph *graph, const source *from) {
  for (int32_t f = 0; f < from->n_forms; f++)
    if (planc_graph_equal(graph, from->forms[f])) return true;
  return false;
}

static planc_status summarize(const expectations *e, const planc_plan *plan, cli_verdict *verdict) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  pl_emit emit = {0};
  size_t length;
  pl_emit_format(&emit, "valid: %s, %s", plan->name, plan->policy);
  emit_jobs(&emit, plan);
  pl_emit_format(&emit, ", peak %s of %s", pl_size_format(verdict->report.peak_bytes[PLANC_MEMORY_DEVICE], a),
                 cli_budget_format(verdict->budget_bytes, b));
  bool stores = planc_plan_memory(plan, PLANC_MEMORY_STORAGE)->kind == PLANC_MEMORY_STORAGE;
  if (stores || budget_of(e, plan, PLANC_MEMORY_HOST) >= 0) emit_away(&emit, e, plan, verdict, PLANC_MEMORY_HOST);
  if (stores) emit_away(&emit, e, plan, verdict, PLANC_MEMORY_STORAGE);
  pl_emit_format(&emit, ", %d instructions", verdict->report.instructions);
  verdict->jobs = cli_jobs_json(plan, plan->predicted.jobs);
  return pl_emit_take(&emit, &verdict->summary, &length);
}

/* ", 2 jobs (a, b)" of a plan with several. */
static void emit_jobs(pl_emit *emit, const planc_plan *plan) {
  if (cli_only_job(plan)) return;
  pl_emit_format(emit, ", %d jobs (", plan->n_jobs);
  for (int32_t j = 0; j < plan->n_jobs; j++)
    pl_emit_format(emit, "%s%s", j == 0 ? "" : ", ", planc_job_called(&plan->jobs[j]));
  pl_emit_format(emit, ")");
}

/* What was given, or else the plan's. */
static int64_t budget_of(const expectations *e, const planc_plan *plan, planc_memory_kind kind) {
  int64_t given = e->limits.budgets[kind];
  return given >= 0 ? given : planc_plan_memory(plan, kind)->budget_bytes;
}

/* ", host 9 B of 10 B". */
static void emit_away(pl_emit *emit, const expectations *e, const planc_plan *plan, const cli_verdict *verdict,
                      planc_memory_kind kind) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  pl_emit_format(emit, ", %s %s of %s", kind == PLANC_MEMORY_HOST ? "host" : "storage",
                 pl_size_format(verdict->report.peak_bytes[kind], a), cli_budget_format(budget_of(e, plan, kind), b));
}

/* Several refusals are told one by one as the program would tell a single one; the worst decides how it ends. */
static planc_status conclude(cli_verdict *verdicts, int32_t n) {
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
    if (verdicts[v].refusal) prog_print_line(stderr, "planc: %s", planc_status_message(verdicts[v].refusal));
  return refused ? planc_error(worst, "%d of %d checks did not pass", refused, n) : NULL;
}
