/* The plan of one job after an update (update_setup.h). */
#include <inttypes.h>
#include <string.h>

#include "cli/update_setup.h"
#include "plan/one_job.h"
#include "planc/bound.h"

static planc_status check_options(const prog_arguments *arguments);
static planc_status make_problem(cli_update *u);
static bool asks_for_other_decisions(const cli_update *u);

planc_status cli_update_ask_job(cli_update *u) {
  PLANC_TRY(check_options(u->arguments));
  PLANC_TRY(make_problem(u));
  u->asks_for_other_decisions = asks_for_other_decisions(u);
  u->asks_for_another = u->asks_for_other_decisions || cli_update_has_other_budgets(u, &u->problem.terms);
  return NULL;
}

planc_status cli_update_replan_job(cli_update *u) {
  const planc_plan *keepable = u->asks_for_other_decisions ? NULL : u->plan;
  planc_status status = planc_replan(&u->problem, u->policy, keepable, &u->next);
  /* What the plan rules out may leave another policy nothing to do. */
  bool rules_out = u->plan->settings.no_swap || u->plan->settings.no_recompute;
  if (rules_out && planc_status_code(status) == PLANC_USAGE)
    status = planc_context(status, "%s", u->arguments->operands[0]);
  if (keepable) cli_update_note_kept(&u->problem.terms, keepable, status);
  if (!prog_option_given(u->arguments, "sub-batch")) cli_update_note_rounds(u, status);
  PLANC_TRY(cli_explain(&u->problem, u->policy, status));
  return planc_bound_plan(&u->problem, CLI_BOUND_EFFORT, u->next.keeps ? &u->next.kept.plan : u->next.made);
}

static planc_status check_options(const prog_arguments *arguments) {
  static const char *const options[] = {"deadline", "min-share"};
  for (size_t k = 0; k < sizeof options / sizeof *options; k++)
    if (prog_option_given(arguments, options[k]))
      return planc_error(PLANC_USAGE, "--%s is for plans of planc colocate", options[k]);
  return NULL;
}

/* --- The next problem --------------------------------------------------------------------------------------------- */

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

/* The plan's problem again, as far as the plan tells, with the options given. */
static planc_status make_problem(cli_update *u) {
  const planc_plan *plan = u->plan;
  const planc_job *job = pl_plan_job(plan);
  const planc_memory *device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  const char *policy = prog_option_value(u->arguments, "policy");
  planc_problem *problem = &u->problem;
  planc_settings kept;
  *problem = (planc_problem){.job.graph = job->graph, .job.profile = u->update->profiles[0], .job.batch = job->batch};
  problem->terms.gpus = planc_plan_replicas(plan);
  problem->terms.shared_link = cli_shares_link(plan);
  PLANC_TRY(cli_setup_policy(policy ? policy : plan->policy, policy ? PLANC_USAGE : PLANC_BAD_INPUT, &u->policy));
  kept = cli_update_kept_settings(plan, u->policy->name, u->policy->supports);
  planc_ask_settings(problem, &kept);
  PLANC_TRY(cli_setup_plans(u->policy));
  cli_update_read_budgets(u, problem->terms.budgets);
  PLANC_TRY(cli_setup_budgets(u->arguments, problem->terms.budgets));
  if (!prog_option_given(u->arguments, "storage") && problem->terms.budgets[PLANC_MEMORY_HOST] < 0 &&
      problem->terms.budgets[PLANC_MEMORY_STORAGE] > 0)
    return planc_error(PLANC_USAGE, "%s: it has storage and no host budget: say --host-budget, or --storage 0",
                       u->arguments->operands[0]);
  PLANC_TRY(cli_setup_storage(problem));
  /* Other rounds would rest on times that nobody measured. */
  int64_t rounds = u->bases ? 0 : sub_batch_of(job);
  PLANC_TRY(prog_option_int(u->arguments, "sub-batch", 1, job->batch, rounds, &problem->job.sub_batch));
  if (!u->bases && !has_rounds(job, problem->job.sub_batch)) {
    cli_note("workspaces of rounds of %" PRId64 " are taken from those of %" PRId64
             ": planrun refuses a plan with too little; a --profile has those that were measured",
             problem->job.sub_batch, rounds);
  }
  problem->job.split_batch_norm = job->n_rounds > 1 || prog_option_given(u->arguments, "split-batch-norm");
  PLANC_TRY(cli_setup_policy_options(u->arguments, problem));
  if (!prog_option_given(u->arguments, "placement") && planc_policy_places(u->policy, placement_of(device)))
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
static bool asks_for_other_decisions(const cli_update *u) {
  const planc_problem *problem = &u->problem;
  const planc_settings asked = planc_settings_asked(problem);
  return strcmp(u->policy->name, u->plan->policy) != 0 || !planc_settings_are_same(&asked, &u->plan->settings) ||
         is_placed_otherwise(problem, planc_plan_memory(u->plan, PLANC_MEMORY_DEVICE)) ||
         (problem->job.sub_batch && problem->job.sub_batch != sub_batch_of(pl_plan_job(u->plan)));
}

/* --- Rounds ------------------------------------------------------------------------------------------------------- */

/* Those that run side by side stay so. */
static bool may_have_smaller_rounds(const cli_update *u, int32_t j) {
  const planc_job *job = &u->plan->jobs[j];
  bool coupled = planc_graph_is_batch_coupled(job->graph) && job->n_rounds == 1;
  bool stays = u->is_mix && u->mix.jobs[j].side_by_side > 1;
  return !stays && job->rounds[0] > 1 && (!coupled || prog_option_given(u->arguments, "split-batch-norm"));
}

void cli_update_note_rounds(const cli_update *u, planc_status failed) {
  bool may = false;
  for (int32_t j = 0; j < u->plan->n_jobs; j++) may |= may_have_smaller_rounds(u, j);
  if (planc_status_code(failed) != PLANC_INFEASIBLE || u->bases || !may) return;
  bool chooses = u->is_mix || (u->policy->supports & (PLANC_POLICY_ROUNDS | PLANC_POLICY_CHOOSES));
  cli_note("rounds stay those of the plan: with --profile or --device, which tell of other batches, %sless may do",
           chooses ? "" : "and a smaller --sub-batch ");
}
