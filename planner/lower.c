/* Lowering: a schedule's blanks are filled, its commands become the body's instructions, and events order every hazard.
 *
 *   schedule - addresses.h -> places - events.h -> waits - here -> prologue, body, epilogue
 *
 * The prologue copies the boundary in and makes every other stream wait for that; only then does it record, as body -1,
 * what the body waits on with lag 1, so that no stream touches a boundary buffer before its copy has ended. The
 * epilogue waits for the last body's writes and copies the boundary back. */
#include <string.h>

#include "addresses.h"
#include "events.h"
#include "plan/mapping.h"
#include "plan/plan_memory.h"
#include "planc/policy.h"
#include "util/map.h"
#include "util/math.h"

enum { NONE = -1 };

typedef struct lowering {
  const planc_problem *problem;
  const planc_schedule *schedule;
  const planc_trace *trace;
  const planc_residency *residencies;
  const planc_command *commands;
  int32_t n_commands;
  planc_plan *plan;
  planc_arena *memory; /* the plan's */
  planc_arena arena;   /* lowering's own */
  planc_addresses addresses;
  /* Steps: what runs on a stream, in order; acquires, releases and dropped offloads are none. */
  int32_t *step_of_command, *command_of_step;
  int32_t *first_range; /* by residency, then by command for its workspace or host slot, and one more */
  VEC(planc_range) ranges;
  VEC(planc_touch) touches;
  planc_work work;
  planc_waits waits;
  int32_t *event_of_step; /* NONE where nobody waits */
  planc_map algorithm_index;
  VEC(const char *) algorithms;
} lowering;

static int64_t bytes_of(const lowering *l, int32_t residency) {
  return l->trace->buffers[l->residencies[residency].buffer].bytes;
}

/* --- Steps and what they touch --------------------------------------------------------------------------------------
 */

/* Appends the stretches of the arena that [address, address + bytes) of the device is in. */
static planc_status add_ranges(lowering *l, const planc_translation *translation, int64_t address, int64_t bytes) {
  while (bytes > 0) {
    planc_piece piece = planc_translate(translation, address, bytes);
    VEC_PUSH(&l->ranges, ((planc_range){piece.address, piece.address + piece.bytes}));
    address += piece.bytes;
    bytes -= piece.bytes;
  }
  return NULL;
}

/* The bytes that each residency and command touches. Host addresses follow the device's. */
static planc_status make_ranges(lowering *l) {
  int32_t n_residencies = planc_schedule_n_residencies(l->schedule);
  int64_t host = planc_align_up(l->addresses.arena_bytes, PLANC_ALIGNMENT);
  if (planc_add_saturate(host, l->addresses.host_arena_bytes) == INT64_MAX) {
    return planc_error(PLANC_BAD_INPUT, "device and host addresses together exceed 64 bits");
  }
  const planc_virtual_memory *memory = planc_schedule_memory(l->schedule);
  planc_translation translation;
  PLANC_TRY(planc_translation_make(memory->chunk_bytes, memory->mappings, memory->n, &l->arena, &translation));
  PLANC_TRY(PLANC_NEW(&l->arena, &l->first_range, (int64_t)n_residencies + l->n_commands + 1));
  for (int32_t r = 0; r < n_residencies; r++) {
    PLANC_TRY(add_ranges(l, &translation, l->addresses.residencies[r], bytes_of(l, r)));
    l->first_range[r + 1] = (int32_t)l->ranges.len;
  }
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    int64_t address = l->addresses.commands[c];
    if (command->kind == PLANC_CMD_EXEC) {
      PLANC_TRY(add_ranges(l, &translation, address, planc_schedule_variant(l->schedule, command).workspace_bytes));
    }
    if ((command->kind == PLANC_CMD_OFFLOAD || command->kind == PLANC_CMD_PREFETCH) && address >= 0) {
      VEC_PUSH(&l->ranges, ((planc_range){host + address, host + address + bytes_of(l, command->residency)}));
    }
    l->first_range[n_residencies + c + 1] = (int32_t)l->ranges.len;
  }
  if (l->ranges.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many address ranges");
  l->work.ranges = l->ranges.data;
  l->work.n_ranges = (int32_t)l->ranges.len;
  return NULL;
}

/* Appends the touches of a residency or, counted on from there, a command. */
static planc_status touch(lowering *l, int32_t what, bool writes) {
  for (int32_t k = l->first_range[what]; k < l->first_range[what + 1]; k++) {
    VEC_PUSH(&l->touches, ((planc_touch){k, writes}));
  }
  return NULL;
}

/* Appends what command c touches. */
static planc_status touch_all(lowering *l, int32_t c) {
  const planc_command *command = &l->commands[c];
  int32_t own = planc_schedule_n_residencies(l->schedule) + c;
  switch (command->kind) {
    case PLANC_CMD_EXEC: {
      const planc_instance *instance = &l->trace->instances[command->instance];
      const int32_t *uses = &planc_schedule_uses(l->schedule)[command->first_use];
      for (int32_t k = 0; k < instance->n_accesses; k++) {
        bool writes = l->trace->accesses[instance->first_access + k].write >= 0;
        if (uses[k] != NONE) PLANC_TRY(touch(l, uses[k], writes));
      }
      return touch(l, own, true);
    }
    case PLANC_CMD_OFFLOAD:
    case PLANC_CMD_PREFETCH:
      PLANC_TRY(touch(l, command->residency, command->kind == PLANC_CMD_PREFETCH));
      return touch(l, own, command->kind != PLANC_CMD_PREFETCH);
    case PLANC_CMD_MOVE:
      PLANC_TRY(touch(l, command->source, false));
      return touch(l, command->residency, true);
    default:
      return NULL;
  }
}

static bool runs(const lowering *l, int32_t c) {
  const planc_command *command = &l->commands[c];
  if (command->kind == PLANC_CMD_ACQUIRE || command->kind == PLANC_CMD_RELEASE) return false;
  return command->kind != PLANC_CMD_OFFLOAD || l->addresses.commands[c] != PLANC_DROPPED;
}

static planc_status make_steps(lowering *l) {
  int32_t n_boundary = planc_schedule_n_boundary(l->schedule), n_steps = 0;
  planc_step *steps;
  int32_t *last_copy; /* step of the copy last started, by residency */
  PLANC_TRY(PLANC_NEW(&l->arena, &steps, (int64_t)l->n_commands + 1));
  PLANC_TRY(PLANC_NEW(&l->arena, &last_copy, planc_schedule_n_residencies(l->schedule)));
  PLANC_TRY(PLANC_NEW(&l->arena, &l->step_of_command, l->n_commands));
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    l->step_of_command[c] = NONE;
    if (command->kind == PLANC_CMD_ACQUIRE || command->kind == PLANC_CMD_OFFLOAD) last_copy[command->residency] = NONE;
    if (!runs(l, c) || (command->kind == PLANC_CMD_AWAIT && last_copy[command->residency] == NONE)) continue;
    planc_step *step = &steps[n_steps];
    *step = (planc_step){.stream = command->stream, .first_touch = (int32_t)l->touches.len, .await = NONE};
    PLANC_TRY(touch_all(l, c));
    if (l->touches.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many accesses");
    step->n_touches = (int32_t)l->touches.len - step->first_touch;
    if (command->kind == PLANC_CMD_AWAIT) {
      step->await = last_copy[command->residency];
    } else if (command->kind != PLANC_CMD_EXEC) {
      last_copy[command->residency] = n_steps;
    }
    l->step_of_command[c] = n_steps++;
  }
  /* The epilogue copies the boundary back. */
  int32_t first_touch = (int32_t)l->touches.len;
  for (int32_t r = 0; r < n_boundary; r++) PLANC_TRY(touch(l, r, false));
  if (l->touches.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many accesses");
  steps[n_steps++] = (planc_step){PLANC_STREAM_D2H, first_touch, (int32_t)l->touches.len - first_touch, NONE};
  l->work.n_steps = n_steps;
  l->work.steps = steps;
  l->work.touches = l->touches.data;
  return NULL;
}

/* --- Events ---------------------------------------------------------------------------------------------------------
 */

/* Numbers the steps that somebody waits for, in the order of the body. */
static planc_status number_events(lowering *l) {
  PLANC_TRY(PLANC_NEW(&l->arena, &l->event_of_step, l->work.n_steps));
  for (int32_t i = 0; i < l->work.n_steps; i++) l->event_of_step[i] = NONE;
  for (int64_t w = 0; w < l->waits.len; w++) l->event_of_step[l->waits.data[w].producer] = 0;
  for (int32_t i = 0; i < l->work.n_steps; i++) {
    if (l->event_of_step[i] != NONE) l->event_of_step[i] = l->plan->n_events++;
  }
  return NULL;
}

static planc_instr record_of(const lowering *l, int32_t step) {
  return (planc_instr){
      .op = PLANC_INSTR_record, .stream = (int16_t)l->work.steps[step].stream, .id = l->event_of_step[step]};
}

static planc_instr wait_of(const lowering *l, const planc_wait *wait) {
  return (planc_instr){.op = PLANC_INSTR_wait,
                       .lag = (uint8_t)wait->lag,
                       .stream = (int16_t)l->work.steps[wait->step].stream,
                       .id = l->event_of_step[wait->producer]};
}

/* --- Sections -------------------------------------------------------------------------------------------------------
 */

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

static planc_instr acquire_of(const lowering *l, int32_t residency) {
  return (planc_instr){.op = PLANC_INSTR_acquire,
                       .id = residency,
                       .aux = l->residencies[residency].buffer,
                       .address = l->addresses.residencies[residency],
                       .bytes = bytes_of(l, residency)};
}

static planc_instr release_of(int32_t residency) {
  return (planc_instr){.op = PLANC_INSTR_release, .id = residency};
}

static planc_instr copy_of(const lowering *l, planc_instr_op op, int16_t stream, int32_t residency, int64_t host) {
  return (planc_instr){
      .op = (uint8_t)op, .stream = stream, .id = residency, .address = host, .bytes = bytes_of(l, residency)};
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
      *out_any = runs(l, c);
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
      instrs[n++] = wait_of(l, &l->waits.data[w]);
    }
    bool any;
    PLANC_TRY(instr_of(l, c, &instrs[n], &any));
    n += any;
    if (step != NONE && l->event_of_step[step] != NONE) instrs[n++] = record_of(l, step);
  }
  l->plan->body = (planc_section){n, instrs};
  return NULL;
}

static planc_status make_prologue(lowering *l) {
  int32_t n_boundary = planc_schedule_n_boundary(l->schedule), n = 0;
  bool *awaited; /* with lag 1, by step */
  PLANC_TRY(PLANC_NEW(&l->arena, &awaited, l->work.n_steps));
  for (int64_t w = 0; w < l->waits.len; w++) awaited[l->waits.data[w].producer] |= l->waits.data[w].lag > 0;
  planc_instr *instrs;
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, 2 * (int64_t)n_boundary + PLANC_N_STREAMS + l->plan->n_events));
  for (int32_t r = 0; r < n_boundary; r++) instrs[n++] = acquire_of(l, r);
  for (int32_t r = 0; r < n_boundary; r++) {
    instrs[n++] = copy_of(l, PLANC_INSTR_prefetch, PLANC_STREAM_H2D, r, PLANC_USER);
  }
  if (n_boundary > 0) {
    int32_t event = l->plan->n_events++;
    instrs[n++] = (planc_instr){.op = PLANC_INSTR_record, .stream = PLANC_STREAM_H2D, .id = event};
    for (int32_t t = 0; t < PLANC_N_STREAMS; t++) {
      if (t == PLANC_STREAM_H2D) continue;
      instrs[n++] = (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)t, .id = event};
    }
  }
  for (int32_t i = 0; i < l->work.n_steps; i++) {
    if (awaited[i]) instrs[n++] = record_of(l, i);
  }
  l->plan->prologue = (planc_section){n, instrs};
  return NULL;
}

static planc_status make_epilogue(lowering *l) {
  int32_t n_boundary = planc_schedule_n_boundary(l->schedule), n = 0;
  planc_instr *instrs;
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, 2 * (int64_t)n_boundary + PLANC_N_STREAMS));
  for (int64_t w = 0; w < l->waits.len; w++) {
    if (l->waits.data[w].step == l->work.n_steps - 1) instrs[n++] = wait_of(l, &l->waits.data[w]);
  }
  for (int32_t r = 0; r < n_boundary; r++) {
    instrs[n++] = copy_of(l, PLANC_INSTR_offload, PLANC_STREAM_D2H, r, PLANC_USER);
  }
  for (int32_t r = 0; r < n_boundary; r++) instrs[n++] = release_of(r);
  l->plan->epilogue = (planc_section){n, instrs};
  return NULL;
}

/* --- The rest of the plan -------------------------------------------------------------------------------------------
 */

static planc_status copy_array(planc_arena *arena, const void *from, int64_t count, size_t size, void *out) {
  void *copy;
  PLANC_TRY(planc_arena_alloc(arena, count, size, (void *)&copy));
  if (count > 0) memcpy(copy, from, (size_t)count * size);
  *(void **)out = copy;
  return NULL;
}

static planc_status copy_jobs(lowering *l) {
  planc_job *jobs;
  PLANC_TRY(copy_array(l->memory, l->trace->jobs, l->trace->n_jobs, sizeof *jobs, (void *)&jobs));
  for (int32_t j = 0; j < l->trace->n_jobs; j++) {
    PLANC_TRY(copy_array(l->memory, jobs[j].rounds, jobs[j].n_rounds, sizeof *jobs[j].rounds, (void *)&jobs[j].rounds));
    if (!jobs[j].order) continue;
    PLANC_TRY(
        copy_array(l->memory, jobs[j].order, jobs[j].graph->n_ops, sizeof *jobs[j].order, (void *)&jobs[j].order));
  }
  l->plan->n_jobs = l->trace->n_jobs;
  l->plan->jobs = jobs;
  return NULL;
}

static planc_status make_streams(lowering *l) {
  static const planc_stream_kind kinds[PLANC_N_STREAMS] = {[PLANC_STREAM_COMPUTE] = PLANC_STREAM_KIND_compute,
                                                           [PLANC_STREAM_H2D] = PLANC_STREAM_KIND_h2d,
                                                           [PLANC_STREAM_D2H] = PLANC_STREAM_KIND_d2h};
  planc_stream *streams;
  PLANC_TRY(PLANC_NEW(l->memory, &streams, PLANC_N_STREAMS));
  for (int32_t t = 0; t < PLANC_N_STREAMS; t++) streams[t] = (planc_stream){.kind = kinds[t]};
  l->plan->n_streams = PLANC_N_STREAMS;
  l->plan->streams = streams;
  return NULL;
}

static planc_status fill_boundary(lowering *l) {
  int32_t n = planc_schedule_n_boundary(l->schedule);
  planc_boundary *boundary;
  PLANC_TRY(PLANC_NEW(l->memory, &boundary, n));
  for (int32_t r = 0; r < n; r++) {
    boundary[r] = (planc_boundary){l->residencies[r].buffer, l->addresses.residencies[r]};
  }
  l->plan->n_boundary = n;
  l->plan->boundary = boundary;
  l->plan->n_residencies = planc_schedule_n_residencies(l->schedule);
  return NULL;
}

static planc_status copy_uses(lowering *l) {
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    if (command->kind != PLANC_CMD_EXEC) continue;
    l->plan->n_uses = command->first_use + l->trace->instances[command->instance].n_accesses;
  }
  return copy_array(l->memory, planc_schedule_uses(l->schedule), l->plan->n_uses, sizeof(int32_t),
                    (void *)&l->plan->uses);
}

/* Every op once on the whole batch with its fastest variant; 0 when the costs do not know that batch. */
static int64_t ideal_time(const planc_problem *problem, const planc_schedule *schedule) {
  const planc_costs *costs = planc_schedule_costs(schedule);
  int32_t batch = planc_costs_batch(costs, problem->batch);
  int64_t sum = 0;
  for (int32_t op = 0; batch >= 0 && op < problem->graph->n_ops; op++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, op, batch, &count);
    int32_t fastest = planc_variant_fastest(variants, count, INT64_MAX);
    if (fastest >= 0) sum = planc_add_saturate(sum, variants[fastest].time_ns);
  }
  return sum;
}

static planc_status make_header(lowering *l, const planc_policy *policy) {
  const planc_problem *problem = l->problem;
  planc_plan *plan = l->plan;
  plan->device = *planc_profile_device(problem->profile);
  PLANC_TRY(planc_arena_strndup(l->memory, plan->device.name, strlen(plan->device.name), &plan->device.name));
  PLANC_TRY(planc_arena_strndup(l->memory, problem->graph->name, strlen(problem->graph->name), &plan->name));
  PLANC_TRY(planc_arena_strndup(l->memory, policy->name, strlen(policy->name), &plan->policy));
  plan->budget_bytes = problem->budget_bytes;
  plan->host_budget_bytes = problem->host_budget_bytes;
  plan->arena_bytes = l->addresses.arena_bytes;
  plan->host_arena_bytes = l->addresses.host_arena_bytes;
  const planc_virtual_memory *memory = planc_schedule_memory(l->schedule);
  plan->chunk_bytes = memory->chunk_bytes;
  plan->n_mappings = memory->n;
  PLANC_TRY(copy_array(l->memory, memory->mappings, memory->n, sizeof *memory->mappings, (void *)&plan->mappings));
  plan->gpus = 1;
  plan->graph_hash = planc_graph_hash(problem->graph);
  plan->predicted.ideal_ns = ideal_time(problem, l->schedule);
  plan->predicted.peak_bytes = planc_add_saturate(plan->arena_bytes, plan->device.reserved_bytes);
  plan->predicted.host_peak_bytes = plan->host_arena_bytes;
  PLANC_TRY(copy_jobs(l));
  PLANC_TRY(make_streams(l));
  PLANC_TRY(fill_boundary(l));
  return copy_uses(l);
}

/* --- The whole ------------------------------------------------------------------------------------------------------
 */

static planc_status lower(lowering *l, const planc_policy *policy) {
  PLANC_TRY(planc_assign_addresses(&l->arena, l->schedule, &l->addresses));
  PLANC_TRY(make_ranges(l));
  PLANC_TRY(make_steps(l));
  PLANC_TRY(planc_find_waits(&l->work, &l->waits));
  PLANC_TRY(number_events(l));
  PLANC_TRY(make_header(l, policy));
  PLANC_TRY(make_body(l));
  PLANC_TRY(make_prologue(l));
  PLANC_TRY(make_epilogue(l));
  l->plan->n_algorithms = (int32_t)l->algorithms.len;
  return copy_array(l->memory, l->algorithms.data, l->algorithms.len, sizeof(const char *),
                    (void *)&l->plan->algorithms);
}

planc_status planc_lower(const planc_problem *problem, const planc_policy *policy, const planc_candidate *candidate,
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
  VEC_FREE(&l.algorithms);
  if (status) {
    planc_plan_free(plan);
    return status;
  }
  *out = plan;
  return NULL;
}
