/* The plan of a mix after an update (update_setup.h). */
#include <string.h>

#include "cli/update_setup.h"

static const char by_colocating[] = "; colocate with the profiles of --profile-out takes them";

enum { RATIO_TEXT = 12 * PLANC_MIX_MAX_JOBS };

static planc_status check_options(const prog_arguments *arguments);
static planc_status find_policy(cli_update *u);
static planc_settings settings_of(const cli_update *u);
static void set_job(cli_update *u, int32_t job, const planc_settings *settings);
static bool asks_for_other_decisions(const cli_update *u, const planc_settings *settings);
static void note_other_ratio(const cli_update *u);

planc_status cli_update_ask_mix(cli_update *u) {
  const planc_plan *plan = u->plan;
  planc_mix *mix = &u->mix.mix;
  if (plan->n_jobs > PLANC_MIX_MAX_JOBS)
    return planc_error(PLANC_USAGE, "%s: %d jobs: a mix has at most %d", u->arguments->operands[0], plan->n_jobs,
                       (int)PLANC_MIX_MAX_JOBS);
  PLANC_TRY(check_options(u->arguments));
  PLANC_TRY(find_policy(u));
  PLANC_TRY(cli_setup_useful(u->arguments, u->mix_policy->name, u->mix_policy->supports));
  PLANC_TRY(cli_mix_allocate(plan->n_jobs, &u->mix));
  planc_settings settings = settings_of(u);
  PLANC_TRY(cli_settings_read(u->arguments, &settings));
  mix->terms = (planc_terms){.gpus = planc_plan_replicas(plan), .settings = settings};
#define X(name, ...) mix->terms.settings.name = 0; /* each job's own */
  PLANC_EACH_SETTINGS(X)
#undef X
  cli_update_read_budgets(u, mix->terms.budgets);
  PLANC_TRY(cli_setup_budgets(u->arguments, mix->terms.budgets));
  for (int32_t j = 0; j < plan->n_jobs; j++) set_job(u, j, &settings);
  cli_mix_note_devices(&u->mix);
  PLANC_TRY(cli_mix_read_demands(u->arguments, &u->mix));
  u->asks_for_other_decisions = asks_for_other_decisions(u, &settings);
  u->asks_for_another = u->asks_for_other_decisions || cli_update_has_other_budgets(u, &mix->terms);
  return NULL;
}

planc_status cli_update_replan_mix(cli_update *u) {
  const planc_plan *keepable = u->asks_for_other_decisions ? NULL : u->plan;
  const planc_mix *mix = &u->mix.mix;
  if ((u->mix_policy->supports & PLANC_MIX_DEADLINES) && !planc_mix_has_deadlines(mix))
    return planc_error(PLANC_USAGE,
                       "%s: a plan does not keep the deadlines that policy %s plans for: say them with "
                       "--deadline",
                       u->arguments->operands[0], u->mix_policy->name);
  planc_status status = planc_mix_replan(mix, u->mix_policy, keepable, u->shares, &u->next);
  if (keepable) cli_update_note_kept(&mix->terms, keepable, status);
  cli_update_note_rounds(u, status);
  status = cli_explain_mix(mix, u->mix_policy, status);
  status = cli_explain_late(mix, u->mix_policy, u->shares, by_colocating, status);
  if (!status) note_other_ratio(u);
  return status;
}

static planc_status check_options(const prog_arguments *arguments) {
  static const char *const of_one_job[] = {"storage", "sub-batch", "placement", "chunk"};
  for (size_t i = 0; i < sizeof of_one_job / sizeof *of_one_job; i++)
    if (prog_option_given(arguments, of_one_job[i]))
      return planc_error(PLANC_USAGE, "--%s is for plans of one job with one iteration a period", of_one_job[i]);
  return NULL;
}

static planc_status find_policy(cli_update *u) {
  const char *name = prog_option_value(u->arguments, "policy"), *own = u->plan->policy;
  if (name) return cli_mix_policy(name, true, &u->mix_policy);
  u->mix_policy = planc_mix_policy_find(own);
  if (u->mix_policy && u->mix_policy->make) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%s: %s is no policy that plans several jobs: say another with --policy",
                     u->arguments->operands[0], own);
}

static bool has_use_for(const cli_update *u, uint32_t users) {
  return cli_update_has_use(u->plan, u->mix_policy->name, u->mix_policy->supports, users);
}

static planc_settings settings_of(const cli_update *u) {
  planc_settings kept = cli_update_kept_settings(u->plan, u->mix_policy->name, u->mix_policy->supports);
  /* Node groups have a size or a number. */
  if (prog_option_given(u->arguments, "split-groups")) kept.split_size = 0;
  if (prog_option_given(u->arguments, "split-size")) kept.split_groups = 0;
  return kept;
}

/* Other rounds than the plan's would rest on times that nobody measured, unless a profile has them. */
static void set_job(cli_update *u, int32_t job, const planc_settings *settings) {
  const planc_job *from = &u->plan->jobs[job];
  bool side_by_side = (u->mix_policy->supports & PLANC_MIX_ROUNDS) && cli_runs_side_by_side(u->plan, job);
  u->mix.jobs[job] =
      (planc_workload){.graph = from->graph,
                       .profile = u->update->profiles[job],
                       .batch = from->batch,
                       .sub_batch = u->bases && !side_by_side ? 0 : from->rounds[0],
                       .side_by_side = side_by_side ? from->n_rounds : 1,
                       .priority = from->priority,
                       .split_batch_norm = from->n_rounds > 1 || prog_option_given(u->arguments, "split-batch-norm")};
#define X(name, option, kind, least, most, standard, users, help)                          \
  u->mix.jobs[job].name = settings->name;                                                  \
  if (!prog_option_given(u->arguments, option) && has_use_for(u, users) && from->name > 0) \
    u->mix.jobs[job].name = from->name;
  PLANC_EACH_SETTINGS(X)
#undef X
  u->mix.operands[job].inference = !planc_graph_has_backward(from->graph);
  u->mix.iterations[job] = from->iterations;
  u->mix.names[job] = from->name;
}

/* The plan's decisions are no answer. */
static bool asks_for_other_decisions(const cli_update *u, const planc_settings *settings) {
  bool others = strcmp(u->mix_policy->name, u->plan->policy) != 0;
  for (int32_t j = 0; j < u->plan->n_jobs; j++) {
    planc_settings kept = u->plan->settings, asked = *settings;
#define X(name, ...)                                                \
  if (u->plan->jobs[j].name > 0) kept.name = u->plan->jobs[j].name; \
  asked.name = u->mix.jobs[j].name;
    PLANC_EACH_SETTINGS(X)
#undef X
    others |= !planc_settings_are_same(&asked, &kept);
  }
  return others;
}

/* --- The ratio ---------------------------------------------------------------------------------------------------- */

/* What the ops of a job take in a period, as planned with or from now on. */
static int64_t ops_of(const cli_update *u, int32_t job, bool before) {
  return before ? u->update->jobs[job].old_ns : u->update->jobs[job].new_ns;
}

/* Whether one job has less than half of the time of another. */
static bool is_unfair(const cli_update *u, bool before) {
  enum { FAR_BELOW = 2 };
  int64_t least = ops_of(u, 0, before), most = least;
  for (int32_t j = 1; j < u->plan->n_jobs; j++) {
    int64_t ns = ops_of(u, j, before);
    if (ns < least) least = ns;
    if (ns > most) most = ns;
  }
  return least < most / FAR_BELOW;
}

/* Iterations in a period stay what they are: with what was measured they may leave a job much less of the GPU than they
 * were to. */
static void note_other_ratio(const cli_update *u) {
  int32_t chosen[PLANC_MIX_MAX_JOBS], n = u->plan->n_jobs;
  char ratio[RATIO_TEXT] = "";
  bool known = !planc_mix_has_deadlines(&u->mix.mix), other = false;
  for (int32_t j = 0; j < n; j++) known &= u->shares[j].alone_ns > 0;
  if (!known || is_unfair(u, true) || !is_unfair(u, false)) return;
  planc_mix_choose_ratio(&u->mix.mix, u->shares, chosen);
  for (int32_t j = 0; j < n; j++) {
    size_t length = strlen(ratio);
    (void)snprintf(ratio + length, sizeof ratio - length, "%s%d", j > 0 ? ":" : "", chosen[j]);
    other |= chosen[j] != u->plan->jobs[j].iterations;
  }
  if (other)
    cli_note(
        "iterations in a period stay what they are; with the measured times planc would choose %s: colocate with "
        "the profiles of --profile-out does",
        ratio);
}
