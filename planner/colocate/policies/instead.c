/* Turns instead (instead.h). */
#include "planner/colocate/policies/instead.h"

#include "planner/base/if_fits.h"
#include "planner/colocate/policies/mix_policies.h"

static planc_status are_better(const planc_evaluator *evaluator, const planc_candidate *turns, int64_t found_ns,
                               bool *out);
static planc_status take(planc_candidate *turns, planc_candidate *out);

planc_status pl_turns_instead(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, const char *sought,
                              int64_t found_ns, planc_candidate *out, bool *out_taken) {
  *out_taken = !out->trace;
  if (*out_taken) {
    PLANC_TRY(pl_mix_temporal(evaluator, shares, out));
    return planc_candidate_explain(out, "the jobs take turns, for %s was found", sought);
  }
  bool fits;
  planc_candidate turns = {0};
  planc_status status = pl_mix_temporal(evaluator, shares, &turns);
  if (!status) status = are_better(&evaluator->all, &turns, found_ns, out_taken);
  if (!status && *out_taken) status = take(&turns, out);
  planc_candidate_free(&turns);
  return pl_if_fits(status, &fits);
}

static planc_status take(planc_candidate *turns, planc_candidate *out) {
  planc_candidate_free(out);
  *out = *turns;
  *turns = (planc_candidate){0};
  return planc_candidate_explain(out, "the jobs take turns, which is faster than what was found side by side");
}

static planc_status are_better(const planc_evaluator *evaluator, const planc_candidate *turns, int64_t found_ns,
                               bool *out) {
  planc_taken taken;
  PLANC_TRY(evaluator->simulate(evaluator, turns, NULL, NULL, &taken));
  *out = planc_is_within(evaluator->target.terms, taken.peak_bytes) && taken.period_ns < found_ns;
  return NULL;
}
