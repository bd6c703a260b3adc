/* `planc plan`: from a graph and a budget to a checked plan file. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "planc/bound.h"
#include "program/interrupts.h"

static const char fallback_policy[] = "auto";

static const prog_option options[] = {
    CLI_PROBLEM_OPTIONS{"policy", 0, "NAME", "how to plan (default: the graph's header, else auto)"},
    {"output", 'o', "FILE", "the plan, - for standard output (default: GRAPH's name with .plan, here)"},
    {"json", 0, NULL, "the summary as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status check_policy(const prog_arguments *arguments);
static planc_status plan_graph(const prog_arguments *arguments, const cli_setup *setup, const char *output);

const prog_subcommand cli_cmd_plan = {
    {"plan", "GRAPH", "make a plan for a graph under a memory budget", options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  cli_setup setup;
  char *output;
  PLANC_TRY(check_policy(arguments));
  PLANC_TRY(cli_output_name(arguments, ".plan", &output));
  planc_status status = cli_setup_read(arguments, arguments->operands[0], &setup);
  if (!status) setup.problem.terms.watch = cli_watch();
  if (!status) status = plan_graph(arguments, &setup, output);
  cli_setup_free(&setup);
  free(output);
  if (!status) prog_interrupts_end();
  return status;
}

static planc_status plan_graph(const prog_arguments *arguments, const cli_setup *setup, const char *output) {
  const char *name = prog_option_value(arguments, "policy"), *graph_policy = setup->problem.job.graph->policy;
  if (!name) {
    name = graph_policy ? graph_policy : fallback_policy;
    cli_note("policy %s (%s)", name, graph_policy ? "the graph's header" : "the fall-back");
  }
  const planc_policy *policy;
  PLANC_TRY(cli_setup_policy(name, PLANC_BAD_INPUT, &policy)); /* the graph's */
  PLANC_TRY(cli_setup_plans(policy));
  PLANC_TRY(cli_setup_own_options(arguments, policy, &setup->problem));
  planc_plan *plan;
  PLANC_TRY(cli_watch_end(cli_explain(&setup->problem, policy, planc_make_plan(&setup->problem, policy, &plan))));
  if (!prog_option_given(arguments, "output")) cli_note("output %s", output);
  planc_status status = planc_bound_plan(&setup->problem, CLI_BOUND_EFFORT, plan);
  if (!status) status = cli_note_workspaces(plan, 0, setup->profile);
  if (!status) status = cli_write_plan(plan, output);
  if (!status && strcmp(output, "-") != 0)
    status = cli_summarize(plan, NULL, output, prog_option_given(arguments, "json"));
  planc_plan_free(plan);
  return status;
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  char *output;
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  PLANC_TRY(prog_used_files_read(files, prog_option_value(arguments, "profile")));
  PLANC_TRY(cli_output_name(arguments, ".plan", &output));
  planc_status status = prog_used_files_write(files, output);
  const char *path = arguments->operands[0];
  bool named_so = status && !prog_option_given(arguments, "output") && strcmp(output, cli_without_folder(path)) == 0;
  free(output);
  if (!named_so) return status;
  planc_status_free(status);
  return planc_error(PLANC_USAGE,
                     "%s has a plan's name: planc show, check, simulate and update take plans, and a "
                     "graph of that name needs --output",
                     path);
}

/* A policy that cannot be meant is told before anything is read. */
static planc_status check_policy(const prog_arguments *arguments) {
  const char *name = prog_option_value(arguments, "policy");
  const planc_policy *policy;
  if (!name) return NULL;
  PLANC_TRY(cli_setup_policy(name, PLANC_USAGE, &policy));
  return cli_setup_plans(policy);
}
