/* `planc update`: from a plan and a run of it to a plan for what the run measured. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/update_setup.h"
#include "plan/one_job.h"
#include "planc/check.h"
#include "util/file.h"

static const prog_option own_options[] = {
    {"trace", 't', "FILE", "what `planrun exec --trace` measured of the plan"},
    {"output", 'o', "FILE", "the new plan, - for standard output"},
    {"profile-out", 0, "FILE ...", "the profile that it is made with; of several jobs one of each, in order"},
    {"weight", 0, "SHARE", "of what was measured against what the plan was made with, 0 to 1 (default: 0.9)"},
    {"threshold", 0, "SHARE", "change of the sum of latencies up to which nothing is written (default: 0.3)"},
    {"profile", 'p', "FILE ...",
     "other algorithms and batches, in proportion; of several jobs one of all or of each (default: the plan's only)"},
    {"device", 'd', "NAME|FILE", "the same, from a device description"},
    {"policy", 0, "NAME", "how to plan (default: the plan's)"},
    {"budget", 'm', "SIZE", "device memory, reserved bytes included (default: the plan's)"},
    {"host-budget", 0, "SIZE", "host memory for offloaded data (default: the plan's)"},
    {"storage", 0, "SIZE", "storage for what the host budget has no room for (default: the plan's)"},
    {"sub-batch", 0, "N",
     "samples per round, of one job (default: the plan's; with --profile or --device the policy chooses)"},
    {"split-batch-norm", 0, NULL, "allow rounds although batch normalisation couples the batch"},
    CLI_MIX_DEMAND_OPTIONS,
    {"placement", 0, "NAME",
     "best-fit: in one piece; paged: in pages of virtual memory; vmm: in chunks (default: the plan's)"},
    {"chunk", 0, "SIZE", "chunk of --placement vmm or page of paged (default: the plan's, else 40M or 2M)"},
#define X(name, option, kind, least, most, standard, users, help) \
  CLI_SETTING(option, kind, least, most, help, "the plan's")
    PLANC_SETTINGS(X)
#undef X
        {"json", 0, NULL, "what was done as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status update(cli_update *u);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);

const prog_subcommand cli_cmd_update = {
    {"update", "PLAN", "make a plan anew from what a run of it measured", own_options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  cli_update u = {.arguments = arguments, .n_others = -1};
  planc_status status = update(&u);
  planc_replanned_free(&u.next);
  planc_update_free(u.update);
  for (int32_t j = 0; u.read && j < u.plan->n_jobs; j++) planc_profile_free(u.read[j]);
  cli_mix_free(&u.mix);
  planc_timeline_free(u.timeline);
  planc_plan_free(u.plan);
  pl_arena_free(&u.arena);
  return status;
}

/* --- Updating ----------------------------------------------------------------------------------------------------- */

static bool is_mix(const planc_plan *plan);
static planc_status replan(cli_update *u);
static planc_status note_other_results(cli_update *u);
static planc_status write_files(const cli_update *u);
static planc_status read_inputs(cli_update *u);

static planc_status update(cli_update *u) {
  PLANC_TRY(read_inputs(u));
  u->is_mix = is_mix(u->plan);
  PLANC_TRY(u->is_mix ? cli_update_ask_mix(u) : cli_update_ask_job(u));
  if (u->update->change_ppm <= u->threshold_ppm && !u->asks_for_another) {
    PLANC_TRY(cli_update_report(u, false));
    return planc_error(PLANC_UNCHANGED, "%s: latencies have not changed by more than the threshold: nothing is written",
                       u->arguments->operands[0]);
  }
  if (u->output) PLANC_TRY(replan(u));
  PLANC_TRY(write_files(u));
  return cli_update_report(u, true);
}

/* What only plans for mixes can be: of several jobs, or of one in whose period there are several iterations. A policy
 * may be of both kinds: what only jobs of mixes have tells then. */
static bool is_mix(const planc_plan *plan) {
  if (plan->n_jobs > 1) return true;
  const planc_job *job = pl_plan_job(plan);
  if (job->iterations > 1) return true;
  bool is_of_mixes = planc_mix_policy_find(plan->policy) != NULL;
  return is_of_mixes && (!planc_policy_find(plan->policy) || job->name || job->priority != 0);
}

static planc_status replan(cli_update *u) {
  PLANC_TRY(u->is_mix ? cli_update_replan_mix(u) : cli_update_replan_job(u));
  PLANC_TRY(note_other_results(u));
  if (!u->bases || u->next.keeps) return NULL; /* what is kept has run */
  for (int32_t j = 0; j < u->plan->n_jobs; j++) PLANC_TRY(cli_note_workspaces(u->next.made, j, u->update->profiles[j]));
  return NULL;
}

/* Other algorithms and other rounds add up in another order, which is rounded otherwise. */
static planc_status note_other_results(cli_update *u) {
  const planc_plan *next = planc_replanned_plan(&u->next);
  PLANC_TRY(planc_update_other_algorithms(u->plan, next, &u->n_others));
  if (u->n_others < 0)
    cli_note("rounds are others than those of the plan at hand: results may differ in the last bits");
  if (u->n_others > 0)
    cli_note("%" PRId32 " op%s with other algorithms than in the plan at hand: results may differ in the last bits",
             u->n_others, u->n_others == 1 ? " runs" : "s run");
  return NULL;
}

/* The plan names its profiles' costs: it and they are written together. */
static planc_status write_files(const cli_update *u) {
  int32_t n = 0, most = u->n_profile_outputs + 1;
  planc_status status = NULL;
  pl_file_text *files = calloc((size_t)most, sizeof *files);
  if (!files) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (; n < u->n_profile_outputs && !status; n++) {
    files[n].path = prog_option_repeated(u->arguments, "profile-out", n);
    status = planc_update_print(u->update, n, &files[n].text, &files[n].length);
  }
  if (u->output && !status) {
    files[n].path = u->output;
    status = cli_print_plan(planc_replanned_plan(&u->next), &files[n].text, &files[n].length);
    n++;
  }
  if (!status) status = pl_files_write(files, (size_t)n);
  for (int32_t k = 0; k < most; k++) free(files[k].text);
  free(files);
  return status;
}

/* --- Files and inputs --------------------------------------------------------------------------------------------- */

static planc_status read_arguments(cli_update *u);
static planc_status read_bases(cli_update *u);
static planc_status read_described(cli_update *u, int32_t job, const char *device);
static planc_status read_measured(cli_update *u, int32_t job, int32_t n);
static planc_status read_period(cli_update *u);
static planc_status check_outputs(const cli_update *u);

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  PLANC_TRY(prog_used_files_read(files, prog_option_value(arguments, "trace")));
  for (int32_t k = 0; k < prog_option_count(arguments, "profile"); k++)
    PLANC_TRY(prog_used_files_read(files, prog_option_repeated(arguments, "profile", k)));
  PLANC_TRY(prog_used_files_write(files, prog_option_value(arguments, "output")));
  for (int32_t k = 0; k < prog_option_count(arguments, "profile-out"); k++)
    PLANC_TRY(prog_used_files_write(files, prog_option_repeated(arguments, "profile-out", k)));
  return NULL;
}

static planc_status read_inputs(cli_update *u) {
  const char *path = u->arguments->operands[0];
  PLANC_TRY(read_arguments(u));
  PLANC_TRY(planc_plan_read(path, &u->plan));
  PLANC_TRY(planc_context(planc_check(u->plan, NULL, NULL), "%s", path));
  PLANC_TRY(planc_context(planc_update_check(u->plan), "%s", path));
  PLANC_TRY(planc_timeline_read(prog_option_value(u->arguments, "trace"), u->plan, &u->timeline));
  PLANC_TRY(read_bases(u));
  planc_update_options options = {
      .plan = u->plan, .timeline = u->timeline, .profiles = u->bases, .weight_ppm = u->weight_ppm};
  PLANC_TRY(planc_context(planc_update_make(&options, &u->update), "%s", path));
  PLANC_TRY(planc_context(read_period(u), "%s", path));
  return check_outputs(u);
}

static planc_status read_arguments(cli_update *u) {
  enum { MAX_THRESHOLD = 1000 };
  u->output = prog_option_value(u->arguments, "output");
  u->n_profile_outputs = prog_option_count(u->arguments, "profile-out");
  if (!prog_option_given(u->arguments, "trace")) return planc_error(PLANC_USAGE, "update needs --trace");
  if (!u->output && u->n_profile_outputs == 0)
    return planc_error(PLANC_USAGE, "update needs --output or --profile-out");
  PLANC_TRY(cli_setup_share(u->arguments, "weight", 1, PLANC_UPDATE_WEIGHT_PPM, &u->weight_ppm));
  return cli_setup_share(u->arguments, "threshold", MAX_THRESHOLD, PLANC_UPDATE_THRESHOLD_PPM, &u->threshold_ppm);
}

static planc_status read_bases(cli_update *u) {
  const char *device = prog_option_value(u->arguments, "device");
  int32_t n = prog_option_count(u->arguments, "profile"), n_jobs = u->plan->n_jobs;
  if (n == 0 && !device) return NULL;
  if (n > 0 && device) return planc_error(PLANC_USAGE, "--profile and --device exclude each other");
  if (n > 1 && n != n_jobs)
    return planc_error(PLANC_USAGE, "%d profiles for %d job%s: one of all, or one of each", n, n_jobs,
                       n_jobs == 1 ? "" : "s");
  PLANC_TRY(PL_NEW(&u->arena, &u->bases, n_jobs));
  PLANC_TRY(PL_NEW(&u->arena, &u->read, n_jobs));
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(device ? read_described(u, j, device) : read_measured(u, j, n));
  return NULL;
}

static planc_status read_described(cli_update *u, int32_t job, const char *device) {
  if (job == 0) PLANC_TRY(cli_setup_device(u->arguments, device, &u->read[0]));
  u->bases[job] = u->read[0];
  return NULL;
}

/* The profile of a job, or that of an earlier job with the same graph and profile. */
static planc_status read_measured(cli_update *u, int32_t job, int32_t n) {
  const planc_plan *plan = u->plan;
  const char *path = prog_option_repeated(u->arguments, "profile", n > 1 ? job : 0);
  for (int32_t j = 0; j < job; j++) {
    const char *other = prog_option_repeated(u->arguments, "profile", n > 1 ? j : 0);
    if (strcmp(other, path) != 0 || plan->jobs[j].graph != plan->jobs[job].graph) continue;
    u->bases[job] = u->bases[j];
    return NULL;
  }
  PLANC_TRY(cli_setup_measured(path, plan->jobs[job].graph, &u->read[job]));
  u->bases[job] = u->read[job];
  return NULL;
}

static planc_status read_period(cli_update *u) {
  planc_comparison *comparison;
  PLANC_TRY(planc_timeline_compare(u->plan, u->timeline, &comparison));
  u->predicted_ns = comparison->predicted_ns;
  u->measured_ns = comparison->measured_ns;
  planc_comparison_free(comparison);
  return NULL;
}

/* Jobs that are alike have one profile, which one file can have; else each has a file of its own. */
static planc_status check_outputs(const cli_update *u) {
  int32_t n_jobs = u->plan->n_jobs, n = u->n_profile_outputs;
  bool alike = true;
  for (int32_t j = 1; j < n_jobs; j++) alike &= u->update->profiles[j] == u->update->profiles[0];
  if (n == 0 || n == n_jobs || (n == 1 && alike)) return NULL;
  return planc_error(PLANC_USAGE, "%d file%s for the profiles of %d job%s: give --profile-out for each, in their order",
                     n, n == 1 ? "" : "s", n_jobs, n_jobs == 1 ? "" : "s");
}
