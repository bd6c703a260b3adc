/* `planc colocate`: from several graphs and one budget to a checked plan file in which they share a GPU; or from
 * several budgets to a plan for each, between which a run can change. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/budget_list.h"
#include "cli/mix_setup.h"
#include "program/interrupts.h"
#include "program/print.h"
#include "util/file.h"

static const char fallback_policy[] = "temporal", fallback_for_deadlines[] = "preemptive";
static const char fallback_for_rounds[] = "zico";
static const char fallback_output[] = "mix.plan";

/* A plan of the mix, for one of the budgets. */
typedef struct rung {
  char output[PATH_MAX];
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
  planc_plan *plan;
} rung;

static const prog_option options[] = {
    CLI_MIX_OPTIONS{"budgets", 0, "SIZE,...",
                    "a plan for each of these budgets, mix.SIZE.plan, between which planrun --watch can change"},
    CLI_MIX_DEMAND_OPTIONS,
    {"policy", 0, "NAME",
     "how the jobs share the GPU (default: temporal, with deadlines preemptive, with --accumulate zico)"},
    {"output", 'o', "FILE", "the plan, - for standard output (default: mix.plan)"},
    {"json", 0, NULL, "the summary as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status read_budgets(const prog_arguments *arguments, cli_budget_list *out);
static planc_status make_plans(const prog_arguments *arguments, const planc_mix_policy *policy,
                               const cli_budget_list *budgets, cli_mix *mix);
static planc_status name_output(const prog_arguments *arguments, const char *budget, char out[PATH_MAX]);
static planc_status plan_ladder(const planc_mix_policy *policy, const cli_budget_list *budgets, cli_mix *mix,
                                rung *rungs);
static planc_status write_rungs(const prog_arguments *arguments, const cli_mix *mix, const rung *rungs, int32_t n);

const prog_subcommand cli_cmd_colocate = {
    {"colocate", CLI_MIX_OPERANDS, "make one plan for several jobs on one GPU", options, 1, PROG_MAX_OPERANDS},
    run,
    list_files};

static const char *fallback(const prog_arguments *arguments) {
  if (prog_option_given(arguments, "deadline")) return fallback_for_deadlines;
  return prog_option_given(arguments, "accumulate") ? fallback_for_rounds : fallback_policy;
}

/* The plan keeps them all the same: one that it changes to may have a use for them. */
static void note_priorities(const planc_mix_policy *policy, const cli_mix *mix) {
  bool any = false;
  for (int32_t j = 0; j < mix->n; j++) any |= mix->jobs[j].priority > 0;
  if (any && (policy->supports & PLANC_MIX_TURNS))
    cli_note("jobs that take turns, as by policy %s, have no use for priorities", policy->name);
}

static planc_status run(const prog_arguments *arguments) {
  const planc_mix_policy *policy;
  cli_budget_list budgets;
  cli_mix mix;
  const char *name = prog_option_value(arguments, "policy");
  PLANC_TRY(cli_mix_check_number(arguments));
  PLANC_TRY(cli_mix_policy(name ? name : fallback(arguments), true, &policy));
  if (!name) cli_note("policy %s (the fall-back)", policy->name);
  PLANC_TRY(cli_setup_useful(arguments, policy->name, policy->supports));
  PLANC_TRY(cli_mix_check_rounds(arguments, policy->supports));
  PLANC_TRY(read_budgets(arguments, &budgets));
  planc_status status = cli_mix_read(arguments, &mix);
  if (!status) status = cli_mix_read_demands(arguments, &mix);
  if (!status) note_priorities(policy, &mix);
  if (!status) mix.mix.terms.watch = cli_watch();
  if (!status) status = make_plans(arguments, policy, &budgets, &mix);
  cli_mix_free(&mix);
  if (!status) prog_interrupts_end();
  return status;
}

/* Writes none where one of them cannot be made or written. */
static planc_status make_plans(const prog_arguments *arguments, const planc_mix_policy *policy,
                               const cli_budget_list *budgets, cli_mix *mix) {
  planc_status status = NULL;
  rung *rungs = calloc((size_t)budgets->n, sizeof *rungs);
  if (!rungs) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t b = 0; b < budgets->n && !status; b++)
    status = name_output(arguments, budgets->names[b], rungs[b].output);
  if (!status) status = plan_ladder(policy, budgets, mix, rungs);
  if (!status) status = write_rungs(arguments, mix, rungs, budgets->n);
  for (int32_t b = 0; b < budgets->n; b++) planc_plan_free(rungs[b].plan);
  free(rungs);
  return status;
}

/* --- Which plans -------------------------------------------------------------------------------------------------- */

/* One of an empty name where there is one plan only. */
static planc_status read_budgets(const prog_arguments *arguments, cli_budget_list *out) {
  const char *budgets = prog_option_value(arguments, "budgets");
  *out = (cli_budget_list){.n = 1};
  if (!budgets) return NULL;
  if (prog_option_given(arguments, "budget"))
    return planc_error(PLANC_USAGE, "--budget and --budgets exclude each other");
  return cli_budget_list_parse("budgets", budgets, out);
}

/* Of mix.plan for 16G: mix.16G.plan. */
static planc_status name_output(const prog_arguments *arguments, const char *budget, char out[PATH_MAX]) {
  const char *output = prog_option_value(arguments, "output");
  if (!output) output = fallback_output;
  if (*budget && strcmp(output, "-") == 0)
    return planc_error(PLANC_USAGE, "--budgets writes a plan for each, which standard output cannot take");
  const char *slash = strrchr(output, '/'), *point = strrchr(output, '.'), *name = slash ? slash + 1 : output;
  size_t stem = point && point > name ? (size_t)(point - output) : strlen(output);
  int length = snprintf(out, PATH_MAX, "%.*s%s%s%s", (int)stem, output, *budget ? "." : "", budget, output + stem);
  return length < PATH_MAX ? NULL : planc_error(PLANC_USAGE, "--output: too long a name");
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  cli_budget_list budgets;
  PLANC_TRY(cli_mix_list_files(arguments, files));
  PLANC_TRY(read_budgets(arguments, &budgets));
  for (int32_t b = 0; b < budgets.n; b++) {
    char *path;
    PLANC_TRY(PL_NEW(&files->memory, &path, PATH_MAX));
    PLANC_TRY(name_output(arguments, budgets.names[b], path));
    PLANC_TRY(prog_used_files_write(files, path));
  }
  return NULL;
}

/* --- Planning ----------------------------------------------------------------------------------------------------- */

static planc_status plan_rung(const planc_mix_policy *policy, const cli_mix *mix, rung *out) {
  planc_status status = planc_mix_resolve(&mix->mix, out->shares);
  if (!status) status = planc_colocate(&mix->mix, policy, out->shares, &out->plan);
  if (!status) cli_mix_note_ratio(&mix->mix, out->shares);
  return cli_watch_end(cli_explain_mix(&mix->mix, policy, status));
}

/* A rung behind the first, whose iterations it has to keep. */
static planc_status explain_rung(const char *budget, planc_status status) {
  if (planc_status_code(status) != PLANC_LATE) return status;
  cli_note("all of --budgets have the iterations that the first of them takes: the least budget takes the most");
  return planc_context(status, "with a budget of %s", budget);
}

/* A run changes only between plans of as many iterations, which are those of the first. */
static planc_status plan_ladder(const planc_mix_policy *policy, const cli_budget_list *budgets, cli_mix *mix,
                                rung *rungs) {
  for (int32_t b = 0; b < budgets->n; b++) {
    PLANC_TRY(
        cli_mix_budget(*budgets->names[b] ? budgets->bytes[b] : mix->mix.terms.budgets[PLANC_MEMORY_DEVICE], mix));
    for (int32_t j = 0; b > 0 && j < mix->n; j++) mix->iterations[j] = rungs->shares[j].iterations;
    planc_status status = plan_rung(policy, mix, &rungs[b]);
    PLANC_TRY(b == 0 ? cli_explain_late(&mix->mix, policy, rungs->shares, "", status)
                     : explain_rung(budgets->names[b], status));
  }
  return NULL;
}

static planc_status note_rung(const prog_arguments *arguments, const cli_mix *mix, const rung *of);
static planc_status write_plans(const rung *rungs, int32_t n);
static planc_status summarize_rung(const prog_arguments *arguments, const rung *of);
static bool prints_ladder(const prog_arguments *arguments);

/* Several summaries as JSON are one document. */
static planc_status write_rungs(const prog_arguments *arguments, const cli_mix *mix, const rung *rungs, int32_t n) {
  for (int32_t b = 0; b < n; b++) PLANC_TRY(note_rung(arguments, mix, &rungs[b]));
  PLANC_TRY(write_plans(rungs, n));
  for (int32_t b = 0; b < n; b++) PLANC_TRY(summarize_rung(arguments, &rungs[b]));
  if (!prints_ladder(arguments)) return NULL;
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "colocate-budgets/1");
  cJSON *plans = pl_json_add_array(object, "plans");
  for (int32_t b = 0; b < n; b++)
    pl_json_add(plans, NULL, cli_summary_json(rungs[b].plan, rungs[b].shares, rungs[b].output));
  return prog_print_json(stdout, object);
}

static planc_status note_rung(const prog_arguments *arguments, const cli_mix *mix, const rung *of) {
  if (!prog_option_given(arguments, "output")) cli_note("output %s", of->output);
  for (int32_t j = 0; j < mix->n; j++) PLANC_TRY(cli_note_workspaces(of->plan, j, mix->jobs[j].profile));
  return NULL;
}

static planc_status write_plans(const rung *rungs, int32_t n) {
  planc_status status = NULL;
  pl_file_text *files = calloc((size_t)n, sizeof *files);
  if (!files) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t b = 0; b < n && !status; b++) {
    files[b].path = rungs[b].output;
    status = cli_print_plan(rungs[b].plan, &files[b].text, &files[b].length);
  }
  if (!status) status = pl_files_write(files, (size_t)n);
  for (int32_t b = 0; b < n; b++) free(files[b].text);
  free(files);
  return status;
}

static planc_status summarize_rung(const prog_arguments *arguments, const rung *of) {
  if (strcmp(of->output, "-") == 0 || prints_ladder(arguments)) return NULL;
  return cli_summarize(of->plan, of->shares, of->output, prog_option_given(arguments, "json"));
}

static bool prints_ladder(const prog_arguments *arguments) {
  return prog_option_given(arguments, "json") && prog_option_given(arguments, "budgets");
}
