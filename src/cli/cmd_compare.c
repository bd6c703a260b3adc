/* `planc compare`: every policy side by side on one problem. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/compare_frontier.h"
#include "cli/compare_mix.h"
#include "cli/mix_setup.h"
#include "cli/policy_list.h"
#include "cli/users_lines.h"
#include "program/print.h"
#include "program/progress.h"
#include "util/math.h"
#include "util/size.h"

typedef struct row {
  const planc_policy *policy;
  planc_status unsupported; /* why the policy cannot plan this graph under any budget; owned */
  bool feasible;
  int64_t least_budget, sub_batch;
  bool is_least;     /* one unit less was tried and fails */
  const char *means; /* in words */
  planc_outcome outcome;
  planc_metrics metrics;
  planc_largest_batch largest; /* with --max-batch */
  char *explanation;           /* why the policy chose its plan; owned; NULL = it does not say */
} row;

/* The whole answer. */
typedef struct table {
  const planc_problem *problem;
  planc_outcome vanilla; /* without scheduling: what the measures of all rows compare with */
  bool has_vanilla, max_batch, no_least;
  int32_t n;
  row *rows; /* owned */
} table;

static const prog_option own_options[] = {
    CLI_PROBLEM_OPTIONS_WITH("FILE ..."){"policies", 0, "A,B,...", "which policies (default: all but auto and best)"},
    {"budgets", 0, "A,B,...", "what each policy takes within each of several budgets: the frontier of time and memory"},
    {"no-least", 0, NULL, "look for no least budgets, which takes most of the time"},
    {"max-batch", 0, NULL, "search the largest batch that each policy can plan for"},
    {"colocate", 0, NULL, "several graphs that share a GPU, with policies for that"},
    PLANC_MIX_SETTINGS(CLI_OWN_SETTING){
        "max-ratio", 0, "N",
        "with it: most iterations per period that are chosen for a job (default: 8; 1024 with a deadline)"},
    {"priority", 0, "JOB:N ...", "with it: of a job's ops on the GPU, from 0 to 5, the most first (default: 0)"},
    {"accumulate", 0, "[JOB:]K ...", "with it: split a job's batch into K rounds, side by side where a policy can"},
    {"deadline", 0, "[JOB:]TIME ...",
     "with it: the longest that a request of a job may take, without JOB for inference"},
    {"min-share", 0, "[JOB:]PERCENT ...",
     "with it: the least part of what it does alone that a job is to do, without JOB every job"},
    {"weight", 0, "JOB:N ...", "with it: time of the GPU that a job gets beside others, from 1 to 1000 (default: 1)"},
    {"json", 0, NULL, "the table as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status check_options(const prog_arguments *arguments);
static planc_status run_graph(const prog_arguments *arguments);
static planc_status make_rows(const prog_arguments *arguments, table *t);
static planc_status find_vanilla(table *t);
static planc_status fill_row(table *t, int32_t i);
static planc_status require_supported(table *t);
static planc_status print_json(const table *t);
static planc_status print_table(const table *t);
static void free_rows(table *t);

const prog_subcommand cli_cmd_compare = {
    {"compare", "GRAPH ...", "plan with several policies and compare", own_options, 1, PROG_MAX_OPERANDS}, run, NULL};

static planc_status run(const prog_arguments *arguments) {
  PLANC_TRY(check_options(arguments));
  if (prog_option_given(arguments, "colocate")) return cli_compare_mix(arguments);
  return prog_option_given(arguments, "budgets") ? cli_compare_frontier(arguments) : run_graph(arguments);
}

static const row *winner(const table *t);

static planc_status run_graph(const prog_arguments *arguments) {
  cli_setup setup = {0};
  table t = {.problem = &setup.problem,
             .max_batch = prog_option_given(arguments, "max-batch"),
             .no_least = prog_option_given(arguments, "no-least")};
  planc_status status = make_rows(arguments, &t);
  if (!status) status = cli_setup_read(arguments, arguments->operands[0], &setup);
  if (!status && t.max_batch && !planc_graph_has_samples(setup.graph))
    status = cli_refuse_batch(setup.graph, "--max-batch");
  if (!status) status = find_vanilla(&t);
  for (int32_t i = 0; !status && i < t.n; i++) status = fill_row(&t, i);
  prog_progress_end(stderr);
  if (!status) status = require_supported(&t);
  if (!status && !winner(&t)) cli_note_reserved(planc_profile_device(setup.problem.job.profile));
  if (!status) status = prog_option_given(arguments, "json") ? print_json(&t) : print_table(&t);
  free_rows(&t);
  cli_setup_free(&setup);
  return status;
}

static planc_status make_rows(const prog_arguments *arguments, table *t) {
  cli_policy_list list;
  planc_status status = cli_policy_list_read(arguments, &list);
  if (!status && !(t->rows = calloc((size_t)list.n, sizeof *t->rows)))
    status = planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t i = 0; !status && t->rows && i < list.n; i++) t->rows[t->n++].policy = list.policies[i];
  cli_policy_list_free(&list);
  return status;
}

/* A graph that is too large to simulate without scheduling has no such measures. */
static planc_status find_vanilla(table *t) {
  planc_status status = planc_vanilla_of(t->problem, &t->vanilla);
  t->has_vanilla = !status;
  planc_code code = planc_status_code(status);
  if (code != PLANC_USAGE && code != PLANC_BAD_INPUT && code != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

/* Problems and searches count the batch of each GPU. */
static int64_t whole_batch(const table *t, int64_t batch) {
  return batch * t->problem->terms.gpus;
}

typedef struct progress {
  const table *table;
  int32_t at;
} progress;

static planc_status measure_or_explain(const table *t, row *out);
static planc_status measure(const table *t, row *out);
static planc_status read_plan(const table *t, const planc_plan *plan, row *out);
static planc_status find_least(const table *t, planc_status failed, row *out);
static void keep_least(const planc_problem *problem, const planc_least *least, row *out);
static void show_batch(void *user, int64_t batch);

static planc_status fill_row(table *t, int32_t i) {
  row *r = &t->rows[i];
  prog_progress(stderr, "%s (%d of %d)", r->policy->name, i + 1, t->n);
  PLANC_TRY(measure_or_explain(t, r));
  if (!t->max_batch || r->unsupported) return NULL;
  progress user = {t, i};
  return planc_context(planc_find_largest_batch(t->problem, r->policy, show_batch, &user, &r->largest), "%s",
                       r->policy->name);
}

/* What fails here after the problem was read is the policy's: no sub-batches for a batch-coupled graph, say. */
static planc_status measure_or_explain(const table *t, row *out) {
  planc_status status = measure(t, out);
  planc_code code = planc_status_code(status);
  if (code != PLANC_USAGE && code != PLANC_BAD_INPUT) return planc_context(status, "%s", out->policy->name);
  out->unsupported = prog_remedy(status);
  out->feasible = false;
  out->least_budget = -1;
  return NULL;
}

static planc_status measure(const table *t, row *out) {
  const planc_problem *problem = t->problem;
  planc_plan *plan = NULL;
  planc_status failed = planc_make_plan(problem, out->policy, &plan), status = NULL;
  if (failed && planc_status_code(failed) != PLANC_INFEASIBLE) return failed;
  if (!failed) status = read_plan(t, plan, out);
  if (!status) status = find_least(t, failed, out);
  planc_plan_free(plan);
  planc_status_free(failed);
  return status;
}

static planc_status read_plan(const table *t, const planc_plan *plan, row *out) {
  out->feasible = true;
  out->outcome = planc_outcome_of(plan);
  const planc_job *job = cli_only_job(plan);
  assert(job); /* that of the problem */
  out->sub_batch = job->rounds[0];
  if (plan->explanation && !(out->explanation = strdup(plan->explanation)))
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_metrics_of(&out->outcome, whole_batch(t, t->problem->job.batch), t->has_vanilla ? &t->vanilla : NULL,
                   &out->metrics);
  return planc_plan_means(plan, &out->means);
}

/* `failed` is why the row's policy does not fit the problem, NULL where it does. What is only simulated is held to
 * none. */
static planc_status find_least(const table *t, planc_status failed, row *out) {
  planc_least least;
  out->least_budget = -1;
  if (t->no_least || (out->policy->supports & PLANC_POLICY_SIMULATED)) return NULL;
  planc_status status = planc_find_least_device(t->problem, out->policy, failed, &least);
  if (status) {
    if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
    planc_status_free(status);
    return NULL;
  }
  keep_least(t->problem, &least, out);
  planc_plan_free(least.plan);
  return NULL;
}

/* A policy that meets a budget need not meet every larger one. */
static void keep_least(const planc_problem *problem, const planc_least *least, row *out) {
  bool less = out->feasible && problem->terms.budgets[PLANC_MEMORY_DEVICE] < least->bytes;
  out->least_budget = less ? problem->terms.budgets[PLANC_MEMORY_DEVICE] : least->bytes;
  out->is_least = least->is_least && !less;
}

static void show_batch(void *user, int64_t batch) {
  const progress *p = user;
  prog_progress(stderr, "%s (%d of %d): batch %lld", p->table->rows[p->at].policy->name, p->at + 1, p->table->n,
                (long long)whole_batch(p->table, batch));
}

/* The fastest row that has a plan, of equal ones that which policy `best` would take; NULL where none has. */
static const row *winner(const table *t) {
  const row *best = NULL;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    for (int32_t i = 0; i < t->n; i++) {
      const row *r = &t->rows[i];
      if (r->policy != policy || !r->feasible || (policy->supports & PLANC_POLICY_SIMULATED)) continue;
      int64_t ns = r->outcome.period_ns;
      if (!best || planc_is_preferred(ns, best->policy->name, best->outcome.period_ns)) best = r;
    }
  }
  return best;
}

/* A graph that no policy can plan makes no table: the first reason is the error. */
static planc_status require_supported(table *t) {
  int32_t supported = 0;
  for (int32_t i = 0; i < t->n; i++) supported += !t->rows[i].unsupported;
  if (supported) return NULL;
  planc_status first = t->rows[0].unsupported;
  t->rows[0].unsupported = NULL;
  return planc_context(first, "%s", t->rows[0].policy->name);
}

/* Whether one batch is the largest that the row's policy can plan. */
static bool has_largest(const row *r) {
  return !r->unsupported && !r->largest.unbounded && r->largest.batch > 0;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_largest(cJSON *json, const table *t, const row *r) {
  const planc_largest_batch *l = &r->largest;
  if (r->unsupported) {
    pl_json_add_null(json, "max_batch");
    return;
  }
  cJSON *object = pl_json_add_object(json, "max_batch");
  pl_json_add_known(object, "batch", !l->unbounded, whole_batch(t, l->batch));
  pl_json_add_bool(object, "unbounded", l->unbounded);
  pl_json_add_known(object, "fails_at", l->fails_at > 0, whole_batch(t, l->fails_at));
  pl_json_add_int(object, "tried", l->tried);
  pl_json_add_known(object, "iteration_ns", has_largest(r), l->iteration_ns);
}

static cJSON *row_json(const table *t, const row *r) {
  const planc_outcome *p = &r->outcome;
  cJSON *json = cJSON_CreateObject();
  pl_json_add_string(json, "policy", r->policy->name);
  pl_json_add_bool(json, "feasible", r->feasible);
  if (r->unsupported) {
    pl_json_add_string(json, "unsupported", planc_status_message(r->unsupported));
  } else {
    pl_json_add_null(json, "unsupported");
  }
  pl_json_add_known(json, "least_budget", r->least_budget >= 0, r->least_budget);
  pl_json_add_bool(json, "is_least", r->is_least);
  if (r->feasible) {
    pl_json_add_string(json, "means", r->means);
  } else {
    pl_json_add_null(json, "means");
  }
  pl_json_add_known(json, "sub_batch", r->feasible, r->sub_batch);
  pl_json_add_known(json, "iteration_ns", r->feasible, p->period_ns);
  pl_json_add_known(json, "ideal_ns", r->feasible, p->total.ideal_ns);
  pl_json_add_known(json, "peak_bytes", r->feasible, p->peak_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_known(json, "host_peak_bytes", r->feasible, p->peak_bytes[PLANC_MEMORY_HOST]);
  pl_json_add_known(json, "storage_peak_bytes", r->feasible, p->peak_bytes[PLANC_MEMORY_STORAGE]);
  pl_json_add_known(json, "storage_moved_bytes", r->feasible,
                    pl_add_saturate(p->total.copied_bytes[PLANC_ROUTE_STORE], p->total.copied_bytes[PLANC_ROUTE_LOAD]));
  pl_json_add_known(json, "d2h_bytes", r->feasible, p->total.copied_bytes[PLANC_ROUTE_D2H]);
  pl_json_add_known(json, "h2d_bytes", r->feasible, p->total.copied_bytes[PLANC_ROUTE_H2D]);
  pl_json_add_known(json, "recompute_ns", r->feasible, p->total.recompute_ns);
  pl_json_add_known(json, "stall_ns", r->feasible, p->total.stall_ns);
  cli_report_metrics(json, r->feasible ? &r->metrics : NULL);
  if (t->max_batch) report_largest(json, t, r);
  cli_report_explanation(r->explanation, json);
  return json;
}

static planc_status print_json(const table *t) {
  const planc_problem *problem = t->problem;
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "compare/1");
  pl_json_add_string(object, "graph", problem->job.graph->name);
  pl_json_add_string(object, "device", planc_profile_device(problem->job.profile)->name);
  cli_report_batch(object, problem->job.graph, whole_batch(t, problem->job.batch));
  pl_json_add_int(object, "gpus", problem->terms.gpus);
  pl_json_add_bool(object, "shared_link", problem->terms.shared_link);
  pl_json_add_int(object, "budget_bytes", problem->terms.budgets[PLANC_MEMORY_DEVICE]);
  pl_json_add_known(object, "vanilla_ns", t->has_vanilla, t->vanilla.period_ns);
  pl_json_add_known(object, "vanilla_bytes", t->has_vanilla, t->vanilla.peak_bytes[PLANC_MEMORY_DEVICE]);
  const row *best = winner(t);
  if (best) {
    pl_json_add_string(object, "best", best->policy->name);
  } else {
    pl_json_add_null(object, "best");
  }
  cJSON *array = pl_json_add_array(object, "rows");
  for (int32_t i = 0; i < t->n; i++) pl_json_add(array, NULL, row_json(t, &t->rows[i]));
  return prog_print_json(stdout, object);
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static bool has_storage(const table *t);
static void print_cost(const table *t, const row *r, bool best);
static void print_largest(const table *t, const row *r);
static const char *largest_text(const table *t, const row *r, char buffer[PL_SIZE_TEXT]);
static void print_metrics(const row *r);

static planc_status print_table(const table *t) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], batch[CLI_BATCH_TEXT];
  printf("%s, %s on ", t->problem->job.graph->name,
         cli_batch_format(t->problem->job.graph, whole_batch(t, t->problem->job.batch), batch));
  if (t->problem->terms.gpus > 1) printf("%d GPUs of ", t->problem->terms.gpus);
  printf("%s%s, budget %s\n", planc_profile_device(t->problem->job.profile)->name,
         t->problem->terms.gpus > 1 && t->problem->terms.shared_link ? " with one link" : "",
         pl_size_format(t->problem->terms.budgets[PLANC_MEMORY_DEVICE], a));
  printf("%-12s %12s", "policy", "least budget");
  if (t->max_batch) printf(" %9s %16s", "max batch", "its iteration");
  printf(" %6s %16s %8s %12s %12s %12s", "round", "iteration", "overhead", "peak", "out", "in");
  if (has_storage(t)) printf(" %12s %12s", "to storage", "back");
  printf("  means\n");
  int32_t feasible = 0;
  const row *best = winner(t);
  cli_note_base(t->problem->job.graph);
  for (int32_t i = 0; i < t->n; i++) {
    print_cost(t, &t->rows[i], &t->rows[i] == best);
    feasible += t->rows[i].feasible;
  }
  for (int32_t i = 0; i < t->n; i++) {
    if (!t->rows[i].largest.fails_at) continue;
    printf("%s: not monotone in the batch: %lld does not fit, %lld does\n", t->rows[i].policy->name,
           (long long)whole_batch(t, t->rows[i].largest.fails_at), (long long)whole_batch(t, t->rows[i].largest.batch));
  }
  if (feasible == 0) return NULL;
  puts("");
  if (best && best->explanation) printf("why %s: ", best->policy->name);
  cli_print_explanation("", best ? best->explanation : NULL);
  if (t->has_vanilla) {
    printf("against no scheduling, which takes %s and %s\n", pl_time_format(t->vanilla.period_ns, a),
           pl_size_format(t->vanilla.peak_bytes[PLANC_MEMORY_DEVICE], b));
  }
  printf("%-12s %14s %12s %8s %8s %8s %8s\n", "policy", "samples/s", "moved", "MSR", "EOR", "excess", "CBR");
  for (int32_t i = 0; i < t->n; i++) {
    if (t->rows[i].feasible) print_metrics(&t->rows[i]);
  }
  return NULL;
}

static bool has_storage(const table *t) {
  return t->problem->terms.budgets[PLANC_MEMORY_STORAGE] != 0;
}

static void print_cost(const table *t, const row *r, bool best) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT], d[CLI_METRIC_TEXT];
  const planc_outcome *p = &r->outcome;
  printf("%-12s %c%11s", r->policy->name, r->least_budget < 0 || r->is_least ? ' ' : '<',
         r->least_budget < 0 ? "-" : pl_size_format(r->least_budget, a));
  if (t->max_batch) print_largest(t, r);
  if (r->unsupported) {
    printf("   unsupported: %s\n", planc_status_message(r->unsupported));
    return;
  }
  if (!r->feasible) {
    puts("   does not fit");
    return;
  }
  printf(" %6lld %16s %8s", (long long)r->sub_batch, pl_time_format(p->period_ns, a),
         cli_percent_format(r->metrics.overhead_ppm, d));
  printf(" %12s %12s %12s", pl_size_format(p->peak_bytes[PLANC_MEMORY_DEVICE], a),
         pl_size_format(p->total.copied_bytes[PLANC_ROUTE_D2H], b),
         pl_size_format(p->total.copied_bytes[PLANC_ROUTE_H2D], c));
  if (has_storage(t))
    printf(" %12s %12s", pl_size_format(p->total.copied_bytes[PLANC_ROUTE_STORE], a),
           pl_size_format(p->total.copied_bytes[PLANC_ROUTE_LOAD], b));
  printf("  %s%s\n", r->means, best ? " <- fastest" : "");
}

static void print_largest(const table *t, const row *r) {
  char batch[PL_SIZE_TEXT], time[PL_SIZE_TEXT];
  printf(" %9s %16s", largest_text(t, r, batch), has_largest(r) ? pl_time_format(r->largest.iteration_ns, time) : "-");
}

static const char *largest_text(const table *t, const row *r, char buffer[PL_SIZE_TEXT]) {
  if (r->unsupported) return "-";
  if (r->largest.unbounded) return "any";
  snprintf(buffer, PL_SIZE_TEXT, "%lld", (long long)whole_batch(t, r->largest.batch));
  return buffer;
}

static void print_metrics(const row *r) {
  char a[CLI_METRIC_TEXT], b[CLI_METRIC_TEXT], c[CLI_METRIC_TEXT], d[CLI_METRIC_TEXT], e[CLI_METRIC_TEXT];
  char moved[PL_SIZE_TEXT];
  const planc_metrics *m = &r->metrics;
  printf("%-12s %14s %12s %8s %8s %8s %8s\n", r->policy->name, cli_metric_format(m->throughput_ppm, 3, a),
         pl_size_format(m->moved_bytes, moved), cli_metric_format(m->msr_ppm, 4, b),
         cli_metric_format(m->eor_ppm, 4, c), cli_percent_format(m->eor_excess_ppm, d),
         cli_metric_format(m->cbr_ppm, 4, e));
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static void free_rows(table *t) {
  for (int32_t i = 0; i < t->n; i++) {
    planc_status_free(t->rows[i].unsupported);
    free(t->rows[i].explanation);
  }
  free(t->rows);
}

/* --- A graph or a mix --------------------------------------------------------------------------------------------- */

static const prog_option of_graphs[] = {
    CLI_PROBLEM_OPTIONS{"max-batch", 0, NULL, ""},
    {"budgets", 0, "A,B,...", ""},
    {0},
};
static const prog_option of_mixes[] = {
    CLI_MIX_OPTIONS CLI_MIX_DEMAND_OPTIONS,
    {0},
};

static bool is_in(const prog_option *options, const char *name) {
  while (options->name && strcmp(options->name, name) != 0) options++;
  return options->name;
}

/* Options that are for the one alone. */
static planc_status check_options(const prog_arguments *arguments) {
  bool mix = prog_option_given(arguments, "colocate");
  const prog_option *own = mix ? of_mixes : of_graphs;
  for (const prog_option *other = mix ? of_graphs : of_mixes; other->name; other++) {
    if (!prog_option_given(arguments, other->name) || is_in(own, other->name)) continue;
    return mix ? planc_error(PLANC_USAGE, "--colocate and --%s exclude each other", other->name)
               : planc_error(PLANC_USAGE, "--%s is for --colocate", other->name);
  }
  if (mix) return cli_mix_check_number(arguments);
  if (arguments->n_operands > 1)
    return planc_error(PLANC_USAGE, "unexpected operand %s: only --colocate takes several", arguments->operands[1]);
  return prog_option_repeated(arguments, "profile", 1) ? planc_error(PLANC_USAGE, "--profile is given twice") : NULL;
}
