/* What may be asked (asked.h). */
#include "planner/base/asked.h"

#include "planc/trace.h"
#include "util/math.h"

static planc_status check_budgets(const planc_terms *terms);
static planc_status check_chunks(const planc_terms *terms);

planc_status pl_check_terms(const planc_terms *terms) {
  if (terms->gpus > PLANC_PLAN_MAX_REPLICAS)
    return planc_error(PLANC_USAGE, "%d GPUs: a plan is for at most %d", terms->gpus, (int)PLANC_PLAN_MAX_REPLICAS);
  PLANC_TRY(check_budgets(terms));
  PLANC_TRY(check_chunks(terms));
  return planc_settings_check(&terms->settings);
}

planc_status pl_check_job(const planc_workload *job) {
  planc_settings own = {0};
  if (job->batch < 1 || job->batch > PL_EXACT_MAX)
    return planc_error(PLANC_USAGE, "a batch of %lld: from 1 to 2^53", (long long)job->batch);
  if (job->priority < 0 || job->priority > PLANC_MAX_PRIORITY)
    return planc_error(PLANC_USAGE, "a priority of %d: from 0 to %d", job->priority, (int)PLANC_MAX_PRIORITY);
#define X(name, ...) own.name = job->name;
  PLANC_EACH_SETTINGS(X)
#undef X
  return planc_settings_check(&own);
}

static planc_status check_budgets(const planc_terms *terms) {
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    if (terms->budgets[m] < -1 || terms->budgets[m] > PL_EXACT_MAX)
      return planc_error(PLANC_USAGE, "a budget of %lld bytes: from 0 to 2^53, or -1 for none",
                         (long long)terms->budgets[m]);
  return NULL;
}

static planc_status check_chunks(const planc_terms *terms) {
  if (terms->placement == PLANC_PLACEMENT_BEST_FIT) return NULL;
  if (terms->chunk_bytes >= 0 && terms->chunk_bytes % PLANC_ALIGNMENT == 0) return NULL;
  return planc_error(PLANC_USAGE, "chunks of %lld bytes: they must be multiples of %d", (long long)terms->chunk_bytes,
                     PLANC_ALIGNMENT);
}
