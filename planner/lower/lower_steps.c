/* The steps of a body: what runs on a stream, which bytes it reads and writes, and what it therefore has to wait for
 * (lowering.h).
 *
 * All memories are laid out one behind the other, so that two steps touch the same bytes where their ranges of numbers
 * meet, whatever memory that is. With virtual memory those are ranges of the arena, to which addresses are
 * translated. */
#include <assert.h>

/* The steps of a body: what runs on a stream, which bytes it reads and writes, and what it therefore has to wait for
 * (lowering.h).
 *
 * All memories are laid out one behind the other, so that two steps touch the same bytes where their ranges of numbers
 * meet, whatever memory that is. With virtual memory those are ranges of the arena, to which addresses are
 * translated. */
#include <assert.h>

#include "plan/mapping.h"
#include "planner/lower/lowering.h"
#include "util/math.h"

static planc_status add_ranges(lowering *l, const pl_translation *translation, int64_t address, int64_t bytes);
static planc_status add_slot_range(lowering *l, const int64_t *begins, int32_t slot);

planc_status lower_make_ranges(lowering *l) {
  int32_t n_residencies = planc_schedule_n_residencies(l->schedule);
  const pl_slots *away = &l->addresses.away;
  int64_t begins[PL_MAX_MEMORIES], end = 0;
  for (int32_t m = 0; m < away->memories.n; m++) {
    begins[m] = end;
    end = pl_add_saturate(end, pl_align_up(pl_arena_of(&l->addresses, m), PLANC_ALIGNMENT));
  }
  assert(pl_memories_first(&away->memories, PLANC_MEMORY_DEVICE) == 0); /* so ranges on the device are its addresses */
  if (end > INT64_MAX - PLANC_ALIGNMENT)
    return planc_error(PLANC_BAD_INPUT, "the addresses of all memories together exceed 64 bits");
  const planc_virtual_memory *memory = &l->addresses.virtual_memory;
  pl_translation translation;
  PLANC_TRY(pl_translation_make(memory->chunk_bytes, memory->mappings, memory->n, &l->arena, &translation));
  PLANC_TRY(PL_NEW(&l->arena, &l->first_range, (int64_t)n_residencies + l->n_commands + away->n + 1));
  for (int32_t r = 0; r < n_residencies; r++) {
    if (lower_is_on_device(l, r))
      PLANC_TRY(add_ranges(l, &translation, l->addresses.residencies[r], lower_bytes_of(l, r)));
    l->first_range[r + 1] = (int32_t)l->ranges.len;
  }
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    if (command->kind == PLANC_CMD_EXEC) {
      PLANC_TRY(add_ranges(l, &translation, l->addresses.workspaces[c],
                           planc_schedule_variant(l->schedule, command).workspace_bytes));
    }
    l->first_range[n_residencies + c + 1] = (int32_t)l->ranges.len;
  }
  for (int32_t k = 0; k < away->n; k++) {
    PLANC_TRY(add_slot_range(l, begins, k));
    l->first_range[lower_touched_slot(l, k) + 1] = (int32_t)l->ranges.len;
  }
  if (l->ranges.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many address ranges");
  l->work.ranges = l->ranges.data;
  l->work.n_ranges = (int32_t)l->ranges.len;
  return NULL;
}

/* Appends the ranges of the arena to which [address, address + bytes) of the device is mapped: one range, or with
 * virtual memory perhaps several. */
static planc_status add_ranges(lowering *l, const pl_translation *translation, int64_t address, int64_t bytes) {
  while (bytes > 0) {
    pl_piece piece = pl_translate(translation, address, bytes);
    VEC_PUSH(&l->ranges, ((pl_range){piece.address, piece.address + piece.bytes}));
    address += piece.bytes;
    bytes -= piece.bytes;
  }
  return NULL;
}

/* begins[m] is where the arena of memory m begins in the space of ranges. */
static planc_status add_slot_range(lowering *l, const int64_t *begins, int32_t slot) {
  const pl_slot *of = lower_slot_at(l, slot);
  int64_t first = begins[of->memory] + of->address;
  VEC_PUSH(&l->ranges, ((pl_range){first, first + l->trace->buffers[of->buffer].bytes}));
  return NULL;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/* The steps that an await or a follow may wait for, as far as they are known. */
typedef struct latest {
  int32_t *copy; /* by residency: of the copy last started */
  int32_t *run;  /* by job: of what its compute streams were given last, LOWER_NONE = nothing yet */
} latest;

static planc_status add_slot_steps(lowering *l, int32_t command, bool load, int32_t *k);
static planc_status add_command_step(lowering *l, int32_t c, latest *last);
static planc_status touch_all(lowering *l, int32_t c);
static void note_copy(const planc_command *command, int32_t step, int32_t *last_copy);
static int32_t last_of(int32_t job);
static void await_last(lowering *l, const latest *last);

planc_status lower_make_steps(lowering *l) {
  latest last;
  int32_t k = 0;
  PLANC_TRY(PL_NEW(&l->arena, &last.copy, planc_schedule_n_residencies(l->schedule)));
  PLANC_TRY(PL_NEW(&l->arena, &last.run, l->trace->n_jobs));
  for (int32_t j = 0; j < l->trace->n_jobs; j++) last.run[j] = LOWER_NONE;
  PLANC_TRY(PL_NEW(&l->arena, &l->step_of_command, l->n_commands));
  PLANC_TRY(PL_NEW(&l->arena, &l->step_of_copy, l->addresses.away.n_copies));
  for (int32_t c = 0; c < l->n_commands; c++) {
    PLANC_TRY(add_slot_steps(l, c, true, &k));
    PLANC_TRY(add_command_step(l, c, &last));
    PLANC_TRY(add_slot_steps(l, c, false, &k));
  }
  await_last(l, &last);
  l->work.n_body = l->n_steps;
  return NULL;
}

/* The steps of the copies between memories at a command: loads, which stand ahead of it, or stores, behind it. `k` is
 * the first copy that has no step yet. */
static planc_status add_slot_steps(lowering *l, int32_t command, bool load, int32_t *k) {
  const pl_slots *away = &l->addresses.away;
  for (; *k < away->n_copies && away->copies[*k].command == command && away->copies[*k].load == load; ++*k) {
    const pl_slot_copy *copy = &away->copies[*k];
    int32_t job = l->trace->buffers[lower_slot_at(l, copy->from)->buffer].job;
    planc_route route =
        pl_memories_route(&away->memories, lower_slot_at(l, copy->from)->memory, lower_slot_at(l, copy->to)->memory);
    pl_step step = {
        .stream = lower_stream_of(l, job, route), .first_touch = (int32_t)l->touches.len, .await = LOWER_NONE};
    PLANC_TRY(lower_touch(l, lower_touched_slot(l, copy->from), false));
    PLANC_TRY(lower_touch(l, lower_touched_slot(l, copy->to), true));
    l->step_of_copy[*k] = l->n_steps;
    PLANC_TRY(lower_end_step(l, step));
  }
  return NULL;
}

/* An await has no step where its copy has none. A copy has none where nobody reads what it would copy. */
static planc_status add_command_step(lowering *l, int32_t c, latest *last) {
  const planc_command *command = &l->commands[c];
  bool runs = lower_runs(l, c), copies = command->kind == PLANC_CMD_COPY;
  l->step_of_command[c] = LOWER_NONE;
  if (command->kind == PLANC_CMD_ACQUIRE) last->copy[command->residency] = LOWER_NONE;
  if (copies) note_copy(command, runs ? l->n_steps : LOWER_NONE, last->copy);
  if (!runs || (command->kind == PLANC_CMD_AWAIT && last->copy[command->residency] == LOWER_NONE)) return NULL;
  pl_step step = {.stream = command->stream, .first_touch = (int32_t)l->touches.len, .await = LOWER_NONE};
  PLANC_TRY(touch_all(l, c));
  if (command->kind == PLANC_CMD_AWAIT) {
    step.await = last->copy[command->residency];
  } else if (command->kind == PLANC_CMD_FOLLOW) {
    int32_t leader = command->source;
    step.await = last->run[leader] == LOWER_NONE ? last_of(leader) : last->run[leader];
  }
  if (command->kind == PLANC_CMD_EXEC) last->run[l->trace->instances[command->instance].job] = l->n_steps;
  if (copies && planc_schedule_route(l->schedule, command->stream) == PLANC_STREAM_COMPUTE)
    last->run[lower_job_of(l, command->residency)] = l->n_steps;
  l->step_of_command[c] = l->n_steps;
  return lower_end_step(l, step);
}

static void note_copy(const planc_command *command, int32_t step, int32_t *last_copy) {
  if (command->residency != PLANC_USER) last_copy[command->residency] = step;
  if (command->source != PLANC_USER) last_copy[command->source] = step;
}

/* What stands for a job's last step in the body before, while that step is not yet known: a number below LOWER_NONE. */
static int32_t last_of(int32_t job) {
  return LOWER_NONE - 1 - job;
}

/* When all steps are known, puts each job's last step where last_of stands for it. */
static void await_last(lowering *l, const latest *last) {
  for (int32_t i = 0; i < l->n_steps; i++)
    if (l->steps[i].await < LOWER_NONE) l->steps[i].await = last->run[LOWER_NONE - 1 - l->steps[i].await];
}

planc_status lower_end_step(lowering *l, pl_step step) {
  if (l->touches.len > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many accesses");
  step.n_touches = (int32_t)l->touches.len - step.first_touch;
  l->steps[l->n_steps++] = step;
  return NULL;
}

/* --- What steps touch --------------------------------------------------------------------------------------------- */

static planc_status touch_side(lowering *l, int32_t c, int32_t side, bool writes);
static planc_status touch(lowering *l, int32_t what, pl_range_touch how);

/* Appends what command c touches: an exec its operands and its workspace, a copy both sides. */
static planc_status touch_all(lowering *l, int32_t c) {
  const planc_command *command = &l->commands[c];
  int32_t own = planc_schedule_n_residencies(l->schedule) + c;
  switch (command->kind) {
    case PLANC_CMD_EXEC: {
      const planc_instance *instance = &l->trace->instances[command->instance];
      const int32_t *uses = &planc_schedule_uses(l->schedule)[command->first_use];
      for (int32_t k = 0; k < instance->n_accesses; k++) {
        bool writes = l->trace->accesses[instance->first_access + k].write >= 0;
        if (uses[k] != LOWER_NONE) PLANC_TRY(lower_touch(l, uses[k], writes));
      }
      return lower_touch(l, own, true);
    }
    case PLANC_CMD_COPY:
      PLANC_TRY(touch_side(l, c, command->source, false));
      return touch_side(l, c, command->residency, true);
    case PLANC_CMD_ACQUIRE:
    case PLANC_CMD_RELEASE:
    case PLANC_CMD_AWAIT:
    case PLANC_CMD_FOLLOW:
      break; /* nothing of memory is read or written */
  }
  return NULL;
}

/* Appends what a copy touches at one of its sides: nothing in the user's memory, whose bytes have no ranges. */
static planc_status touch_side(lowering *l, int32_t c, int32_t side, bool writes) {
  if (side == PLANC_USER) return NULL;
  if (lower_is_on_device(l, side)) return lower_touch(l, side, writes);
  pl_sides slots = l->addresses.away.of_command[c];
  return touch(l, lower_touched_slot(l, writes ? slots.target : slots.source),
               (pl_range_touch){.write = writes, .peers = lower_is_from_peers(l, c)});
}

planc_status lower_touch(lowering *l, int32_t what, bool writes) {
  return touch(l, what, (pl_range_touch){.write = writes});
}

/* Appends a touch of each range of thing `what`. */
static planc_status touch(lowering *l, int32_t what, pl_range_touch how) {
  for (how.range = l->first_range[what]; how.range < l->first_range[what + 1]; how.range++) VEC_PUSH(&l->touches, how);
  return NULL;
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

bool lower_runs(const lowering *l, int32_t c) {
  const planc_command *command = &l->commands[c];
  if (command->kind == PLANC_CMD_ACQUIRE || command->kind == PLANC_CMD_RELEASE) return false;
  bool to_away = command->kind == PLANC_CMD_COPY && planc_schedule_is_away(l->schedule, command->residency);
  return !to_away || l->addresses.away.of_command[c].target != PL_NO_SIDE;
}

bool lower_is_from_peers(const lowering *l, int32_t c) {
  const planc_command *command = &l->commands[c];
  return planc_schedule_copies(l->schedule, command, PLANC_MEMORY_HOST, PLANC_MEMORY_DEVICE) &&
         l->trace->buffers[l->residencies[command->residency].buffer].peer >= 0;
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

planc_status lower_find_waits(lowering *l) {
  l->work.steps = l->steps;
  l->work.touches = l->touches.data;
  l->work.n_steps = l->first_before;
  l->work.replicas = planc_trace_replicas(l->trace);
  l->work.n_streams = l->plan->n_streams;
  PLANC_TRY(pl_find_waits(&l->work, &l->waits));
  pl_hazards before = l->work;
  before.steps = l->steps + l->first_before;
  before.n_body = 0;
  before.n_steps = l->n_steps - l->first_before;
  return pl_find_waits(&before, &l->waits_before);
}

/* Gives each step that is waited for an event: in the order of the body, then of the epilogue and the prologue. */
planc_status lower_number_events(lowering *l) {
  PLANC_TRY(PL_NEW(&l->arena, &l->event_of_step, l->n_steps));
  for (int32_t i = 0; i < l->n_steps; i++) l->event_of_step[i] = LOWER_NONE;
  for (int64_t w = 0; w < l->waits.len; w++) l->event_of_step[l->waits.data[w].producer] = 0;
  for (int64_t w = 0; w < l->waits_before.len; w++) {
    l->event_of_step[l->first_before + l->waits_before.data[w].producer] = 0;
  }
  for (int32_t i = 0; i < l->n_steps; i++) {
    if (l->event_of_step[i] != LOWER_NONE) l->event_of_step[i] = l->plan->n_events++;
  }
  return NULL;
}
