/* Turns instead (instead.h). */
#include "planner/colocate/instead.h"

#include "planner/base/if_fits.h"
#include "planner/colocate/mix_policies.h"

static planc_status are_better(const planc_evaluator *evaluator, const planc_candidate *turns, int64_t found_ns,
                               bool *out);
static planc_status take(planc_candidate *turns, planc_candidate *out);

planc_status pl_turns_instead(const planc_mix *mix, const planc_mix_share *shares, const planc_evaluator *evaluator,
                              const char *sought, int64_t found_ns, planc_candidate *out, bool *out_taken) {
  *out_taken = !out->trace;
  if (*out_taken) {
    PLANC_TRY(pl_mix_temporal(mix, shares, evaluator, out));
    return planc_candidate_explain(out, "the jobs take turns, for %s was found", sought);
  }
  bool fits;
  planc_candidate turns = {0};
  planc_status status = pl_mix_temporal(mix, shares, evaluator, &turns);
  if (!status) status = are_better(evaluator, &turns, found_ns, out_taken);
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
  int64_t ns, peak;
  PLANC_TRY(evaluator->peak(evaluator, turns, &peak));
  PLANC_TRY(evaluator->time(evaluator, turns, &ns));
  *out = peak <= evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE] && ns < found_ns;
  return NULL;
}
