/* The plan of a mix after an update (planc/colocate.h), as that of one job is found (planc_replan). */
#include <string.h>

#include "planc/simulate.h"
#include "planner/colocate/jobs/deadlines.h"
#include "planner/colocate/jobs/least_shares.h"
#include "planner/colocate/jobs/mix_check.h"
#include "planner/colocate/mix_plan.h"
#include "planner/measured/replan.h"
#include "planner/memory/placement_cache.h"

typedef struct replanning {
  const planc_mix *mix;
  const planc_mix_policy *policy;
  const planc_plan *old;
  planc_replanned *out;
  planc_mix_share kept[PLANC_MIX_MAX_JOBS], made[PLANC_MIX_MAX_JOBS];
  planc_status why; /* the last one did not fit, or was late */
} replanning;

static planc_status choose(replanning *r);
static planc_status keep(replanning *r);
static planc_status make(replanning *r);

planc_status planc_mix_replan(const planc_mix *mix, const planc_mix_policy *policy, const planc_plan *old,
                              planc_mix_share *shares, planc_replanned *out) {
  *out = (planc_replanned){0};
  PLANC_TRY(pl_mix_check(mix));
  planc_mix at = *mix;
  replanning r = {.mix = &at, .policy = policy, .old = old, .out = out};
  planc_placement_cache *own = NULL;
  planc_status status = mix->terms.placement_cache ? NULL : pl_placement_cache_make(&own);
  if (own) at.terms.placement_cache = own;
  if (!status) status = choose(&r);
  pl_placement_cache_free(own);
  planc_status_free(r.why);
  if (status) planc_replanned_free(out);
  memcpy(shares, out->keeps ? r.kept : r.made, (size_t)mix->n_jobs * sizeof *shares);
  return status;
}

static planc_status choose(replanning *r) {
  bool resolves, has_kept = false, has_made = false;
  for (int32_t j = 0; j < r->mix->n_jobs; j++) r->made[j].iterations = r->mix->iterations[j];
  PLANC_TRY(pl_will_do(planc_mix_resolve(r->mix, r->made), &resolves, &r->why));
  for (int32_t j = 0; j < r->mix->n_jobs && !resolves; j++)
    r->made[j] = (planc_mix_share){.iterations = r->mix->iterations[j],
                                   .deadline_ns = pl_deadline_of(r->mix, j),
                                   .least_ppm = pl_least_share_of(r->mix, j)};
  memcpy(r->kept, r->made, sizeof r->kept);
  if (r->old) PLANC_TRY(pl_will_do(keep(r), &has_kept, &r->why));
  if (resolves) PLANC_TRY(pl_will_do(make(r), &has_made, &r->why));
  return pl_kept_or_made(has_kept, has_made, &r->why, r->out);
}

static planc_status keep(replanning *r) {
  const planc_profile *profiles[PLANC_MIX_MAX_JOBS];
  for (int32_t j = 0; j < r->mix->n_jobs; j++) profiles[j] = r->mix->jobs[j].profile;
  PLANC_TRY(pl_keep_decisions(&r->mix->terms, r->old, profiles, &r->out->kept));
  return pl_mix_judge(r->mix, &r->out->kept.plan, r->kept);
}

static planc_status make(replanning *r) {
  return planc_colocate(r->mix, r->policy, r->made, &r->out->made);
}
