/* What a policy may ask of a candidate while it chooses: bounds by one pass over its commands, its peak by placing it,
 * its time by simulating its plan. */
#include "planner/evaluate.h"

#include <string.h>

#include "planc/simulate.h"
#include "planner/code.h"
#include "planner/lower/addresses.h"
#include "util/map.h"
#include "util/math.h"

/* --- Peak --------------------------------------------------------------------------------------------------------- */

/* What lowering charges the candidate's plan for: the code of each algorithm that it runs, once. */
static planc_status code_of(const planc_problem *problem, const planc_schedule *schedule, planc_map *seen,
                            int64_t *out_bytes) {
  const planc_command *commands = planc_schedule_commands(schedule);
  *out_bytes = 0;
  if (planc_profile_code_of_all(problem->profile) == 0) return NULL;
  for (int32_t c = 0; c < planc_schedule_n_commands(schedule); c++) {
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    const char *algorithm = planc_schedule_variant(schedule, &commands[c]).algorithm;
    if (planc_map_get(seen, algorithm, strlen(algorithm)) >= 0) continue;
    PLANC_TRY(planc_map_put(seen, algorithm, strlen(algorithm), 0));
    *out_bytes = planc_add_saturate(*out_bytes, planc_profile_code(problem->profile, algorithm));
  }
  return NULL;
}

static planc_status reserved_of(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_bytes) {
  planc_map seen = {0};
  planc_status status = code_of(problem, candidate->schedule, &seen, out_bytes);
  planc_map_free(&seen);
  *out_bytes = planc_add_saturate(*out_bytes, planc_profile_device(problem->profile)->reserved_bytes);
  return status;
}

/* What placing the candidate takes, of the device and, with what storage would take over, of the host. */
static planc_status place(const planc_candidate *candidate, int64_t *out_arena, int64_t *out_host) {
  planc_arena arena = {0};
  planc_addresses addresses = {0};
  planc_status status = planc_schedule_finish(candidate->schedule);
  if (!status) status = planc_assign_addresses(&arena, candidate->schedule, NULL, &addresses);
  *out_arena = addresses.arena_bytes;
  *out_host = planc_muldiv_ceil(addresses.away.host_bytes, planc_trace_replicas(candidate->trace), 1);
  planc_arena_free(&arena);
  return status;
}

static planc_status peak(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  int64_t reserved, arena, host;
  PLANC_TRY(reserved_of(evaluator->problem, candidate, &reserved));
  PLANC_TRY(place(candidate, &arena, &host));
  *out_bytes = planc_add_saturate(arena, reserved);
  return NULL;
}

static planc_status hold_host(const planc_problem *problem, const planc_candidate *candidate, int64_t bytes) {
  int64_t budget = planc_away_budget(problem);
  if (budget < 0 || bytes <= budget) return NULL;
  return planc_infeasible((planc_shortage){.memory = PLANC_MEMORY_HOST, .bytes = bytes},
                          "rounds of %lld need %lld bytes of host memory, the host budget is %lld",
                          (long long)candidate->sub_batch, (long long)bytes, (long long)budget);
}

static planc_status hold_to_host(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  int64_t arena, host;
  if (evaluator->problem->host_budget_bytes < 0) return NULL;
  PLANC_TRY(place(candidate, &arena, &host));
  return hold_host(evaluator->problem, candidate, host);
}

static planc_status hold(const planc_evaluator *evaluator, const planc_candidate *candidate) {
  const planc_problem *problem = evaluator->problem;
  int64_t reserved, arena, host;
  PLANC_TRY(reserved_of(problem, candidate, &reserved));
  PLANC_TRY(place(candidate, &arena, &host));
  int64_t bytes = planc_add_saturate(arena, reserved);
  if (bytes <= problem->budget_bytes) return hold_host(problem, candidate, host);
  return planc_infeasible((planc_shortage){.bytes = bytes}, "rounds of %lld need %lld bytes, the budget is %lld",
                          (long long)candidate->sub_batch, (long long)bytes, (long long)problem->budget_bytes);
}

/* --- Bounds ------------------------------------------------------------------------------------------------------- */

static int64_t size_of(const planc_schedule *schedule, int32_t residency) {
  int32_t buffer = planc_schedule_residencies(schedule)[residency].buffer;
  return planc_schedule_trace(schedule)->buffers[buffer].bytes;
}

static planc_status live(const planc_evaluator *evaluator, const planc_candidate *candidate, int64_t *out_bytes) {
  const planc_schedule *s = candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t open = 0, most, reserved;
  PLANC_TRY(reserved_of(evaluator->problem, candidate, &reserved));
  for (int32_t r = planc_schedule_n_parked(s); r < planc_schedule_n_boundary(s); r++)
    open = planc_add_saturate(open, size_of(s, r));
  most = open;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    int64_t workspace = 0;
    if (commands[c].kind == PLANC_CMD_ACQUIRE) open = planc_add_saturate(open, size_of(s, commands[c].residency));
    if (commands[c].kind == PLANC_CMD_RELEASE) open -= size_of(s, commands[c].residency);
    if (commands[c].kind == PLANC_CMD_EXEC) workspace = planc_schedule_variant(s, &commands[c]).workspace_bytes;
    if (planc_add_saturate(open, workspace) > most) most = planc_add_saturate(open, workspace);
  }
  *out_bytes = planc_add_saturate(most, reserved);
  return NULL;
}

int64_t planc_candidate_least_time(const planc_candidate *candidate) {
  const planc_command *commands = planc_schedule_commands(candidate->schedule);
  int64_t sum = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate->schedule); c++) {
    if (commands[c].kind == PLANC_CMD_EXEC)
      sum = planc_add_saturate(sum, planc_schedule_variant(candidate->schedule, &commands[c]).time_ns);
  }
  return sum;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

static planc_status iteration_time(const planc_evaluator *evaluator, const planc_candidate *candidate,
                                   int64_t *out_ns) {
  planc_plan *plan;
  planc_simulation simulation = {0};
  PLANC_TRY(planc_lower(evaluator->problem, "", candidate, &plan));
  planc_status status = planc_simulate(plan, NULL, NULL, &simulation);
  planc_plan_free(plan);
  *out_ns = simulation.iteration_ns;
  return status;
}

static void note_end(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  (void)start_ns;
  int64_t *ends = user;
  if (instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n) ends[instr - plan->body.instrs] = end_ns;
}

static planc_status show(const planc_plan *plan, planc_candidate_visitor visitor, void *user, int64_t *out_ns) {
  planc_simulation simulation;
  planc_arena arena = {0};
  int64_t *ends;
  planc_status status = PLANC_NEW(&arena, &ends, plan->body.n);
  if (!status) status = planc_simulate(plan, note_end, ends, &simulation);
  if (!status) *out_ns = simulation.iteration_ns;
  if (!status) status = visitor(user, plan, ends);
  planc_arena_free(&arena);
  return status;
}

static planc_status follow(const planc_evaluator *evaluator, const planc_candidate *candidate,
                           planc_candidate_visitor visitor, void *user, bool *out_fits, int64_t *out_ns) {
  planc_plan *plan;
  PLANC_TRY(planc_lower(evaluator->problem, "", candidate, &plan));
  *out_fits = plan->predicted.peak_bytes <= evaluator->problem->budget_bytes;
  planc_status status = *out_fits ? show(plan, visitor, user, out_ns) : NULL;
  planc_plan_free(plan);
  return status;
}

planc_evaluator planc_evaluator_of(const planc_problem *problem) {
  return (planc_evaluator){.problem = problem,
                           .live = live,
                           .peak = peak,
                           .hold = hold,
                           .hold_to_host = hold_to_host,
                           .time = iteration_time,
                           .follow = follow};
}
