/* `planc colocate`: from several graphs and one budget to a checked plan file in which they share a GPU. */
#include <string.h>

#include "cli/mix_setup.h"

static const char fallback_policy[] = "temporal", fallback_output[] = "mix.plan";

static const char *output_of(const pl_arguments *arguments) {
  const char *output = pl_option_value(arguments, "output");
  return output ? output : fallback_output;
}

static planc_status write_mix(const pl_arguments *arguments, const cli_mix *mix, const planc_mix_share *shares,
                              const planc_plan *plan) {
  const char *output = output_of(arguments);
  if (!pl_option_given(arguments, "output")) cli_note("output %s", output);
  for (int32_t j = 0; j < mix->n; j++) PLANC_TRY(cli_note_workspaces(plan, j, mix->jobs[j].profile));
  PLANC_TRY(cli_write_plan(plan, output));
  if (strcmp(output, "-") == 0) return NULL;
  return cli_summarize(plan, shares, output, pl_option_given(arguments, "json"));
}

static planc_status plan_mix(const pl_arguments *arguments, const planc_mix_policy *policy, const cli_mix *mix) {
  planc_mix_share shares[PLANC_MIX_MOST_JOBS] = {{0}};
  planc_plan *plan = NULL;
  planc_status status = planc_mix_resolve(&mix->mix, shares);
  if (!status) status = planc_colocate(&mix->mix, policy, shares, &plan);
  PLANC_TRY(cli_explain_mix(&mix->mix, policy, status));
  status = write_mix(arguments, mix, shares, plan);
  planc_plan_free(plan);
  return status;
}

static planc_status list_files(const pl_arguments *arguments, pl_used_files *files) {
  PLANC_TRY(cli_mix_list_files(arguments, files));
  return pl_used_files_write(files, output_of(arguments));
}

static planc_status run(const pl_arguments *arguments) {
  const planc_mix_policy *policy;
  cli_mix mix;
  const char *name = pl_option_value(arguments, "policy");
  PLANC_TRY(cli_mix_policy(name ? name : fallback_policy, true, &policy));
  PLANC_TRY(cli_setup_useful(arguments, policy->name, policy->supports));
  if (!name) cli_note("policy %s (the fall-back)", policy->name);
  planc_status status = cli_mix_read(arguments, &mix);
  if (!status) status = plan_mix(arguments, policy, &mix);
  cli_mix_free(&mix);
  return status;
}

static const pl_option options[] = {
    CLI_MIX_OPTIONS{"policy", 0, "NAME", "how the jobs share the GPU (default: temporal)"},
    {"output", 'o', "FILE", "the plan, - for standard output (default: mix.plan)"},
    {"json", 0, NULL, "the summary as one line of JSON"},
    {0},
};

const pl_subcommand cli_cmd_colocate = {
    {"colocate", CLI_MIX_OPERANDS, "make one plan for several jobs on one GPU", options, 2, PL_MAX_OPERANDS},
    run,
    list_files};
