/* What is said where there is no plan for a mix: the least budget of each job alone, and of all of them together. */
#include "cli/cli.h"

typedef struct mix_misfit {
  const planc_mix *mix;
  const planc_mix_policy *policy;
  planc_status status;      /* borrowed */
  planc_memory_kind memory; /* whose budget is too small */
  bool any_host;            /* the mix has no limit of the host, in place of the one that was asked for */
} mix_misfit;

enum { ROUNDS_TEXT = 48 };

static void find_lacking(planc_mix *any_host, const planc_mix_policy *policy, planc_status *status,
                         planc_memory_kind *out_memory);
static planc_status explain_job(const mix_misfit *m, int32_t job);
static planc_status explain_all(const mix_misfit *m);

planc_status cli_explain_mix(const planc_mix *mix, const planc_mix_policy *policy, planc_status status) {
  char text[PL_SIZE_TEXT];
  planc_mix any_host = *mix;
  planc_memory_kind memory;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  find_lacking(&any_host, policy, &status, &memory);
  mix_misfit m = {.mix = mix, .policy = policy, .status = status, .memory = memory};
  m.any_host = memory == PLANC_MEMORY_DEVICE && mix->terms.budgets[PLANC_MEMORY_HOST] >= 0;
  if (m.any_host) m.mix = &any_host;
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (planc_mix_first_same(mix, j) == j) planc_status_free(explain_job(&m, j)); /* what cannot be told is left out */
  planc_status_free(explain_all(&m));
  int64_t budget = mix->terms.budgets[memory];
  return planc_context(status, "does not fit a %s of %s", cli_budget_name(memory), pl_size_format(budget, text));
}

/* Which memory's budget is too small: the device's where a host without limit, which *any_host then has, does not
 * help. *status is then of that. */
static void find_lacking(planc_mix *any_host, const planc_mix_policy *policy, planc_status *status,
                         planc_memory_kind *out_memory) {
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
  planc_plan *plan = NULL;
  *out_memory = planc_status_shortage(*status).memory;
  if (any_host->terms.budgets[PLANC_MEMORY_HOST] < 0) return;
  any_host->terms.budgets[PLANC_MEMORY_HOST] = -1;
  planc_status without = planc_mix_resolve(any_host, shares);
  if (!without) without = planc_colocate(any_host, policy, shares, &plan);
  planc_plan_free(plan);
  bool helps = planc_status_code(without) != PLANC_INFEASIBLE;
  *out_memory = helps ? PLANC_MEMORY_HOST : PLANC_MEMORY_DEVICE;
  planc_status_free(helps ? without : *status);
  if (!helps) *status = without;
}

static const char *of_any_host(const mix_misfit *m) {
  return m->any_host ? ", with a host without limit" : "";
}

static planc_status explain_job(const mix_misfit *m, int32_t job) {
  planc_least least;
  char text[PL_SIZE_TEXT], rounds[ROUNDS_TEXT] = "";
  const planc_problem problem = planc_mix_problem(m->mix, job);
  const planc_policy *best = planc_policy_find("best");
  PLANC_TRY(m->memory == PLANC_MEMORY_DEVICE ? planc_find_least_device(&problem, best, NULL, &least)
                                             : planc_find_least(&problem, best, m->memory, NULL, &least));
  if (problem.job.sub_batch > 0)
    snprintf(rounds, sizeof rounds, " in rounds of %lld", (long long)problem.job.sub_batch);
  cli_note("the least feasible %s of job %d (%s) alone, planned as for a mix, is %lld bytes (%s), with policy %s%s%s%s",
           cli_budget_name(m->memory), job, planc_mix_job_name(m->mix, job), (long long)least.bytes,
           pl_size_format(least.bytes, text), least.plan->policy, rounds, of_any_host(m),
           least.is_least ? "" : ", as far as a few plans can tell");
  planc_plan_free(least.plan);
  return NULL;
}

static planc_status explain_all(const mix_misfit *m) {
  planc_least least;
  char text[PL_SIZE_TEXT];
  planc_status status = planc_mix_find_least(m->mix, m->policy, NULL, m->memory, m->status, &least);
  if (!status) {
    cli_note("the least feasible %s of all jobs with policy %s is %lld bytes (%s)%s%s%s; there:",
             cli_budget_name(m->memory), m->policy->name, (long long)least.bytes, pl_size_format(least.bytes, text),
             of_any_host(m), least.is_least ? "" : ", as far as a few plans can tell",
             planc_mix_has_deadlines(m->mix) ? ", whether or not requests are in time" : "");
    status = cli_print_peak(least.plan, m->memory, stderr);
  }
  planc_plan_free(least.plan);
  return status;
}
