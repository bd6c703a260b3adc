/* What a policy may ask of a candidate while it chooses: bounds by one pass over its commands, its peak by placing it,
 * its time by simulating its plan; and of two that do not fit, which is nearer to it. */
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

int64_t planc_away_budget(const planc_problem *problem) {
  if (problem->host_budget_bytes < 0) return -1;
  return planc_add_saturate(problem->host_budget_bytes, problem->storage_budget_bytes);
}

/* What placing the candidate takes, of the device and, with what storage would take over, of the host. */
static planc_status place(const planc_candidate *candidate, int64_t *out_arena, int64_t *out_host) {
  planc_arena arena = {0};
  planc_addresses addresses = {0};
  planc_status status = planc_schedule_finish(candidate->schedule);
  if (!status) status = planc_assign_addresses(&arena, candidate->schedule, NULL, &addresses);
  *out_arena = addresses.arena_bytes;
  *out_host = addresses.away.host_bytes;
  planc_arena_free(&arena);
  return status;
}

planc_status planc_candidate_peak(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_bytes) {
  int64_t reserved, arena, host;
  PLANC_TRY(reserved_of(problem, candidate, &reserved));
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

planc_status planc_candidate_hold_to_host(const planc_problem *problem, const planc_candidate *candidate) {
  int64_t arena, host;
  if (problem->host_budget_bytes < 0) return NULL;
  PLANC_TRY(place(candidate, &arena, &host));
  return hold_host(problem, candidate, host);
}

planc_status planc_candidate_hold(const planc_problem *problem, const planc_candidate *candidate) {
  int64_t reserved, arena, host;
  PLANC_TRY(reserved_of(problem, candidate, &reserved));
  PLANC_TRY(place(candidate, &arena, &host));
  int64_t peak = planc_add_saturate(arena, reserved);
  if (peak <= problem->budget_bytes) return hold_host(problem, candidate, host);
  return planc_infeasible((planc_shortage){.bytes = peak}, "rounds of %lld need %lld bytes, the budget is %lld",
                          (long long)candidate->sub_batch, (long long)peak, (long long)problem->budget_bytes);
}

/* --- Reasons ------------------------------------------------------------------------------------------------------ */

/* A host that is too small comes before a device that is: the device's budget is then met. */
static bool asks_for_less(planc_shortage a, planc_shortage b) {
  if (a.memory != b.memory) return a.memory == PLANC_MEMORY_HOST;
  return a.bytes > 0 && (b.bytes == 0 || a.bytes < b.bytes);
}

void planc_keep_lesser(planc_status *kept, planc_status reason) {
  bool keep = !*kept || asks_for_less(planc_status_shortage(reason), planc_status_shortage(*kept));
  planc_status_free(keep ? *kept : reason);
  if (keep) *kept = reason;
}

/* --- Bounds ------------------------------------------------------------------------------------------------------- */

static int64_t size_of(const planc_schedule *schedule, int32_t residency) {
  int32_t buffer = planc_schedule_residencies(schedule)[residency].buffer;
  return planc_schedule_trace(schedule)->buffers[buffer].bytes;
}

planc_status planc_candidate_live(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_bytes) {
  const planc_schedule *s = candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int64_t live = 0, most, reserved;
  PLANC_TRY(reserved_of(problem, candidate, &reserved));
  for (int32_t r = planc_schedule_n_parked(s); r < planc_schedule_n_boundary(s); r++)
    live = planc_add_saturate(live, size_of(s, r));
  most = live;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    int64_t workspace = 0;
    if (commands[c].kind == PLANC_CMD_ACQUIRE) live = planc_add_saturate(live, size_of(s, commands[c].residency));
    if (commands[c].kind == PLANC_CMD_RELEASE) live -= size_of(s, commands[c].residency);
    if (commands[c].kind == PLANC_CMD_EXEC) workspace = planc_schedule_variant(s, &commands[c]).workspace_bytes;
    if (planc_add_saturate(live, workspace) > most) most = planc_add_saturate(live, workspace);
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

planc_status planc_candidate_time(const planc_problem *problem, const planc_candidate *candidate, int64_t *out_ns) {
  planc_plan *plan;
  planc_simulation simulation = {0};
  PLANC_TRY(planc_lower(problem, "", candidate, &plan));
  planc_status status = planc_simulate(plan, NULL, NULL, &simulation);
  planc_plan_free(plan);
  *out_ns = simulation.iteration_ns;
  return status;
}
