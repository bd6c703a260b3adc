/* From a problem to a plan: policy, lowering, simulation, budget. */
#include "planc/policy.h"
#include "planc/simulate.h"
#include "planner/code.h"
#include "planner/policies.h"
#include "planner/replicas.h"
#include "util/math.h"

planc_status planc_ideal_time(const planc_profile *profile, const planc_graph *graph, int64_t batch, int64_t *out_ns) {
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(profile, graph, 1, &batch, &costs));
  int64_t sum = 0;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, o, 0, &count);
    sum = planc_add_saturate(sum, variants[planc_variant_fastest(variants, count, INT64_MAX)].time_ns);
  }
  planc_costs_free(costs);
  *out_ns = sum;
  return NULL;
}

static planc_status predict(const planc_problem *problem, planc_plan *plan) {
  planc_simulation simulation;
  PLANC_TRY(planc_simulate(plan, NULL, NULL, &simulation));
  plan->predicted = planc_simulation_predictions(plan, &simulation);
  return planc_ideal_time(problem->profile, problem->graph, problem->batch, &plan->predicted.ideal_ns);
}

planc_status planc_hold_to_budgets(const planc_problem *problem, const planc_plan *plan) {
  if (plan->predicted.peak_bytes > problem->budget_bytes) {
    return planc_error(PLANC_INFEASIBLE, "policy %s makes a plan of %lld bytes", plan->policy,
                       (long long)plan->predicted.peak_bytes);
  }
  if (problem->host_budget_bytes >= 0 && plan->host_arena_bytes > problem->host_budget_bytes) {
    return planc_error(PLANC_INFEASIBLE, "policy %s needs %lld bytes of host memory, the host budget is %lld",
                       plan->policy, (long long)plan->host_arena_bytes, (long long)problem->host_budget_bytes);
  }
  return NULL;
}

static planc_status check_placement(const planc_problem *problem, const planc_policy *policy) {
  if (problem->placement == PLANC_PLACEMENT_BEST_FIT || (policy->supports & PLANC_POLICY_SIMULATED)) return NULL;
  if (!(policy->supports & PLANC_POLICY_VMM)) {
    return planc_error(PLANC_USAGE, "policy %s does not place in virtual memory", policy->name);
  }
  if (problem->chunk_bytes >= 0 && problem->chunk_bytes % PLANC_ALIGNMENT == 0) return NULL;
  return planc_error(PLANC_USAGE, "chunks of %lld bytes: they must be multiples of %d", (long long)problem->chunk_bytes,
                     PLANC_ALIGNMENT);
}

static planc_status check_gpus(const planc_problem *problem) {
  enum { MOST = PLANC_PLAN_MAX_STREAMS / PLANC_N_STREAMS };
  if (problem->gpus <= MOST) return NULL;
  return planc_error(PLANC_USAGE, "%d GPUs: a plan has streams for at most %d", problem->gpus, (int)MOST);
}

static planc_status make(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  planc_candidate candidate = {0};
  planc_plan *plan = NULL;
  planc_status status = policy->make(problem, &candidate);
  if (!status) status = planc_replicate(&candidate);
  if (!status) status = planc_lower(problem, policy, &candidate, &plan);
  planc_candidate_free(&candidate);
  if (!status) status = predict(problem, plan);
  if (status) {
    planc_plan_free(plan);
    return status;
  }
  *out = plan;
  return NULL;
}

typedef struct best {
  const planc_policy *policy;
  planc_plan *plan; /* NULL: none fits yet */
} best;

static planc_status make_better(void *user, const planc_problem *problem, int64_t *out_code) {
  best *b = user;
  planc_plan *plan;
  PLANC_TRY(make(problem, b->policy, &plan));
  *out_code = planc_code_of_plan(problem->profile, plan);
  bool simulated = b->policy->supports & PLANC_POLICY_SIMULATED;
  planc_status status = simulated ? NULL : planc_hold_to_budgets(problem, plan);
  if (status || (b->plan && !planc_predictions_better(&plan->predicted, &b->plan->predicted))) {
    planc_plan_free(plan);
    return status;
  }
  planc_plan_free(b->plan);
  b->plan = plan;
  return NULL;
}

planc_status planc_make_plan(const planc_problem *problem, const planc_policy *policy, planc_plan **out) {
  PLANC_TRY(check_placement(problem, policy));
  PLANC_TRY(check_gpus(problem));
  best b = {.policy = policy};
  planc_status status = planc_with_code(problem, make_better, &b);
  if (status) {
    planc_plan_free(b.plan);
    return status;
  }
  *out = b.plan;
  return NULL;
}

planc_status planc_candidate_peak(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_bytes) {
  planc_plan *plan;
  PLANC_TRY(planc_lower(problem, planc_policies(), candidate, &plan));
  *out_bytes = planc_add_saturate(plan->arena_bytes, plan->device.reserved_bytes);
  planc_plan_free(plan);
  return NULL;
}

planc_status planc_candidate_time(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_ns) {
  planc_plan *plan;
  planc_simulation simulation = {0};
  PLANC_TRY(planc_lower(problem, planc_policies(), candidate, &plan));
  planc_status status = planc_simulate(plan, NULL, NULL, &simulation);
  planc_plan_free(plan);
  *out_ns = simulation.iteration_ns;
  return status;
}

/* Whether there is a plan at `budget`, and its peak. */
static planc_status fits(const planc_problem *problem, const planc_policy *policy, int64_t budget, bool *out_fits,
                         int64_t *out_peak) {
  planc_problem at = *problem;
  at.budget_bytes = budget;
  planc_plan *plan = NULL;
  planc_status status = planc_make_plan(&at, policy, &plan);
  *out_fits = !status;
  if (!status) *out_peak = plan->predicted.peak_bytes;
  planc_plan_free(plan);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

/* Narrows (low, high], where `low` fails and `high` fits with a peak well below it: by the unit below that peak and,
 * if it fails, the peak itself. A policy whose plan does not follow the budget is settled by these two. */
static planc_status narrow(const planc_problem *problem, const planc_policy *policy, int64_t *peak, int64_t *low,
                           int64_t *high) {
  enum { WORTH_IT = 16 }; /* of the interval; less is left to bisection */
  bool fit = false;
  int64_t least = *low + planc_align_up(*peak - *low, PLANC_ALIGNMENT), below = least - PLANC_ALIGNMENT;
  if (below <= *low || *high - least < (*high - *low) / WORTH_IT) return NULL;
  PLANC_TRY(fits(problem, policy, below, &fit, peak));
  if (fit) {
    *high = below;
    return NULL;
  }
  *low = below;
  PLANC_TRY(fits(problem, policy, least, &fit, peak));
  if (fit) *high = least;
  return NULL;
}

planc_status planc_least_budget(const planc_problem *problem, const planc_policy *policy, int64_t *out_bytes) {
  /* All budgets tried are whole units above what is reserved. */
  int64_t low = planc_profile_device(problem->profile)->reserved_bytes, step = PLANC_ALIGNMENT;
  int64_t high = low, peak = 0;
  bool fit = false;
  while (!fit) {
    if (step > INT64_MAX / 4 || planc_add_overflow(high, step, &high)) {
      return planc_error(PLANC_INFEASIBLE, "policy %s fits no budget", policy->name);
    }
    low = high - step;
    PLANC_TRY(fits(problem, policy, high, &fit, &peak));
    step *= 2;
  }
  for (;;) {
    if (fit) PLANC_TRY(narrow(problem, policy, &peak, &low, &high));
    if (high - low <= PLANC_ALIGNMENT) break;
    int64_t middle = low + (high - low) / 2 / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
    PLANC_TRY(fits(problem, policy, middle, &fit, &peak));
    if (fit) {
      high = middle;
    } else {
      low = middle;
    }
  }
  *out_bytes = high;
  return NULL;
}
