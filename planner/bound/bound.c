/* A lower bound on what plans take (planc/bound.h): prices for memory and links (bound_value.h) are looked for, and
 * what they come to is the bound. */
#include "planc/bound.h"

#include "graph/op_place.h"
#include "plan/one_job.h"
#include "planner/base/asked.h"
#include "planner/base/code.h"
#include "planner/bound/bound_certify.h"
#include "planner/choose/sub_batch.h"

static planc_status find(const planc_problem *problem, const planc_candidate *candidate, int32_t effort,
                         pl_arena *arena, planc_bound *out);
static planc_status take_order(const planc_plan *plan, pl_arena *arena, planc_candidate *candidate);
static planc_status find_time(const planc_problem *problem, const pl_bound_model *model, int32_t effort,
                              pl_arena *arena, planc_bound *out);
static planc_status refuse(const planc_problem *problem, const planc_bound *bound);

planc_status planc_bound_make(const planc_problem *problem, int32_t effort, planc_bound *out) {
  planc_candidate candidate = {0};
  pl_arena arena = {0};
  *out = (planc_bound){.binds = ""};
  PLANC_TRY(pl_check_terms(&problem->terms));
  PLANC_TRY(pl_check_job(&problem->job));
  planc_status status = planc_candidate_rounds(problem, pl_sub_batch_asked(problem), &candidate);
  if (!status) status = find(problem, &candidate, effort, &arena, out);
  pl_arena_free(&arena);
  planc_candidate_free(&candidate);
  return status;
}

planc_status planc_bound_of_plan(const planc_problem *problem, int32_t effort, const planc_plan *plan,
                                 planc_bound *out) {
  planc_problem in_its_rounds = *problem;
  planc_candidate candidate = {0};
  pl_arena arena = {0};
  *out = (planc_bound){.binds = ""};
  in_its_rounds.job.sub_batch = pl_plan_job(plan)->rounds[0];
  planc_status status = planc_candidate_rounds(&in_its_rounds, in_its_rounds.job.sub_batch, &candidate);
  if (!status) status = take_order(plan, &arena, &candidate);
  if (!status) status = find(&in_its_rounds, &candidate, effort, &arena, out);
  pl_arena_free(&arena);
  planc_candidate_free(&candidate);
  return status;
}

planc_status planc_bound_plan(const planc_problem *problem, int32_t effort, planc_plan *plan) {
  planc_bound bound;
  planc_status status = planc_bound_of_plan(problem, effort, plan, &bound);
  if (planc_status_code(status) == PLANC_BAD_INPUT) {
    planc_status_free(status);
    return NULL;
  }
  if (!status) plan->predicted.bound_ns = pl_max(plan->predicted.bound_ns, bound.time_ns);
  return status;
}

/* That in which the plan runs its instances for the first time. */
static planc_status take_order(const planc_plan *plan, pl_arena *arena, planc_candidate *candidate) {
  int32_t *numbers, n = 0;
  PLANC_TRY(PL_NEW(arena, &numbers, candidate->trace->n_instances));
  for (int32_t i = 0; i < plan->body.n && n < candidate->trace->n_instances; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_exec && !plan->body.instrs[i].recompute)
      numbers[n++] = plan->body.instrs[i].id;
  planc_order_free(candidate->order);
  candidate->order = NULL;
  return planc_order_of_instances(candidate->trace, numbers, &candidate->order);
}

static planc_status find(const planc_problem *problem, const planc_candidate *candidate, int32_t effort,
                         pl_arena *arena, planc_bound *out) {
  pl_bound_model model;
  int32_t position;
  const planc_settings asked = planc_settings_asked(problem);
  PLANC_TRY(pl_bound_model_make(candidate, &asked, problem->terms.budgets[PLANC_MEMORY_STORAGE] > 0, arena, &model));
  out->sub_batch = candidate->sub_batch;
  out->n_rounds = candidate->trace->jobs[0].n_rounds;
  out->least_bytes =
      pl_add_saturate(pl_bound_least_bytes(&model, &position), pl_reserved(&problem->terms, problem->job.profile));
  if (position >= 0) out->binds = problem->job.graph->ops[planc_order_instance(candidate->order, position)->op].name;
  return find_time(problem, &model, effort, arena, out);
}

/* How many values are looked at for a model: fewer for a larger one, but some. */
static int64_t values_for(const pl_bound_model *model, int32_t effort) {
  enum { WORK = 400000, MOST = 40, LEAST = 40, MORE = 4 };
  int64_t times = 1;
  for (int32_t k = 0; k < effort; k++) times *= MORE;
  return pl_clamp(times * WORK / (model->n + model->n_gaps + 1), LEAST, times * MOST);
}

static planc_status find_time(const planc_problem *problem, const pl_bound_model *model, int32_t effort,
                              pl_arena *arena, planc_bound *out) {
  pl_bound_prices prices;
  pl_bound_found found;
  int64_t budget = problem->terms.budgets[PLANC_MEMORY_DEVICE];
  int64_t room = budget - pl_reserved(&problem->terms, problem->job.profile);
  bool fits = budget >= out->least_bytes;
  PLANC_TRY(pl_bound_certify(model, room, fits ? values_for(model, effort) : 1, arena, &prices, &found, NULL));
  out->ideal_ns = found.ideal_ns;
  out->values = found.values;
  if (!fits) return refuse(problem, out);
  out->time_ns = found.ns;
  out->gib_ns = found.gib_ns;
  return NULL;
}

static planc_status refuse(const planc_problem *problem, const planc_bound *bound) {
  planc_shortage shortage = {PLANC_MEMORY_DEVICE, bound->least_bytes};
  char place[PL_PLACE_TEXT];
  return planc_infeasible(shortage,
                          "no plan in rounds of %lld needs less than %lld bytes of device memory, which op %s%s "
                          "takes; the budget is %lld",
                          (long long)bound->sub_batch, (long long)bound->least_bytes, bound->binds,
                          pl_op_place_by_name(problem->job.graph, bound->binds, place),
                          (long long)problem->terms.budgets[PLANC_MEMORY_DEVICE]);
}
