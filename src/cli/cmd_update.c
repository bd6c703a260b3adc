/* `planc update`: from a plan and a run of it to a plan for what the run measured. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cost/routes.h"
#include "planc/check.h"
#include "planc/update.h"
#include "util/file.h"
#include "util/math.h"
#include "util/print.h"
#include "util/size.h"

typedef struct updating {
  const pl_arguments *arguments;
  const char *output, *profile_output; /* or NULL */
  int64_t weight_ppm, threshold_ppm;
  planc_plan *plan;
  const planc_job *job; /* its only one */
  planc_timeline *timeline;
  planc_profile *base; /* or NULL */
  planc_update *update;
  const planc_policy *policy;
  planc_problem problem;
  planc_replanned next; /* all zero: none was wanted */
  int32_t n_others;     /* ops that it runs with other algorithms; -1: other rounds, or none was wanted */
} updating;

static const pl_option own_options[] = {
    {"trace", 't', "FILE", "what `planrun exec --trace` measured of the plan"},
    {"output", 'o', "FILE", "the new plan, - for standard output"},
    {"profile-out", 0, "FILE", "the profile that it is made with"},
    {"weight", 0, "SHARE", "of what was measured against what the plan was made with, 0 to 1 (default: 0.9)"},
    {"threshold", 0, "SHARE", "change of the sum of latencies up to which nothing is written (default: 0.3)"},
    {"profile", 'p', "FILE",
     "other algorithms and batches, in proportion to what was measured (default: the plan's only)"},
    {"device", 'd', "NAME|FILE", "the same, from a device description"},
    {"policy", 0, "NAME", "how to plan (default: the plan's)"},
    {"budget", 'm', "SIZE", "device memory, reserved bytes included (default: the plan's)"},
    {"host-budget", 0, "SIZE", "host memory for offloaded data (default: the plan's)"},
    {"storage", 0, "SIZE", "storage for what the host budget has no room for (default: the plan's)"},
    {"sub-batch", 0, "N", "samples per round (default: the plan's; with --profile or --device the policy chooses)"},
    {"split-batch-norm", 0, NULL, "allow rounds although batch normalisation couples the batch"},
    {"placement", 0, "NAME", "best-fit, paged or vmm, for policies that allocate as they go (default: the plan's)"},
    {"chunk", 0, "SIZE", "chunk of --placement vmm or page of paged (default: the plan's, else 40M or 2M)"},
#define X(name, option, kind, least, most, standard, users, help) CLI_SETTING(option, kind, help, "the plan's")
    PLANC_JOB_SETTINGS(X) PLANC_ANY_SETTINGS(X)
#undef X
        {"json", 0, NULL, "what was done as one line of JSON"},
    {0},
};

static planc_status run(const pl_arguments *arguments);
static planc_status list_files(const pl_arguments *arguments, pl_used_files *files);
static planc_status update(updating *u);

const pl_subcommand cli_cmd_update = {
    {"update", "PLAN", "make a plan anew from what a run of it measured", own_options, 1, 1}, run, list_files};

static planc_status run(const pl_arguments *arguments) {
  updating u = {.arguments = arguments, .n_others = -1};
  planc_status status = update(&u);
  planc_replanned_free(&u.next);
  planc_update_free(u.update);
  planc_profile_free(u.base);
  planc_timeline_free(u.timeline);
  planc_plan_free(u.plan);
  return status;
}

/* --- Files ---------------------------------------------------------------------------------------------------- */

static planc_status list_files(const pl_arguments *arguments, pl_used_files *files) {
  PLANC_TRY(pl_used_files_read(files, arguments->operands[0]));
  PLANC_TRY(pl_used_files_read(files, pl_option_value(arguments, "trace")));
  PLANC_TRY(pl_used_files_read(files, pl_option_value(arguments, "profile")));
  PLANC_TRY(pl_used_files_write(files, pl_option_value(arguments, "output")));
  return pl_used_files_write(files, pl_option_value(arguments, "profile-out"));
}

/* --- Inputs --------------------------------------------------------------------------------------------------- */

static planc_status read_arguments(updating *u) {
  enum { MOST_THRESHOLD = 1000 };
  u->output = pl_option_value(u->arguments, "output");
  u->profile_output = pl_option_value(u->arguments, "profile-out");
  if (!pl_option_given(u->arguments, "trace")) return planc_error(PLANC_USAGE, "update needs --trace");
  if (!u->output && !u->profile_output) return planc_error(PLANC_USAGE, "update needs --output or --profile-out");
  PLANC_TRY(cli_setup_share(u->arguments, "weight", 1, PLANC_UPDATE_WEIGHT_PPM, &u->weight_ppm));
  return cli_setup_share(u->arguments, "threshold", MOST_THRESHOLD, PLANC_UPDATE_THRESHOLD_PPM, &u->threshold_ppm);
}

static planc_status read_base(updating *u) {
  const char *measured = pl_option_value(u->arguments, "profile");
  const char *device = pl_option_value(u->arguments, "device");
  if (measured && device) return planc_error(PLANC_USAGE, "--profile and --device exclude each other");
  if (measured) return cli_setup_measured(measured, u->job->graph, &u->base);
  return device ? cli_setup_device(u->arguments, device, &u->base) : NULL;
}

static planc_status read_inputs(updating *u) {
  const char *path = u->arguments->operands[0];
  PLANC_TRY(read_arguments(u));
  PLANC_TRY(planc_plan_read(path, &u->plan));
  PLANC_TRY(planc_context(planc_check(u->plan, NULL, NULL), "%s", path));
  PLANC_TRY(planc_context(planc_update_job(u->plan, &u->job), "%s", path));
  PLANC_TRY(planc_timeline_read(pl_option_value(u->arguments, "trace"), u->plan, &u->timeline));
  PLANC_TRY(read_base(u));
  planc_update_options options = {
      .plan = u->plan, .timeline = u->timeline, .profile = u->base, .weight_ppm = u->weight_ppm};
  return planc_context(planc_update_make(&options, &u->update), "%s", path);
}

/* --- The next problem ----------------------------------------------------------------------------------------- */

/* Samples of a full round. */
static int64_t sub_batch_of(const planc_job *job) {
  return job->rounds[0];
}

/* Whether the plan has rounds of as many samples, so that its workspaces there are known. */
static bool has_round(const planc_job *job, int64_t samples) {
  return samples == job->rounds[0] || samples == job->rounds[job->n_rounds - 1];
}

static bool has_rounds(const planc_job *job, int64_t sub_batch) {
  return has_round(job, sub_batch) && (job->batch % sub_batch == 0 || has_round(job, job->batch % sub_batch));
}

static planc_placement placement_of(const planc_memory *device) {
  if (device->chunk_bytes == 0) return PLANC_PLACEMENT_BEST_FIT;
  return device->paged ? PLANC_PLACEMENT_PAGED : PLANC_PLACEMENT_VMM;
}

/* A budget that the plan does not limit is all that the machine has. */
static int64_t limit_of(const planc_memory *memory) {
  if (memory->budget_bytes >= 0) return memory->budget_bytes;
  return memory->bytes >= 0 ? memory->bytes : PL_EXACT_MAX;
}

static int64_t device_of(const planc_plan *plan) {
  return limit_of(planc_plan_memory(plan, PLANC_MEMORY_DEVICE));
}

/* How much storage the plan was made for. */
static int64_t storage_of(const planc_plan *plan) {
  const planc_memory *memory = planc_plan_memory(plan, PLANC_MEMORY_STORAGE);
  return memory->kind == PLANC_MEMORY_STORAGE ? limit_of(memory) : 0;
}

static void read_budgets(const planc_plan *plan, int64_t budgets[PLANC_N_BUDGETS]) {
  budgets[PLANC_MEMORY_DEVICE] = device_of(plan);
  budgets[PLANC_MEMORY_HOST] = planc_plan_memory(plan, PLANC_MEMORY_HOST)->budget_bytes;
  budgets[PLANC_MEMORY_STORAGE] = storage_of(plan);
}

/* What was asked for the plan is asked of another policy, too, where that has use for it. */
static void keep_settings(const planc_plan *plan, const planc_policy *policy, planc_problem *out) {
  bool other = strcmp(policy->name, plan->policy) != 0;
  planc_settings kept = plan->settings;
#define X(name, option, kind, least, most, standard, users, help) \
  if (other && (users) != 0 && !(policy->supports & (users))) kept.name = 0;
  PLANC_JOB_SETTINGS(X)
#undef X
  planc_ask_settings(out, &kept);
}

/* The plan's problem again, as far as the plan tells, with the options given. */
static planc_status make_problem(updating *u) {
  const planc_plan *plan = u->plan;
  const planc_job *job = u->job;
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  const char *policy = pl_option_value(u->arguments, "policy");
  planc_problem *problem = &u->problem;
  *problem = (planc_problem){.job.graph = job->graph, .job.profile = u->update->profile, .job.batch = job->batch};
  PLANC_TRY(cli_setup_policy(policy ? policy : plan->policy, policy ? PLANC_USAGE : PLANC_BAD_INPUT, &u->policy));
  keep_settings(plan, u->policy, problem);
  PLANC_TRY(cli_setup_plans(u->policy));
  read_budgets(plan, problem->terms.budgets);
  PLANC_TRY(cli_setup_budgets(u->arguments, problem->terms.budgets));
  PLANC_TRY(cli_setup_storage(problem));
  /* Other rounds would rest on times that nobody measured. */
  int64_t rounds = u->base ? 0 : sub_batch_of(job);
  PLANC_TRY(pl_option_int(u->arguments, "sub-batch", 1, job->batch, rounds, &problem->job.sub_batch));
  if (!u->base && !has_rounds(job, problem->job.sub_batch)) {
    cli_note("workspaces of rounds of %" PRId64 " are taken from those of %" PRId64
             ": planrun refuses a plan with too little; a --profile has those that were measured",
             problem->job.sub_batch, rounds);
  }
  problem->job.split_batch_norm = job->n_rounds > 1 || pl_option_given(u->arguments, "split-batch-norm");
  PLANC_TRY(cli_setup_policy_options(u->arguments, problem));
  if (!pl_option_given(u->arguments, "placement") && (u->policy->supports & PLANC_POLICY_VMM))
    problem->terms.placement = placement_of(device);
  if (problem->terms.placement == placement_of(device) && problem->terms.chunk_bytes == 0)
    problem->terms.chunk_bytes = device->chunk_bytes;
  return cli_setup_own_options(u->arguments, u->policy, problem);
}

static bool is_placed_otherwise(const planc_problem *problem, const planc_memory *device) {
  return problem->terms.placement != placement_of(device) ||
         (problem->terms.placement != PLANC_PLACEMENT_BEST_FIT && problem->terms.chunk_bytes != device->chunk_bytes);
}

/* The plan's decisions are no answer. */
static bool asks_for_other_decisions(const updating *u) {
  const planc_problem *problem = &u->problem;
  const planc_settings asked = planc_settings_asked(problem);
  return strcmp(u->policy->name, u->plan->policy) != 0 || !planc_settings_are_same(&asked, &u->plan->settings) ||
         is_placed_otherwise(problem, planc_plan_memory(u->plan, PLANC_MEMORY_DEVICE)) ||
         (problem->job.sub_batch && problem->job.sub_batch != sub_batch_of(u->job));
}

/* Another budget, policy, setting, placement or split is reason enough for a plan. */
static bool asks_for_another(const updating *u) {
  int64_t budgets[PLANC_N_BUDGETS];
  read_budgets(u->plan, budgets);
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    if (u->problem.terms.budgets[m] != budgets[m]) return true;
  return asks_for_other_decisions(u);
}

/* --- Reports -------------------------------------------------------------------------------------------------- */

static void report_sum(cJSON *object, const char *key, const planc_latency_sum *sum) {
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "count", sum->count);
  pl_json_add_int(json, "old_ns", sum->old_ns);
  pl_json_add_int(json, "measured_ns", sum->measured_ns);
  pl_json_add_int(json, "new_ns", sum->new_ns);
}

static planc_status report_json(const updating *u, bool updated) {
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "update/1");
  pl_json_add_string(object, "policy", u->policy->name);
  pl_json_add_int(object, "periods", u->timeline->n_periods);
  pl_json_add_int(object, "weight_ppm", u->weight_ppm);
  pl_json_add_int(object, "threshold_ppm", u->threshold_ppm);
  report_sum(object, "ops", &u->update->ops);
  for (int r = 0; r < PLANC_N_ROUTES; r++) report_sum(object, pl_routes[r].sums, &u->update->copies[r]);
  pl_json_add_int(object, "change_ppm", u->update->change_ppm);
  pl_json_add_bool(object, "updated", updated);
  const planc_plan *next = planc_replanned_plan(&u->next);
  if (next) {
    pl_json_add_string(object, "decisions", u->next.keeps ? "kept" : "new");
  } else {
    pl_json_add_null(object, "decisions");
  }
  pl_json_add_known(object, "other_algorithms", u->n_others >= 0, u->n_others);
  pl_json_add_known(object, "iteration_ns", next, next ? next->predicted.iteration_ns : 0);
  return pl_print_json(stdout, object);
}

static void print_sum(const char *what, const planc_latency_sum *sum) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT];
  if (sum->count == 0) return;
  printf("  %5" PRId32 "x %-10s %14s %16s %16s\n", sum->count, what, pl_time_format(sum->old_ns, a),
         pl_time_format(sum->measured_ns, b), pl_time_format(sum->new_ns, c));
}

static void print_decisions(const planc_replanned *next) {
  char would[PL_SIZE_TEXT];
  if (!next->keeps) {
    printf("  planned anew\n");
  } else if (!next->made) {
    printf("  decisions kept: planned anew it does not fit\n");
  } else {
    printf("  decisions kept: planned anew an iteration takes %s\n",
           pl_time_format(next->made->predicted.iteration_ns, would));
  }
}

static void print_text(const updating *u) {
  const planc_update *update = u->update;
  printf("%s, %" PRId32 " period%s measured\n", u->plan->name, u->timeline->n_periods,
         u->timeline->n_periods == 1 ? "" : "s");
  printf("  %-17s %14s %16s %16s\n", "", "planned with", "measured", "from now on");
  print_sum("op", &update->ops);
  for (int r = 0; r < PLANC_N_ROUTES; r++) print_sum(pl_routes[r].verb, &update->copies[r]);
  char change[CLI_METRIC_TEXT], threshold[CLI_METRIC_TEXT];
  printf("  changed by %s, threshold %s\n", cli_metric_format(update->change_ppm, 3, change),
         cli_metric_format(u->threshold_ppm, 3, threshold));
}

static bool to_standard_output(const char *path) {
  return path && strcmp(path, "-") == 0;
}

static planc_status report(const updating *u, bool updated) {
  if (to_standard_output(u->output) || to_standard_output(u->profile_output)) return NULL;
  if (pl_option_given(u->arguments, "json")) return report_json(u, updated);
  print_text(u);
  const planc_plan *next = planc_replanned_plan(&u->next);
  if (!next) return NULL;
  print_decisions(&u->next);
  return cli_summarize(next, NULL, u->output, false);
}

/* --- Updating ------------------------------------------------------------------------------------------------- */

static planc_status write_profile(const updating *u) {
  char *text;
  size_t length;
  PLANC_TRY(planc_update_print(u->update, &text, &length));
  planc_status status = pl_file_write(u->profile_output, text, length);
  free(text);
  return status;
}

/* The plan's own decisions may need less than a plan made anew. */
static void note_kept(const planc_problem *problem, const planc_plan *kept, planc_status failed) {
  char text[PL_SIZE_TEXT];
  for (int32_t m = 0; m < PLANC_N_BUDGETS && planc_status_code(failed) == PLANC_INFEASIBLE; m++) {
    int64_t bytes = kept->predicted.peak_bytes[m], budget = problem->terms.budgets[m];
    if (budget < 0 || bytes <= budget) continue;
    cli_note("the decisions of the plan at hand need a %s of %" PRId64 " bytes (%s)",
             cli_budget_name((planc_memory_kind)m), bytes, pl_size_format(bytes, text));
  }
}

/* Other algorithms and other rounds add up in another order, which is rounded otherwise. */
static planc_status note_other_results(updating *u) {
  const planc_plan *next = planc_replanned_plan(&u->next);
  PLANC_TRY(planc_update_other_algorithms(u->plan, next, &u->n_others));
  if (u->n_others < 0)
    cli_note("rounds are others than those of the plan at hand: results may differ in the last bits");
  if (u->n_others > 0)
    cli_note("%" PRId32 " op%s with other algorithms than in the plan at hand: results may differ in the last bits",
             u->n_others, u->n_others == 1 ? " runs" : "s run");
  return NULL;
}

static planc_status replan(updating *u) {
  const planc_plan *keepable = asks_for_other_decisions(u) ? NULL : u->plan;
  planc_status status = planc_replan(&u->problem, u->policy, keepable, &u->next);
  /* What the plan rules out may leave another policy nothing to do. */
  bool rules_out = u->plan->settings.no_swap || u->plan->settings.no_recompute;
  if (rules_out && planc_status_code(status) == PLANC_USAGE)
    status = planc_context(status, "%s", u->arguments->operands[0]);
  if (keepable) note_kept(&u->problem, keepable, status);
  PLANC_TRY(cli_explain(&u->problem, u->policy, status));
  PLANC_TRY(note_other_results(u));
  if (!u->base || u->next.keeps) return NULL; /* what is kept has run */
  return cli_note_workspaces(u->next.made, 0, u->update->profile);
}

static planc_status update(updating *u) {
  PLANC_TRY(read_inputs(u));
  PLANC_TRY(make_problem(u));
  if (u->update->change_ppm <= u->threshold_ppm && !asks_for_another(u)) {
    PLANC_TRY(report(u, false));
    return planc_error(PLANC_UNCHANGED, "%s: latencies have not changed by more than the threshold: nothing is written",
                       u->arguments->operands[0]);
  }
  if (u->output) PLANC_TRY(replan(u));
  if (u->profile_output) PLANC_TRY(write_profile(u));
  if (u->output) PLANC_TRY(cli_write_plan(planc_replanned_plan(&u->next), u->output));
  return report(u, true);
}
