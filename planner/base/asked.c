/* What may be asked (asked.h). */
#include "planner/base/asked.h"

#include "planc/trace.h"
#include "util/math.h"

static planc_status check_budgets(const planc_terms *terms);
static planc_status check_placement(const planc_terms *terms);

planc_status pl_check_terms(const planc_terms *terms) {
  if (terms->gpus < 0 || terms->gpus > PLANC_PLAN_MAX_REPLICAS)
    return planc_error(PLANC_USAGE, "%d GPUs: a plan is for at most %d", terms->gpus, (int)PLANC_PLAN_MAX_REPLICAS);
  PLANC_TRY(check_budgets(terms));
  if (terms->code_bytes < 0 || terms->code_bytes > PL_EXACT_MAX)
    return planc_error(PLANC_USAGE, "code of %lld bytes: from 0 to 2^53", (long long)terms->code_bytes);
  if (terms->beat_ns < 0)
    return planc_error(PLANC_USAGE, "a period to beat of %lld ns: from 1, or 0 for none", (long long)terms->beat_ns);
  PLANC_TRY(check_placement(terms));
  return planc_settings_check(&terms->settings);
}

planc_status pl_check_job(const planc_workload *job) {
  planc_settings own = {0};
  if (job->batch < 1 || job->batch > PL_EXACT_MAX)
    return planc_error(PLANC_USAGE, "a batch of %lld: from 1 to 2^53", (long long)job->batch);
  if (job->sub_batch < 0)
    return planc_error(PLANC_USAGE, "a sub-batch of %lld: from 1, or 0 for the policy to choose",
                       (long long)job->sub_batch);
  if (job->link_ppm < 0 || job->link_ppm > PL_EXACT_MAX)
    return planc_error(PLANC_USAGE, "%lld parts per million of a link: from 1, or 0 for all of it",
                       (long long)job->link_ppm);
  if (job->priority < 0 || job->priority > PLANC_MAX_PRIORITY)
    return planc_error(PLANC_USAGE, "a priority of %d: from 0 to %d", job->priority, (int)PLANC_MAX_PRIORITY);
#define X(name, ...) own.name = job->name;
  PLANC_EACH_SETTINGS(X)
#undef X
  return planc_settings_check(&own);
}

static planc_status check_budgets(const planc_terms *terms) {
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++) {
    int64_t least = m == PLANC_MEMORY_DEVICE ? 0 : -1;
    if (terms->budgets[m] < least || terms->budgets[m] > PL_EXACT_MAX)
      return planc_error(PLANC_USAGE, "a budget of %lld bytes: from 0 to 2^53%s", (long long)terms->budgets[m],
                         least < 0 ? ", or -1 for none" : "");
  }
  return NULL;
}

static planc_status check_placement(const planc_terms *terms) {
  if (terms->placement == PLANC_PLACEMENT_BEST_FIT) return NULL;
  if (terms->placement != PLANC_PLACEMENT_PAGED && terms->placement != PLANC_PLACEMENT_VMM)
    return planc_error(PLANC_USAGE, "placement %d: there is none of that number", (int)terms->placement);
  if (terms->chunk_bytes >= 0 && terms->chunk_bytes % PLANC_ALIGNMENT == 0) return NULL;
  return planc_error(PLANC_USAGE, "chunks of %lld bytes: they must be multiples of %d", (long long)terms->chunk_bytes,
                     PLANC_ALIGNMENT);
}
