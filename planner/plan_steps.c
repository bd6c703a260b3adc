/* Steps of making a plan (plan_steps.h). */
#include "planner/plan_steps.h"

#include <stdio.h>
#include <string.h>

#include "plan/owned.h"
#include "planc/simulate.h"
#include "planner/lower/occupants.h"
#include "planner/shortage.h"

static planc_status tell(const planc_candidate *candidate, planc_plan *plan);
static planc_status too_much(const planc_plan *plan, planc_memory_kind memory, int64_t budget);

planc_status pl_plan_of(const planc_target *target, const char *policy, const planc_candidate *candidate,
                        planc_plan **out) {
  *out = NULL;
  planc_status status = planc_lower(target, policy, candidate, out);
  if (!status) status = tell(candidate, *out);
  if (!status) return NULL;
  planc_plan_free(*out);
  *out = NULL;
  return status;
}

static planc_status tell(const planc_candidate *candidate, planc_plan *plan) {
  plan->predicted.bound_ns = candidate->bound_ns;
  return candidate->explanation ? pl_explain_plan(plan, candidate->explanation) : NULL;
}

planc_status pl_explain_plan(planc_plan *plan, const char *text) {
  return pl_arena_strndup(&plan->owned->arena, text, strlen(text), &plan->explanation);
}

void pl_keep_better(planc_plan *plan, planc_plan **kept) {
  bool better = !*kept || planc_predictions_better(&plan->predicted, &(*kept)->predicted);
  planc_plan_free(better ? *kept : plan);
  if (better) *kept = plan;
}

/* --- Budgets ------------------------------------------------------------------------------------------------------ */

planc_status pl_hold_to_budgets(const planc_terms *terms, const planc_plan *plan) {
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++) {
    int64_t budget = terms->budgets[m];
    if (budget >= 0 && plan->predicted.peak_bytes[m] > budget) return too_much(plan, (planc_memory_kind)m, budget);
  }
  return NULL;
}

enum { POLICY_TEXT = 128 };

/* Says of a memory with a budget too small for the plan who has no place there. */
static planc_status too_much(const planc_plan *plan, planc_memory_kind memory, int64_t budget) {
  const planc_memory *of = planc_plan_memory(plan, memory);
  pl_shortage shortage = {.needs = {memory, plan->predicted.peak_bytes[memory]},
                          .budget = budget,
                          .beside = of->reserved_bytes,
                          .replicas = planc_plan_replicas(plan)};
  char *why, who[POLICY_TEXT];
  if (of->chunk_bytes > 0)
    snprintf(who, sizeof who, "policy %s, in its last attempt, in whole %s of %lld bytes, took", plan->policy,
             of->paged ? "pages" : "chunks", (long long)of->chunk_bytes);
  else
    snprintf(who, sizeof who, "policy %s, in its last attempt, took", plan->policy);
  PLANC_TRY(pl_plan_no_place(plan, memory, pl_shortage_room(&shortage), &why));
  return pl_shortage_status(&shortage, who, why);
}
