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

/* The mix with another budget. `jobs` has room for its jobs. */
static planc_mix with_budget(const planc_mix *mix, int64_t bytes, planc_problem *jobs) {
  planc_mix other = *mix;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    jobs[j] = mix->jobs[j];
    jobs[j].budget_bytes = bytes;
  }
  other.jobs = jobs;
  return other;
}

static bool same_iterations(const planc_mix *mix, const planc_mix_share *a, const planc_mix_share *b) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (a[j].iterations != b[j].iterations) return false;
  return true;
}

/* How often each job runs follows from what it takes alone, and that from the budget: the least one is that of a mix
 * which has these iterations there. *out_settled is false where no such one was found. */
static planc_status find_least(const mix_misfit *m, planc_least *out, bool *out_settled) {
  enum { TRIES = 3 };
  planc_mix_share shares[PLANC_MIX_MOST_JOBS] = {{0}}, there[PLANC_MIX_MOST_JOBS] = {{0}};
  planc_problem jobs[PLANC_MIX_MOST_JOBS];
  planc_mix at = with_budget(m->mix, ROOMY, jobs);
  *out_settled = false;
  PLANC_TRY(planc_mix_resolve(&at, shares));
  for (int32_t k = 0;; k++) {
    PLANC_TRY(planc_mix_find_least(m->mix, m->policy, shares, k == 0 ? m->status : NULL, out));
    at = with_budget(m->mix, out->bytes, jobs);
    planc_status status = planc_mix_resolve(&at, there);
    *out_settled = !status && same_iterations(m->mix, shares, there);
    if (status || *out_settled || k + 1 == TRIES) return status;
    planc_plan_free(out->plan);
    for (int32_t j = 0; j < m->mix->n_jobs; j++) shares[j] = there[j];
  }
}

static planc_status explain_all(const mix_misfit *m) {
  planc_least least = {0};
  bool settled;
  char text[PL_SIZE_TEXT];
  planc_status status = find_least(m, &least, &settled);
  if (!status) {
    cli_note("the least feasible budget of all jobs with policy %s is %lld bytes (%s)%s; there:", m->policy->name,
             (long long)least.bytes, pl_size_format(least.bytes, text),
             least.is_least && settled ? "" : ", as far as a few plans can tell");
    status = cli_print_peak(least.plan, PLANC_MEMORY_DEVICE, stderr);
  }
  planc_plan_free(least.plan);
  return status;
}

/* Whether an earlier job is the same. */
static bool is_told(const planc_mix *mix, int32_t job) {
  for (int32_t j = 0; j < job; j++)
    if (mix->jobs[j].graph == mix->jobs[job].graph && mix->jobs[j].batch == mix->jobs[job].batch) return true;
  return false;
}

planc_status cli_explain_mix(const planc_mix *mix, const planc_mix_policy *policy, planc_status status) {
  char text[PL_SIZE_TEXT];
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  mix_misfit m = {.mix = mix, .policy = policy, .status = status};
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (!is_told(mix, j)) planc_status_free(explain_job(&m, j)); /* what cannot be told is left out */
  planc_status_free(explain_all(&m));
  planc_memory_kind memory = planc_status_shortage(status).memory;
  int64_t budget = memory == PLANC_MEMORY_HOST ? mix->jobs[0].host_budget_bytes : mix->jobs[0].budget_bytes;
  return planc_context(status, "does not fit a %s of %s", cli_budget_name(memory), pl_size_format(budget, text));
}
