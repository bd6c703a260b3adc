/* Lowering: a schedule's blanks are filled, its commands become the body's instructions, and events order every hazard.
 *
 *   schedule - addresses.c -> places - lower_steps.c, events.c -> waits - here -> body - lower_around.c -> prologue and
 *   epilogue */
#include <string.h>

#include "plan/plan_memory.h"
#include "planner/code.h"
#include "planner/lower/lowering.h"
#include "planner/lower/plan_header.h"

static planc_status lower(lowering *l, const char *policy);
static planc_status make_body(lowering *l);

planc_status planc_lower(const planc_problem *problem, const char *policy, const planc_candidate *candidate,
                         planc_plan **out) {
  *out = NULL;
  PLANC_TRY(planc_context(planc_schedule_finish(candidate->schedule), "lowering"));
  planc_plan *plan;
  PLANC_TRY(planc_plan_new(&plan));
  const planc_schedule *schedule = candidate->schedule;
  lowering l = {.problem = problem,
                .schedule = schedule,
                .trace = planc_schedule_trace(schedule),
                .residencies = planc_schedule_residencies(schedule),
                .commands = planc_schedule_commands(schedule),
                .n_commands = planc_schedule_n_commands(schedule),
                .plan = plan,
                .memory = &plan->memory->arena};
  planc_status status = planc_context(lower(&l, policy), "lowering");
  planc_arena_free(&l.arena);
  planc_map_free(&l.algorithm_index);
  VEC_FREE(&l.ranges);
  VEC_FREE(&l.touches);
  VEC_FREE(&l.waits);
  VEC_FREE(&l.waits_before);
  VEC_FREE(&l.before);
  VEC_FREE(&l.after);
  VEC_FREE(&l.algorithms);
  if (status) {
    planc_plan_free(plan);
    return status;
  }
  *out = plan;
  return NULL;
}

static planc_status lower(lowering *l, const char *policy) {
  PLANC_TRY(planc_assign_addresses(&l->arena, l->schedule, &l->addresses));
  PLANC_TRY(lowering_make_ranges(l));
  int64_t edges = 4 * (int64_t)planc_schedule_n_homes(l->schedule) + 2 * (int64_t)l->trace->n_jobs;
  int64_t most = l->n_commands + edges;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many commands");
  PLANC_TRY(PLANC_NEW(&l->arena, &l->steps, most));
  PLANC_TRY(lowering_make_steps(l));
  PLANC_TRY(lowering_make_around(l));
  PLANC_TRY(lowering_find_waits(l));
  PLANC_TRY(lowering_number_events(l));
  PLANC_TRY(planc_fill_header(l->problem, policy, l->schedule, &l->addresses, l->plan));
  PLANC_TRY(make_body(l));
  PLANC_TRY(lowering_make_prologue(l));
  PLANC_TRY(lowering_make_epilogue(l));
  l->plan->n_algorithms = (int32_t)l->algorithms.len;
  PLANC_TRY(planc_arena_copy(l->memory, l->algorithms.data, l->algorithms.len, sizeof(const char *),
                             (void *)&l->plan->algorithms));
  planc_charge_code(l->problem->profile, l->plan);
  return NULL;
}

/* --- The body ----------------------------------------------------------------------------------------------------- */

static planc_status index_algorithm(lowering *l, const char *name, int32_t *out) {
  *out = planc_map_get(&l->algorithm_index, name, strlen(name));
  if (*out >= 0) return NULL;
  const char *copy;
  PLANC_TRY(planc_arena_strndup(l->memory, name, strlen(name), &copy));
  *out = (int32_t)l->algorithms.len;
  VEC_PUSH(&l->algorithms, copy);
  return planc_map_put(&l->algorithm_index, copy, strlen(copy), *out);
}

static planc_status exec_of(lowering *l, int32_t c, planc_instr *out) {
  const planc_command *command = &l->commands[c];
  planc_variant variant = planc_schedule_variant(l->schedule, command);
  *out = (planc_instr){.op = PLANC_INSTR_exec,
                       .recompute = command->recompute,
                       .stream = command->stream,
                       .id = command->instance,
                       .first_use = command->first_use,
                       .address = l->addresses.commands[c],
                       .bytes = variant.workspace_bytes,
                       .time_ns = variant.time_ns,
                       .busy_ppm = variant.busy_ppm};
  return index_algorithm(l, variant.algorithm, &out->aux);
}

/* The instruction of a command; false when it has none of its own. */
static planc_status instr_of(lowering *l, int32_t c, planc_instr *out, bool *out_any) {
  const planc_command *command = &l->commands[c];
  *out_any = true;
  switch (command->kind) {
    case PLANC_CMD_EXEC:
      return exec_of(l, c, out);
    case PLANC_CMD_ACQUIRE:
      *out = acquire_of(l, command->residency);
      return NULL;
    case PLANC_CMD_RELEASE:
      *out = release_of(command->residency);
      return NULL;
    case PLANC_CMD_OFFLOAD:
    case PLANC_CMD_PREFETCH: {
      planc_instr_op op = command->kind == PLANC_CMD_OFFLOAD ? PLANC_INSTR_offload : PLANC_INSTR_prefetch;
      *out = copy_of(l, op, command->stream, command->residency, l->addresses.commands[c]);
      *out_any = lowering_runs(l, c);
      return NULL;
    }
    case PLANC_CMD_MOVE:
      *out = copy_of(l, PLANC_INSTR_move, command->stream, command->residency, 0);
      out->aux = command->source;
      return NULL;
    default: /* an await is the waits before its step */
      *out_any = false;
      return NULL;
  }
}

static planc_status make_body(lowering *l) {
  planc_instr *instrs;
  int32_t n = 0;
  int64_t w = 0, most = (int64_t)l->n_commands + l->waits.len + l->plan->n_events;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many instructions");
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, most));
  for (int32_t c = 0; c < l->n_commands; c++) {
    int32_t step = l->step_of_command[c];
    for (; step != NONE && w < l->waits.len && l->waits.data[w].step == step; w++) {
      instrs[n++] = wait_of(l, &l->waits.data[w], 0);
    }
    bool any;
    PLANC_TRY(instr_of(l, c, &instrs[n], &any));
    n += any;
    if (step != NONE && l->event_of_step[step] != NONE) instrs[n++] = record_of(l, step);
  }
  l->plan->body = (planc_section){n, instrs};
  return NULL;
}
