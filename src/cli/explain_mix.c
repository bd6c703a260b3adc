/* What is said where there is no plan for a mix: the least budget of each job alone, and of all of them together. */
#include "cli/cli.h"

#define ROOMY (INT64_C(1) << 52) /* a budget that is no matter, and that a plan can state */

typedef struct mix_misfit {
  const planc_mix *mix;
  const planc_mix_policy *policy;
  planc_status status; /* borrowed */
} mix_misfit;

static planc_status explain_job(const mix_misfit *m, int32_t job) {
  planc_least least;
  char text[PL_SIZE_TEXT];
  PLANC_TRY(planc_find_least_device(&m->mix->jobs[job], planc_policy_find("best"), NULL, &least));
  cli_note("the least feasible budget of job %d (%s) alone is %lld bytes (%s), with policy %s%s", job,
           m->mix->jobs[job].graph->name, (long long)least.bytes, pl_size_format(least.bytes, text), least.plan->policy,
           least.is_least ? "" : ", as far as a few plans can tell");
  planc_plan_free(least.plan);
  return NULL;
}

/* How often each job runs is told from what it takes where memory is no matter: it may not fit alone. */
static planc_status find_shares(const planc_mix *mix, planc_mix_share *shares) {
  planc_problem jobs[PLANC_MIX_MOST_JOBS];
  planc_mix roomy = *mix;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    jobs[j] = mix->jobs[j];
    jobs[j].budget_bytes = ROOMY;
  }
  roomy.jobs = jobs;
  return planc_mix_resolve(&roomy, shares);
}

static planc_status explain_all(const mix_misfit *m) {
  planc_mix_share shares[PLANC_MIX_MOST_JOBS] = {{0}};
  planc_least least;
  char text[PL_SIZE_TEXT];
  PLANC_TRY(find_shares(m->mix, shares));
  PLANC_TRY(planc_mix_find_least(m->mix, m->policy, shares, m->status, &least));
  cli_note("the least feasible budget of all jobs with policy %s is %lld bytes (%s)%s; there:", m->policy->name,
           (long long)least.bytes, pl_size_format(least.bytes, text),
           least.is_least ? "" : ", as far as a few plans can tell");
  planc_status status = cli_print_peak(least.plan, PLANC_MEMORY_DEVICE, stderr);
  planc_plan_free(least.plan);
  return status;
}

planc_status cli_explain_mix(const planc_mix *mix, const planc_mix_policy *policy, planc_status status) {
  char text[PL_SIZE_TEXT];
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  mix_misfit m = {.mix = mix, .policy = policy, .status = status};
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    bool same = j > 0 && mix->jobs[j].graph == mix->jobs[j - 1].graph && mix->jobs[j].batch == mix->jobs[j - 1].batch;
    if (!same) planc_status_free(explain_job(&m, j)); /* what cannot be told is left out */
  }
  planc_status_free(explain_all(&m));
  planc_memory_kind memory = planc_status_shortage(status).memory;
  int64_t budget = memory == PLANC_MEMORY_HOST ? mix->jobs[0].host_budget_bytes : mix->jobs[0].budget_bytes;
  return planc_context(status, "does not fit a %s of %s", cli_budget_name(memory), pl_size_format(budget, text));
}
