/* Lowering: a schedule's blanks are filled, its commands become the body's instructions, and events order every hazard.
 *
 *   schedule - addresses.h -> places - events.h -> waits - here -> prologue, body, epilogue
 *
 * The prologue copies the boundary in, what is at home on the host through the device, and makes every stream wait for
 * the others' copies; only then does it record, as body -1, what body and epilogue wait on with lag 1, so that no
 * stream touches the boundary before it is there. The epilogue waits for the last body's writes, or where there was no
 * body for the prologue's, and copies the boundary back.
 */
#include <string.h>

#include "plan/mapping.h"
#include "plan/plan_memory.h"
#include "planc/policy.h"
#include "planner/code.h"
#include "planner/lower/addresses.h"
#include "planner/lower/events.h"
#include "planner/lower/plan_header.h"
#include "util/map.h"
#include "util/math.h"

enum { NONE = -1 };

/* An instruction of the prologue or epilogue. Several in a row on one stream can be one step. */
typedef struct around {
  planc_instr instr;
  int32_t begins, ends; /* the step that begins before it, and that which ends after it; NONE */
} around;
typedef VEC(around) arounds;

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
  /* Steps: what runs on a stream, in order; acquires, releases and dropped offloads are none. Behind those of the body
   * stand the epilogue's, then the prologue's. */
  planc_step *steps;
  int32_t n_steps, first_before; /* all; the prologue's first */
  int32_t *step_of_command;
  arounds before, after;
  int32_t *first_range; /* by residency, by command for its workspace or host slot, by home, and one more */
  VEC(planc_range) ranges;
  VEC(planc_range_touch) touches;
  planc_hazards work;
  planc_waits waits, waits_before; /* the prologue's */
  int32_t *event_of_step;          /* NONE where nobody waits */
  planc_map algorithm_index;
  VEC(const char *) algorithms;
} lowering;

static int16_t stream_of(int32_t job, int32_t stream) {
  return (int16_t)(job * PLANC_N_STREAMS + stream);
}

static int32_t job_of(const lowering *l, int32_t residency) {
  return l->trace->buffers[l->residencies[residency].buffer].job;
}

static int64_t bytes_of(const lowering *l, int32_t residency) {
  return l->trace->buffers[l->residencies[residency].buffer].bytes;
}

/* --- Steps and what they touch --------------------------------------------------------------------------------------
 */

/* Appends the stretches of its GPU's arena that [address, address + bytes) of the job's device is in. */
static planc_status add_ranges(lowering *l, const planc_translation *translation, int32_t job, int64_t address,
                               int64_t bytes) {
  int64_t arena = planc_gpu_of(l->trace, job) * planc_align_up(l->addresses.arena_bytes, PLANC_ALIGNMENT);
  while (bytes > 0) {
    planc_piece piece = planc_translate(translation, address, bytes);
    VEC_PUSH(&l->ranges, ((planc_range){arena + piece.address, arena + piece.address + piece.bytes}));
    address += piece.bytes;
    bytes -= piece.bytes;
  }
  return NULL;
}

/* The bytes that each residency and command touches. The arenas follow each other, the host's is the last. */
static planc_status make_ranges(lowering *l) {
  int32_t n_residencies = planc_schedule_n_residencies(l->schedule), n_homes = planc_schedule_n_homes(l->schedule);
  int64_t host = planc_muldiv_ceil(planc_align_up(l->addresses.arena_bytes, PLANC_ALIGNMENT), l->addresses.gpus, 1);
  if (planc_add_saturate(host, l->addresses.host_arena_bytes) == INT64_MAX) {
    return planc_error(PLANC_BAD_INPUT, "device and host addresses together exceed 64 bits");
  }
  const planc_virtual_memory *memory = planc_schedule_memory(l->schedule);
  planc_translation translation;
  PLANC_TRY(planc_translation_make(memory->chunk_bytes, memory->mappings, memory->n, &l->arena, &translation));
  PLANC_TRY(PLANC_NEW(&l->arena, &l->first_range, (int64_t)n_residencies + l->n_commands + n_homes + 1));
  for (int32_t r = 0; r < n_residencies; r++) {
    PLANC_TRY(add_ranges(l, &translation, job_of(l, r), l->addresses.residencies[r], bytes_of(l, r)));
    l->first_range[r + 1] = (int32_t)l->ranges.len;
  }
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    int64_t address = l->addresses.commands[c];
    if (command->kind == PLANC_CMD_EXEC) {
      PLANC_TRY(add_ranges(l, &translation, l->trace->instances[command->instance].job, address,
                           planc_schedule_variant(l->schedule, command).workspace_bytes));
    }
    if ((command->kind == PLANC_CMD_OFFLOAD || command->kind == PLANC_CMD_PREFETCH) && address >= 0) {
      VEC_PUSH(&l->ranges, ((planc_range){host + address, host + address + bytes_of(l, command->residency)}));
    }
    l->first_range[n_residencies + c + 1] = (int32_t)l->ranges.len;
  }
  for (int32_t h = 0; h < n_homes; h++) {
    int64_t address = host + l->addresses.homes[h];
    VEC_PUSH(&l->ranges, ((planc_range){address, address + bytes_of(l, h)}));
    l->first_range[n_residencies + l->n_commands + h + 1] = (int32_t)l->ranges.len;
  }
  if (l->ranges.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many address ranges");
  l->work.ranges = l->ranges.data;
  l->work.n_ranges = (int32_t)l->ranges.len;
  return NULL;
}

/* Appends the touches of a residency or, counted on from there, a command or a home. */
static planc_status touch(lowering *l, int32_t what, bool writes) {
  for (int32_t k = l->first_range[what]; k < l->first_range[what + 1]; k++) {
    VEC_PUSH(&l->touches, ((planc_range_touch){k, writes}));
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

static planc_status end_step(lowering *l, planc_step step) {
  if (l->touches.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many accesses");
  step.n_touches = (int32_t)l->touches.len - step.first_touch;
  l->steps[l->n_steps++] = step;
  return NULL;
}

static planc_status make_steps(lowering *l) {
  int32_t *last_copy; /* step of the copy last started, by residency */
  PLANC_TRY(PLANC_NEW(&l->arena, &last_copy, planc_schedule_n_residencies(l->schedule)));
  PLANC_TRY(PLANC_NEW(&l->arena, &l->step_of_command, l->n_commands));
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    l->step_of_command[c] = NONE;
    if (command->kind == PLANC_CMD_ACQUIRE || command->kind == PLANC_CMD_OFFLOAD) last_copy[command->residency] = NONE;
    if (!runs(l, c) || (command->kind == PLANC_CMD_AWAIT && last_copy[command->residency] == NONE)) continue;
    planc_step step = {.stream = command->stream, .first_touch = (int32_t)l->touches.len, .await = NONE};
    PLANC_TRY(touch_all(l, c));
    if (command->kind == PLANC_CMD_AWAIT) {
      step.await = last_copy[command->residency];
    } else if (command->kind != PLANC_CMD_EXEC) {
      last_copy[command->residency] = l->n_steps;
    }
    l->step_of_command[c] = l->n_steps;
    PLANC_TRY(end_step(l, step));
  }
  l->work.n_body = l->n_steps;
  return NULL;
}

/* --- Before and after all bodies ------------------------------------------------------------------------------------
 */

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

static planc_status add_around(arounds *edge, planc_instr instr, int32_t step) {
  VEC_PUSH(edge, ((around){instr, step, step}));
  return NULL;
}

/* What a job has resident at the boundary is copied in, or back, in one step. */
static planc_status copy_residents(lowering *l, arounds *edge, planc_instr_op op, int32_t job) {
  int32_t n = planc_schedule_n_boundary(l->schedule);
  int64_t first = edge->len;
  int16_t stream = stream_of(job, op == PLANC_INSTR_prefetch ? PLANC_STREAM_H2D : PLANC_STREAM_D2H);
  planc_step step = {.stream = stream, .first_touch = (int32_t)l->touches.len, .await = NONE};
  for (int32_t r = planc_schedule_n_homes(l->schedule); r < n; r++) {
    if (job_of(l, r) != job) continue;
    PLANC_TRY(touch(l, r, op == PLANC_INSTR_prefetch));
    VEC_PUSH(edge, ((around){copy_of(l, op, stream, r, PLANC_USER), NONE, NONE}));
  }
  if (first == edge->len) return NULL;
  edge->data[first].begins = edge->data[edge->len - 1].ends = l->n_steps;
  return end_step(l, step);
}

/* One copy of a way from one side of the host to the other through the device. */
static planc_status copy_home(lowering *l, arounds *edge, planc_instr_op op, int32_t home, int64_t address) {
  bool in = op == PLANC_INSTR_prefetch;
  int16_t stream = stream_of(job_of(l, home), in ? PLANC_STREAM_H2D : PLANC_STREAM_D2H);
  planc_step step = {.stream = stream, .first_touch = (int32_t)l->touches.len, .await = NONE};
  PLANC_TRY(touch(l, home, in));
  if (address != PLANC_USER) {
    PLANC_TRY(touch(l, planc_schedule_n_residencies(l->schedule) + l->n_commands + home, !in));
  }
  PLANC_TRY(add_around(edge, copy_of(l, op, stream, home, address), l->n_steps));
  return end_step(l, step);
}

static planc_status pass_through(lowering *l, arounds *edge, int32_t home, int64_t from, int64_t to) {
  PLANC_TRY(add_around(edge, acquire_of(l, home), NONE));
  PLANC_TRY(copy_home(l, edge, PLANC_INSTR_prefetch, home, from));
  PLANC_TRY(copy_home(l, edge, PLANC_INSTR_offload, home, to));
  return add_around(edge, release_of(home), NONE);
}

static planc_status make_around(lowering *l) {
  int32_t n_homes = planc_schedule_n_homes(l->schedule), n_boundary = planc_schedule_n_boundary(l->schedule);
  int32_t n_jobs = l->trace->n_jobs;
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_residents(l, &l->after, PLANC_INSTR_offload, j));
  for (int32_t r = n_homes; r < n_boundary; r++) PLANC_TRY(add_around(&l->after, release_of(r), NONE));
  for (int32_t h = 0; h < n_homes; h++) {
    PLANC_TRY(pass_through(l, &l->after, h, l->addresses.homes[h], PLANC_USER));
  }
  l->first_before = l->n_steps;
  for (int32_t h = 0; h < n_homes; h++) {
    PLANC_TRY(pass_through(l, &l->before, h, PLANC_USER, l->addresses.homes[h]));
  }
  for (int32_t r = n_homes; r < n_boundary; r++) PLANC_TRY(add_around(&l->before, acquire_of(l, r), NONE));
  for (int32_t j = 0; j < n_jobs; j++) PLANC_TRY(copy_residents(l, &l->before, PLANC_INSTR_prefetch, j));
  return NULL;
}

/* --- Events ---------------------------------------------------------------------------------------------------------
 */

static planc_status find_waits(lowering *l) {
  l->work.steps = l->steps;
  l->work.touches = l->touches.data;
  l->work.n_steps = l->first_before;
  l->work.n_streams = l->trace->n_jobs * PLANC_N_STREAMS;
  PLANC_TRY(planc_find_waits(&l->work, &l->waits));
  planc_hazards before = l->work;
  before.steps = l->steps + l->first_before;
  before.n_body = 0;
  before.n_steps = l->n_steps - l->first_before;
  return planc_find_waits(&before, &l->waits_before);
}

/* Numbers the steps that somebody waits for: in the order of the body, then the epilogue's and the prologue's. */
static planc_status number_events(lowering *l) {
  PLANC_TRY(PLANC_NEW(&l->arena, &l->event_of_step, l->n_steps));
  for (int32_t i = 0; i < l->n_steps; i++) l->event_of_step[i] = NONE;
  for (int64_t w = 0; w < l->waits.len; w++) l->event_of_step[l->waits.data[w].producer] = 0;
  for (int64_t w = 0; w < l->waits_before.len; w++) {
    l->event_of_step[l->first_before + l->waits_before.data[w].producer] = 0;
  }
  for (int32_t i = 0; i < l->n_steps; i++) {
    if (l->event_of_step[i] != NONE) l->event_of_step[i] = l->plan->n_events++;
  }
  return NULL;
}

static planc_instr record_of(const lowering *l, int32_t step) {
  return (planc_instr){
      .op = PLANC_INSTR_record, .stream = (int16_t)l->steps[step].stream, .id = l->event_of_step[step]};
}

/* The wait's steps are counted from `first_step` on. */
static planc_instr wait_of(const lowering *l, const planc_wait *wait, int32_t first_step) {
  return (planc_instr){.op = PLANC_INSTR_wait,
                       .lag = (uint8_t)wait->lag,
                       .stream = (int16_t)l->steps[first_step + wait->step].stream,
                       .id = l->event_of_step[first_step + wait->producer]};
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

/* Appends the instructions of an edge with the waits and records that their steps need. */
static void emit_around(const lowering *l, const arounds *edge, const planc_waits *waits, int64_t w, int32_t first_step,
                        planc_instr *instrs, int32_t *n) {
  for (int64_t i = 0; i < edge->len; i++) {
    const around *it = &edge->data[i];
    for (; it->begins != NONE && w < waits->len && waits->data[w].step + first_step == it->begins; w++) {
      instrs[(*n)++] = wait_of(l, &waits->data[w], first_step);
    }
    instrs[(*n)++] = it->instr;
    if (it->ends != NONE && l->event_of_step[it->ends] != NONE) instrs[(*n)++] = record_of(l, it->ends);
  }
}

/* Every stream waits for what the streams that copied the boundary in have done, also those of other jobs: what it
 * learns of the body before may have come by way of them. */
static void join_streams(lowering *l, planc_instr *instrs, int32_t *n) {
  static const int32_t copying[] = {PLANC_STREAM_H2D, PLANC_STREAM_D2H};
  int32_t n_copying = planc_schedule_n_homes(l->schedule) > 0 ? 2 : 1, n_streams = l->plan->n_streams;
  int32_t n_events = l->trace->n_jobs * n_copying;
  if (planc_schedule_n_boundary(l->schedule) == 0) return;
  for (int32_t e = 0; e < n_events; e++) {
    int16_t stream = stream_of(e / n_copying, copying[e % n_copying]);
    instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_record, .stream = stream, .id = l->plan->n_events + e};
  }
  for (int32_t e = 0; e < n_events; e++) {
    for (int32_t t = 0; t < n_streams; t++) {
      if (t == stream_of(e / n_copying, copying[e % n_copying])) continue;
      instrs[(*n)++] = (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)t, .id = l->plan->n_events + e};
    }
  }
  l->plan->n_events += n_events;
}

static planc_status make_prologue(lowering *l) {
  bool *awaited; /* with lag 1, by step */
  planc_instr *instrs;
  int32_t n = 0;
  PLANC_TRY(PLANC_NEW(&l->arena, &awaited, l->n_steps));
  for (int64_t w = 0; w < l->waits.len; w++) awaited[l->waits.data[w].producer] |= l->waits.data[w].lag > 0;
  int64_t joins = 2 * (int64_t)l->trace->n_jobs * l->plan->n_streams;
  int64_t most = l->before.len + l->waits_before.len + joins + l->plan->n_events;
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, most));
  emit_around(l, &l->before, &l->waits_before, 0, l->first_before, instrs, &n);
  join_streams(l, instrs, &n);
  for (int32_t i = 0; i < l->work.n_body; i++) {
    if (awaited[i]) instrs[n++] = record_of(l, i);
  }
  l->plan->prologue = (planc_section){n, instrs};
  return NULL;
}

static planc_status make_epilogue(lowering *l) {
  planc_instr *instrs;
  int32_t n = 0;
  int64_t w = 0;
  while (w < l->waits.len && l->waits.data[w].step < l->work.n_body) w++;
  PLANC_TRY(PLANC_NEW(l->memory, &instrs, l->after.len + (l->waits.len - w) + l->plan->n_events));
  emit_around(l, &l->after, &l->waits, w, 0, instrs, &n);
  l->plan->epilogue = (planc_section){n, instrs};
  return NULL;
}

/* --- The whole ------------------------------------------------------------------------------------------------------
 */

static planc_status lower(lowering *l, const char *policy) {
  PLANC_TRY(planc_assign_addresses(&l->arena, l->schedule, &l->addresses));
  PLANC_TRY(make_ranges(l));
  int64_t edges = 4 * (int64_t)planc_schedule_n_homes(l->schedule) + 2 * (int64_t)l->trace->n_jobs;
  int64_t most = l->n_commands + edges;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many commands");
  PLANC_TRY(PLANC_NEW(&l->arena, &l->steps, most));
  PLANC_TRY(make_steps(l));
  PLANC_TRY(make_around(l));
  PLANC_TRY(find_waits(l));
  PLANC_TRY(number_events(l));
  PLANC_TRY(planc_fill_header(l->problem, policy, l->schedule, &l->addresses, l->plan));
  PLANC_TRY(make_body(l));
  PLANC_TRY(make_prologue(l));
  PLANC_TRY(make_epilogue(l));
  l->plan->n_algorithms = (int32_t)l->algorithms.len;
  PLANC_TRY(planc_arena_copy(l->memory, l->algorithms.data, l->algorithms.len, sizeof(const char *),
                             (void *)&l->plan->algorithms));
  planc_charge_code(l->problem->profile, l->plan);
  return NULL;
}

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
