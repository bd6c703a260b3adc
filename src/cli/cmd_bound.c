/* `planc bound`: a time that no plan is faster than, and a budget that no plan fits below. */
#include "cli/cli.h"
#include "graph/op_place.h"
#include "planc/bound.h"
#include "program/print.h"
#include "util/math.h"

static const prog_option options[] = {
    CLI_WORK_OPTIONS,
    PLANC_ANY_SETTINGS(CLI_OWN_SETTING){
        "effort", 0, "0..3",
        "how long to look for a higher bound: from 10 ms to 1 s, four times as long each (default: 2)"},
    {"json", 0, NULL, "the bound as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status bound_graph(const prog_arguments *arguments, const cli_setup *setup, int64_t effort);
static void note_what_may_be_asked(const planc_problem *problem);
static void print(const planc_problem *problem, const planc_bound *bound);
static planc_status print_json(const planc_problem *problem, int64_t effort, const planc_bound *bound);

const prog_subcommand cli_cmd_bound = {
    {"bound", "GRAPH", "tell what no plan of a graph is faster than", options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  cli_setup setup;
  int64_t effort;
  PLANC_TRY(prog_option_int(arguments, "effort", 0, PLANC_BOUND_MOST_EFFORT, PLANC_BOUND_EFFORT, &effort));
  planc_status status = cli_setup_read(arguments, arguments->operands[0], &setup);
  if (!status) status = bound_graph(arguments, &setup, effort);
  cli_setup_free(&setup);
  return status;
}

static planc_status bound_graph(const prog_arguments *arguments, const cli_setup *setup, int64_t effort) {
  planc_bound bound;
  planc_status status = planc_bound_make(&setup->problem, (int32_t)effort, &bound);
  if (planc_status_code(status) == PLANC_INFEASIBLE) note_what_may_be_asked(&setup->problem);
  PLANC_TRY(status);
  if (prog_option_given(arguments, "json")) return print_json(&setup->problem, effort, &bound);
  print(&setup->problem, &bound);
  return NULL;
}

/* Where the budget is too small for any plan in such rounds. */
static void note_what_may_be_asked(const planc_problem *problem) {
  cli_note_reserved(planc_profile_device(problem->job.profile));
  if (problem->job.sub_batch > 0 || problem->job.batch == 1) return;
  planc_status status = planc_check_rounds(problem->job.graph);
  if (!status) cli_note("smaller rounds may need less: --sub-batch states how many samples are in one");
  planc_status_free(status);
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  return prog_used_files_read(files, prog_option_value(arguments, "profile"));
}

static void print(const planc_problem *problem, const planc_bound *bound) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], place[PL_PLACE_TEXT], batch[CLI_BATCH_TEXT];
  char rounds[64] = "";
  if (cli_knows_batch(problem->job.graph, problem->job.batch))
    snprintf(rounds, sizeof rounds, " in %d round%s of %lld", bound->n_rounds, bound->n_rounds == 1 ? "" : "s",
             (long long)bound->sub_batch);
  prog_print_line(stdout, "%s: %s%s, budget %s", problem->job.graph->name,
                  cli_batch_format(problem->job.graph, problem->job.batch, batch), rounds,
                  pl_size_format(problem->terms.budgets[PLANC_MEMORY_DEVICE], a));
  printf("  at least  %s an iteration, ideal %s", pl_time_format(bound->time_ns, a),
         pl_time_format(bound->ideal_ns, b));
  if (bound->ideal_ns > 0)
    printf(" (+%.1f %%)", 100.0 * (double)(bound->time_ns - bound->ideal_ns) / (double)bound->ideal_ns);
  puts("");
  int64_t with_more_ns = pl_max(bound->time_ns - bound->gib_ns, bound->ideal_ns);
  printf("  a GiB     more, and none is faster than %s\n", pl_time_format(with_more_ns, a));
  int64_t reserved = planc_profile_device(problem->job.profile)->reserved_bytes;
  char more[PL_SIZE_TEXT + 32] = "";
  if (reserved > 0) snprintf(more, sizeof more, " beside %s that are reserved", pl_size_format(reserved, b));
  prog_print_line(stdout, "  memory    at least %lld bytes (%s), which op %s%s takes%s", (long long)bound->least_bytes,
                  pl_size_format(bound->least_bytes, a), bound->binds,
                  pl_op_place_by_name(problem->job.graph, bound->binds, place), more);
}

static planc_status print_json(const planc_problem *problem, int64_t effort, const planc_bound *bound) {
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "bound/1");
  pl_json_add_string(object, "graph", problem->job.graph->name);
  pl_json_add_string(object, "device", planc_profile_device(problem->job.profile)->name);
  cli_report_batch(object, problem->job.graph, problem->job.batch);
  pl_json_add_int(object, "rounds", bound->n_rounds);
  pl_json_add_int(object, "sub_batch", bound->sub_batch);
  pl_json_add_int(object, "budget_bytes", problem->terms.budgets[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(object, "bound_ns", bound->time_ns);
  pl_json_add_int(object, "gib_ns", bound->gib_ns);
  pl_json_add_int(object, "ideal_ns", bound->ideal_ns);
  pl_json_add_int(object, "least_budget", bound->least_bytes);
  pl_json_add_string(object, "binds", bound->binds);
  pl_json_add_int(object, "effort", effort);
  pl_json_add_int(object, "values", bound->values);
  return prog_print_json(stdout, object);
}
