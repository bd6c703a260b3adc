/* What is said where there is no plan: the least budget that would do, and what binds there. */
#include <string.h>

#include "cli/cli.h"
#include "plan/one_job.h"

/* A plan that does not fit, and why. */
typedef struct misfit {
  const planc_problem *problem;
  const planc_policy *policy;
  planc_status status;      /* of the problem; owned */
  planc_memory_kind memory; /* whose budget is too small */
} misfit;

const char *cli_budget_name(planc_memory_kind memory) {
  static const char *const names[PLANC_N_MEMORY_KINDS] = {
      [PLANC_MEMORY_DEVICE] = "budget", [PLANC_MEMORY_HOST] = "host budget", [PLANC_MEMORY_STORAGE] = "storage"};
  return names[memory];
}

static void note_rounds(const planc_problem *problem);
static planc_status explain(misfit *m);
static planc_status name_budget(const misfit *m);
static planc_status find_reason(misfit *m, const planc_least *least);
static planc_status print_least(const misfit *m, const planc_least *least);

planc_status cli_explain(const planc_problem *problem, const planc_policy *policy, planc_status status) {
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  misfit m = {.problem = problem, .policy = policy, .status = status};
  note_rounds(problem);
  planc_status_free(explain(&m)); /* what cannot be told is left out */
  return name_budget(&m);
}

/* Smaller rounds would need less memory, where the graph can run in them. */
static void note_rounds(const planc_problem *problem) {
  if (problem->job.sub_batch > 0 || problem->job.batch == 1) return;
  planc_status status = planc_check_rounds(problem->job.graph);
  if (planc_status_code(status) == PLANC_BAD_INPUT)
    cli_note("the batch cannot run in smaller rounds: %s", planc_status_message(status));
  planc_status_free(status);
}

static planc_status explain(misfit *m) {
  planc_least least;
  PLANC_TRY(planc_find_lacking(m->problem, m->policy, m->status, &m->memory, &least));
  planc_status status = find_reason(m, &least);
  if (!status) status = print_least(m, &least);
  planc_plan_free(least.plan);
  return status;
}

/* The device's least budget was looked for with a host without limit. */
static planc_status print_host(const misfit *m, const planc_least *least) {
  planc_problem at = *m->problem;
  int64_t bytes;
  char text[PL_SIZE_TEXT];
  at.terms.budgets[PLANC_MEMORY_DEVICE] = least->bytes;
  planc_status status = planc_find_host_beside(&at, m->policy, least->plan, &bytes);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    cli_note("it needs a larger host budget as well");
    return NULL;
  }
  PLANC_TRY(status);
  if (bytes != at.terms.budgets[PLANC_MEMORY_HOST])
    cli_note("it needs a host budget of %lld bytes (%s) as well", (long long)bytes, pl_size_format(bytes, text));
  return NULL;
}

/* Samples of the rounds that the plan's policy was asked for; 0 = it had the choice. A policy that chooses among others
 * asks those that take the batch at once for smaller rounds. */
static int64_t asked_rounds(const misfit *m, const planc_plan *plan) {
  bool splits = planc_policy_find(plan->policy)->supports & PLANC_POLICY_ROUNDS;
  if (m->problem->job.sub_batch > 0) return m->problem->job.sub_batch;
  const planc_job *job = pl_plan_job(plan);
  return splits || job->n_rounds == 1 ? 0 : job->rounds[0];
}

enum { ROUNDS_TEXT = 48 };

/* Says what the least budget is, what binds there and what is live. */
static planc_status print_least(const misfit *m, const planc_least *least) {
  char text[PL_SIZE_TEXT], rounds[ROUNDS_TEXT] = "";
  int64_t sub_batch = asked_rounds(m, least->plan);
  bool chosen = strcmp(m->policy->name, least->plan->policy) != 0;
  bool any_host = m->memory == PLANC_MEMORY_DEVICE && m->problem->terms.budgets[PLANC_MEMORY_HOST] >= 0;
  if (sub_batch > 0) snprintf(rounds, sizeof rounds, " in rounds of %lld", (long long)sub_batch);
  cli_note("the least feasible %s of %s is %lld bytes (%s)%s%s%s%s%s; there:", cli_budget_name(m->memory),
           m->policy->name, (long long)least->bytes, pl_size_format(least->bytes, text), chosen ? ", with policy " : "",
           chosen ? least->plan->policy : "", rounds, any_host ? ", with a host without limit" : "",
           least->is_least ? "" : ", as far as a few plans can tell");
  PLANC_TRY(cli_print_peak(least->plan, m->memory, stderr));
  return any_host ? print_host(m, least) : NULL;
}

/* Of a policy that chooses among others the reason is that of the one which is named with the least budget. */
static planc_status find_reason(misfit *m, const planc_least *least) {
  planc_plan *plan;
  if (!(m->policy->supports & PLANC_POLICY_CHOOSES)) return NULL;
  planc_problem at = *m->problem;
  at.job.sub_batch = asked_rounds(m, least->plan);
  planc_status status = planc_make_plan(&at, planc_policy_find(least->plan->policy), &plan);
  if (planc_status_code(status) != PLANC_INFEASIBLE) {
    if (!status) planc_plan_free(plan);
    return status;
  }
  planc_status_free(m->status);
  m->status = status;
  return NULL;
}

/* What a policy finds no room for on the host it keeps on the device. */
static planc_status stays(const planc_problem *problem, planc_status status) {
  char budget[PL_SIZE_TEXT], host[PL_SIZE_TEXT], storage[PL_SIZE_TEXT];
  pl_size_format(problem->terms.budgets[PLANC_MEMORY_DEVICE], budget);
  pl_size_format(problem->terms.budgets[PLANC_MEMORY_HOST], host);
  if (problem->terms.budgets[PLANC_MEMORY_STORAGE] == 0)
    return planc_context(status, "does not fit %s, as what has no room in a host budget of %s stays on the device",
                         budget, host);
  return planc_context(
      status, "does not fit %s, as what has no room in a host budget of %s and a storage of %s stays on the device",
      budget, host, pl_size_format(problem->terms.budgets[PLANC_MEMORY_STORAGE], storage));
}

static planc_status name_budget(const misfit *m) {
  char text[PL_SIZE_TEXT];
  pl_size_format(m->problem->terms.budgets[m->memory], text);
  if (m->memory == PLANC_MEMORY_DEVICE) return planc_context(m->status, "does not fit %s", text);
  if (m->memory == PLANC_MEMORY_HOST && planc_status_shortage(m->status).memory == PLANC_MEMORY_DEVICE)
    return stays(m->problem, m->status);
  return planc_context(m->status, "does not fit a %s of %s", cli_budget_name(m->memory), text);
}
