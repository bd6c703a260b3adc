/* What is asked of a mix (mix_check.h). */
#include "planner/colocate/jobs/mix_check.h"

#include <string.h>

#include "plan/job_name.h"
#include "planner/base/asked.h"
#include "planner/colocate/jobs/deadlines.h"
#include "planner/colocate/jobs/in_job.h"
#include "planner/colocate/jobs/least_shares.h"

static planc_status check_streams(const planc_mix *mix);
static planc_status check_job(const planc_mix *mix, int32_t job);
static planc_status check_name(const planc_mix *mix, int32_t job);

planc_status pl_mix_check(const planc_mix *mix) {
  if (mix->n_jobs < 1 || mix->n_jobs > PLANC_MIX_MAX_JOBS)
    return planc_error(PLANC_USAGE, "%d jobs: a mix has from 1 to %d", mix->n_jobs, (int)PLANC_MIX_MAX_JOBS);
  if (mix->max_ratio < 0 || mix->max_ratio > PLANC_MIX_MAX_ITERATIONS)
    return planc_error(PLANC_USAGE, "at most %d iterations in a period: from 1 to %d", mix->max_ratio,
                       (int)PLANC_MIX_MAX_ITERATIONS);
  PLANC_TRY(pl_check_terms(&mix->terms));
  if (mix->terms.gpus > 1)
    return planc_error(PLANC_USAGE, "a mix shares one GPU, and %d are asked for", mix->terms.gpus);
  if (mix->terms.budgets[PLANC_MEMORY_STORAGE] != 0)
    return planc_error(PLANC_USAGE, "a mix takes no storage, and %lld bytes of it are there",
                       (long long)mix->terms.budgets[PLANC_MEMORY_STORAGE]);
  PLANC_TRY(check_streams(mix));
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    PLANC_TRY(pl_in_job(mix, j, check_job(mix, j)));
    if (mix->names) PLANC_TRY(pl_in_job(mix, j, check_name(mix, j)));
    if (pl_deadline_of(mix, j) < 0)
      return pl_in_job(mix, j, planc_error(PLANC_USAGE, "a deadline of %lld ns", (long long)pl_deadline_of(mix, j)));
    if (pl_least_share_of(mix, j) < 0)
      return pl_in_job(mix, j,
                       planc_error(PLANC_USAGE, "a least share of %lld ppm", (long long)pl_least_share_of(mix, j)));
    if (planc_mix_weight(mix, j) < 1 || planc_mix_weight(mix, j) > PLANC_MIX_MAX_WEIGHT)
      return pl_in_job(mix, j,
                       planc_error(PLANC_USAGE, "a weight of %d: from 1 to %d", planc_mix_weight(mix, j),
                                   (int)PLANC_MIX_MAX_WEIGHT));
  }
  return NULL;
}

/* Rounds side by side are those that accumulate gradients. */
static planc_status check_rounds(const planc_workload *job) {
  int32_t n = job->side_by_side;
  if (n == 0 || n == 1) return NULL;
  if (n < 0 || n > PLANC_MIX_MAX_ROUNDS)
    return planc_error(PLANC_USAGE, "%d rounds side by side: from 1 to %d", n, (int)PLANC_MIX_MAX_ROUNDS);
  if (!planc_graph_has_backward(job->graph))
    return planc_error(PLANC_USAGE, "it is for inference: there are no gradients for rounds to accumulate");
  if (job->batch % n == 0 && job->sub_batch == job->batch / n) return NULL;
  return planc_error(PLANC_USAGE, "a batch of %lld is not %d rounds of equal size: choose a number that divides it",
                     (long long)job->batch, n);
}

static planc_status check_job(const planc_mix *mix, int32_t job) {
  const planc_device *first = planc_mix_device(mix);
  const planc_device *own = planc_profile_device(mix->jobs[job].profile);
  if (strcmp(own->name, first->name) != 0 || own->memory_bytes != first->memory_bytes)
    return planc_error(PLANC_USAGE, "it is for device %s, and job 0 for %s: jobs that share a GPU have one device",
                       own->name, first->name);
  PLANC_TRY(check_rounds(&mix->jobs[job]));
  PLANC_TRY(pl_check_job(&mix->jobs[job]));
  if (mix->iterations[job] >= 0 && mix->iterations[job] <= PLANC_MIX_MAX_ITERATIONS) return NULL;
  return planc_error(PLANC_USAGE, "%d iterations in a period: from 1 to %d, or 0 for planc to choose",
                     mix->iterations[job], (int)PLANC_MIX_MAX_ITERATIONS);
}

static planc_status check_streams(const planc_mix *mix) {
  int64_t n = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    int32_t rounds = mix->jobs[j].side_by_side;
    n += PLANC_N_STREAMS + (rounds > 1 ? rounds - 1 : 0);
  }
  if (n <= PLANC_PLAN_MAX_STREAMS) return NULL;
  return planc_error(PLANC_USAGE, "with so many rounds side by side the jobs have %lld streams, and a plan at most %d",
                     (long long)n, PLANC_PLAN_MAX_STREAMS);
}

static planc_status check_name(const planc_mix *mix, int32_t job) {
  const char *name = mix->names[job], *fault = name ? pl_job_name_fault(name) : NULL;
  if (fault) return planc_error(PLANC_USAGE, "its name %s", fault);
  for (int32_t j = 0; j < job && name; j++)
    if (mix->names[j] && strcmp(mix->names[j], name) == 0)
      return planc_error(PLANC_USAGE, "job %d is called %s already", j, name);
  return NULL;
}
