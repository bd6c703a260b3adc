/* Lowering makes a plan of a schedule, in this order:
 *
 *   addresses.c     gives everything an address that the policy has left open, with planner/away/ for what is not on
 *                   the device;
 *   plan_header.c   fills what does not depend on any order;
 *   lower_steps.c   lists what runs on streams, as steps, with the bytes that each step reads and writes;
 *   lower_around.c  adds the steps of prologue and epilogue;
 *   events.c        finds which step has to wait for which;
 *   here            commands, waits and the records of what is waited for become the body's instructions;
 *   lower_around.c  the same for prologue and epilogue. */
#include "planner/lower/lower.h"

#include <assert.h>
#include <string.h>

#include "plan/derived.h"
#include "plan/owned.h"
#include "planner/base/code.h"
#include "planner/lower/lowering.h"
#include "planner/lower/plan_header.h"

static planc_status lower(lowering *l, const char *policy, const pl_addresses *placed);
static planc_status number_residencies(lowering *l);
static planc_instr open_residency(lowering *l, int32_t residency);
static planc_instr open_slot(lowering *l, int32_t slot);
static planc_status make_body(lowering *l);

planc_status planc_lower(const planc_target *target, const char *policy, const planc_candidate *candidate,
                         planc_plan **out) {
  return pl_lower_placed(target, policy, candidate, NULL, out);
}

planc_status pl_lower_placed(const planc_target *target, const char *policy, const planc_candidate *candidate,
                             const pl_addresses *placed, planc_plan **out) {
  *out = NULL;
  PLANC_TRY(planc_context(planc_schedule_finish(candidate->schedule), "lowering"));
  planc_plan *plan;
  PLANC_TRY(pl_plan_new(&plan));
  const planc_schedule *schedule = candidate->schedule;
  lowering l = {.target = target,
                .room = candidate->room,
                .schedule = schedule,
                .trace = planc_schedule_trace(schedule),
                .residencies = planc_schedule_residencies(schedule),
                .commands = planc_schedule_commands(schedule),
                .n_commands = planc_schedule_n_commands(schedule),
                .plan = plan,
                .memory = &plan->owned->arena};
  planc_status status = planc_context(lower(&l, policy, placed), "lowering");
  pl_arena_free(&l.arena);
  pl_map_free(&l.algorithm_index);
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

static planc_status lower(lowering *l, const char *policy, const pl_addresses *placed) {
  if (placed) {
    l->addresses = *placed;
  } else {
    PLANC_TRY(
        pl_assign_device_addresses(&l->arena, l->schedule, l->target->terms, l->room, &(pl_placing){0}, &l->addresses));
  }
  PLANC_TRY(
      pl_slots_make(&l->arena, l->schedule, l->target->terms, l->target->profile, l->room > 0, &l->addresses.away));
  PLANC_TRY(PL_NEW(&l->arena, &l->stream_of_route, (int64_t)l->trace->n_jobs * PLANC_N_ROUTES));
  PLANC_TRY(pl_fill_header(l->target, policy, l->schedule, &l->addresses, l->plan, l->stream_of_route));
  PLANC_TRY(lower_make_ranges(l));
  int64_t most = (int64_t)l->n_commands + l->addresses.away.n_copies + PLANC_N_ROUTES * (int64_t)l->trace->n_jobs;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many commands");
  PLANC_TRY(PL_NEW(&l->arena, &l->steps, most));
  PLANC_TRY(lower_make_steps(l));
  PLANC_TRY(number_residencies(l));
  PLANC_TRY(lower_make_around(l));
  PLANC_TRY(lower_find_waits(l));
  PLANC_TRY(lower_number_events(l));
  PLANC_TRY(make_body(l));
  PLANC_TRY(lower_make_prologue(l));
  PLANC_TRY(lower_make_epilogue(l));
  l->plan->n_algorithms = (int32_t)l->algorithms.len;
  PLANC_TRY(pl_arena_copy(l->memory, l->algorithms.data, l->algorithms.len, sizeof(const char *),
                          (void *)&l->plan->algorithms));
  pl_charge_code(l->target->profile, l->plan);
  return pl_plan_derive(l->plan);
}

/* --- The body ----------------------------------------------------------------------------------------------------- */

typedef struct emission {
  planc_instr *instrs;
  int32_t n;
  int64_t wait; /* the first that no instruction has been made of */
  int32_t copy; /* the same of the copies between memories */
  int32_t *uses;
  int32_t *first_closed; /* by command: the first slot that closes behind it, -1 = none */
  int32_t *next_closed;  /* by slot: the next one at the same command */
} emission;

static int32_t count_uses(const lowering *l);
static planc_status make_instrs(lowering *l, emission *e);
static planc_status list_closed(lowering *l, emission *e);
static void emit_slot_copies(lowering *l, int32_t command, bool load, emission *e);
static planc_status emit_command(lowering *l, int32_t c, emission *e);
static void emit_waits(const lowering *l, int32_t step, emission *e);
static void emit_record(const lowering *l, int32_t step, emission *e);
static planc_status instr_of(lowering *l, int32_t c, int32_t *uses, planc_instr *out, bool *out_any);

static planc_status make_body(lowering *l) {
  emission e = {0};
  const pl_slots *away = &l->addresses.away;
  int64_t most = (int64_t)l->n_commands + l->waits.len + l->plan->n_events + 2 * (int64_t)away->n + away->n_copies;
  if (most > INT32_MAX) return planc_error(PLANC_INTERNAL, "too many instructions");
  l->plan->n_uses = count_uses(l);
  PLANC_TRY(PL_NEW(l->memory, &e.uses, l->plan->n_uses));
  PLANC_TRY(PL_NEW(l->memory, &e.instrs, most + 1));
  PLANC_TRY(make_instrs(l, &e));
  assert(e.n <= most && e.copy == away->n_copies);
  assert(e.wait == l->waits.len || l->waits.data[e.wait].step >= l->work.n_body); /* those are the epilogue's */
  l->plan->uses = e.uses;
  l->plan->body = (planc_section){e.n, e.instrs};
  return NULL;
}

/* Execs have consecutive slices of the schedule's uses, so the last one's end tells how many there are. */
static int32_t count_uses(const lowering *l) {
  int32_t n = 0;
  for (int32_t c = 0; c < l->n_commands; c++) {
    const planc_command *command = &l->commands[c];
    if (command->kind != PLANC_CMD_EXEC) continue;
    n = command->first_use + l->trace->instances[command->instance].n_accesses;
  }
  return n;
}

static planc_status make_instrs(lowering *l, emission *e) {
  PLANC_TRY(list_closed(l, e));
  for (int32_t h = 0; h < planc_schedule_n_away(l->schedule); h++)
    if (lower_slot_at(l, h)->closes == PL_AT_BOUNDARY) e->instrs[e->n++] = lower_release_of(h);
  for (int32_t c = 0; c < l->n_commands; c++) {
    emit_slot_copies(l, c, true, e);
    PLANC_TRY(emit_command(l, c, e));
    emit_slot_copies(l, c, false, e);
    for (int32_t s = e->first_closed[c]; s != LOWER_NONE; s = e->next_closed[s])
      e->instrs[e->n++] = lower_release_of(l->id_of_slot[s]);
  }
  return NULL;
}

/* Lists slots by the command behind which they close. */
static planc_status list_closed(lowering *l, emission *e) {
  const pl_slots *away = &l->addresses.away;
  PLANC_TRY(PL_NEW(&l->arena, &e->first_closed, l->n_commands));
  PLANC_TRY(PL_NEW(&l->arena, &e->next_closed, away->n));
  for (int32_t c = 0; c < l->n_commands; c++) e->first_closed[c] = LOWER_NONE;
  for (int32_t s = away->n - 1; s >= 0; s--) {
    int32_t closes = away->slots[s].closes;
    if (closes == PL_AT_BOUNDARY || closes == PL_STAYS) continue;
    e->next_closed[s] = e->first_closed[closes];
    e->first_closed[closes] = s;
  }
  return NULL;
}

/* The copies between memories that stand at a command: loads ahead of it, stores behind it. The slot that one copies to
 * opens right before. */
static void emit_slot_copies(lowering *l, int32_t command, bool load, emission *e) {
  const pl_slots *away = &l->addresses.away;
  for (; e->copy < away->n_copies; e->copy++) {
    const pl_slot_copy *copy = &away->copies[e->copy];
    if (copy->command != command || copy->load != load) return;
    int32_t step = l->step_of_copy[e->copy];
    e->instrs[e->n++] = open_slot(l, copy->to);
    emit_waits(l, step, e);
    e->instrs[e->n++] =
        lower_copy_of((int16_t)l->steps[step].stream, l->id_of_slot[copy->to], l->id_of_slot[copy->from],
                      l->trace->buffers[lower_slot_at(l, copy->from)->buffer].bytes);
    emit_record(l, step, e);
  }
}

static planc_status emit_command(lowering *l, int32_t c, emission *e) {
  int32_t step = l->step_of_command[c], target = l->addresses.away.of_command[c].target;
  bool any;
  if (target != PL_NO_SIDE) e->instrs[e->n++] = open_slot(l, target);
  emit_waits(l, step, e);
  PLANC_TRY(instr_of(l, c, e->uses, &e->instrs[e->n], &any));
  e->n += any;
  emit_record(l, step, e);
  return NULL;
}

static void emit_waits(const lowering *l, int32_t step, emission *e) {
  for (; step != LOWER_NONE && e->wait < l->waits.len && l->waits.data[e->wait].step == step; e->wait++)
    e->instrs[e->n++] = lower_wait_of(l, &l->waits.data[e->wait], 0);
}

static void emit_record(const lowering *l, int32_t step, emission *e) {
  if (step != LOWER_NONE && l->event_of_step[step] != LOWER_NONE) e->instrs[e->n++] = lower_record_of(l, step);
}

/* --- Instructions of commands ------------------------------------------------------------------------------------- */

static planc_status exec_of(lowering *l, int32_t c, int32_t *uses, planc_instr *out);
static planc_status index_algorithm(lowering *l, const char *name, int32_t *out);
static planc_instr transfer_of(const lowering *l, int32_t c);
static int32_t id_of_side(const lowering *l, int32_t c, int32_t side);

/* The instruction of a command. *out_any is false for a command that has none: an await or a follow has only the waits
 * that stand ahead of its step, and a copy that nobody reads is left out. */
static planc_status instr_of(lowering *l, int32_t c, int32_t *uses, planc_instr *out, bool *out_any) {
  const planc_command *command = &l->commands[c];
  *out_any = command->kind == PLANC_CMD_ACQUIRE || command->kind == PLANC_CMD_RELEASE || lower_runs(l, c);
  switch (command->kind) {
    case PLANC_CMD_EXEC:
      return exec_of(l, c, uses, out);
    case PLANC_CMD_ACQUIRE:
      *out = open_residency(l, command->residency);
      return NULL;
    case PLANC_CMD_RELEASE:
      *out = lower_release_of(l->id_of[command->residency]);
      return NULL;
    case PLANC_CMD_COPY:
      if (*out_any) *out = transfer_of(l, c);
      return NULL;
    default: /* await, follow */
      *out_any = false;
      return NULL;
  }
}

static planc_status exec_of(lowering *l, int32_t c, int32_t *uses, planc_instr *out) {
  const planc_command *command = &l->commands[c];
  planc_variant variant = planc_schedule_variant(l->schedule, command);
  *out = (planc_instr){.op = PLANC_INSTR_exec,
                       .recompute = command->recompute,
                       .stream = command->stream,
                       .id = command->instance,
                       .first_use = command->first_use,
                       .address = l->addresses.workspaces[c],
                       .bytes = variant.workspace_bytes,
                       .time_ns = variant.time_ns,
                       .busy_ppm = variant.busy_ppm};
  int32_t end = command->first_use + l->trace->instances[command->instance].n_accesses;
  for (int32_t k = command->first_use; k < end; k++) {
    int32_t residency = planc_schedule_uses(l->schedule)[k];
    uses[k] = residency == LOWER_NONE ? LOWER_NONE : l->id_of[residency];
  }
  return index_algorithm(l, variant.algorithm, &out->aux);
}

static planc_status index_algorithm(lowering *l, const char *name, int32_t *out) {
  *out = pl_map_get(&l->algorithm_index, name, strlen(name));
  if (*out >= 0) return NULL;
  const char *copy;
  PLANC_TRY(pl_arena_strndup(l->memory, name, strlen(name), &copy));
  *out = (int32_t)l->algorithms.len;
  VEC_PUSH(&l->algorithms, copy);
  return pl_map_put(&l->algorithm_index, copy, strlen(copy), *out);
}

/* A copy of what the other replicas sent reads their slots, which lie where this replica has its own gradient. So the
 * instruction names the slot of the own gradient, and says that slot's bytes. */
static planc_instr transfer_of(const lowering *l, int32_t c) {
  const planc_command *command = &l->commands[c];
  bool peers = lower_is_from_peers(l, c);
  int32_t counted = peers || command->residency == PLANC_USER ? command->source : command->residency;
  planc_instr copy = lower_copy_of(command->stream, id_of_side(l, c, command->residency),
                                   id_of_side(l, c, command->source), lower_bytes_of(l, counted));
  copy.peers = peers;
  if (planc_schedule_route(l->schedule, command->stream) == PLANC_STREAM_COMPUTE)
    copy.time_ns = planc_costs_move_ns(l->target->profile, copy.bytes);
  return copy;
}

/* The number of a copy's side in the plan: what is away is in the command's slot. */
static int32_t id_of_side(const lowering *l, int32_t c, int32_t side) {
  if (side == PLANC_USER) return PLANC_USER;
  pl_sides slots = l->addresses.away.of_command[c];
  if (lower_is_on_device(l, side)) return l->id_of[side];
  return l->id_of_slot[side == l->commands[c].residency ? slots.target : slots.source];
}

/* --- Residencies -------------------------------------------------------------------------------------------------- */

/* A plan numbers its residencies in the order in which they are acquired: those of the boundary come first, those of
 * the body get theirs when their acquires are made. The slots of what starts the period away have the numbers of its
 * residencies.
 */
static planc_status number_residencies(lowering *l) {
  int32_t n = planc_schedule_n_boundary(l->schedule);
  PLANC_TRY(PL_NEW(&l->arena, &l->id_of, planc_schedule_n_residencies(l->schedule)));
  PLANC_TRY(PL_NEW(&l->arena, &l->id_of_slot, l->addresses.away.n));
  for (int32_t r = 0; r < n; r++) l->id_of[r] = r;
  for (int32_t h = 0; h < planc_schedule_n_away(l->schedule); h++) l->id_of_slot[h] = h;
  l->plan->n_residencies = n;
  return NULL;
}

static planc_instr open_residency(lowering *l, int32_t residency) {
  const planc_residency *of = &l->residencies[residency];
  planc_boundary at = {of->buffer, of->memory, l->addresses.residencies[residency]};
  l->id_of[residency] = l->plan->n_residencies++;
  return lower_acquire_of(l, l->id_of[residency], at);
}

static planc_instr open_slot(lowering *l, int32_t slot) {
  const pl_slot *of = lower_slot_at(l, slot);
  l->id_of_slot[slot] = l->plan->n_residencies++;
  return lower_acquire_of(l, l->id_of_slot[slot], (planc_boundary){of->buffer, of->memory, of->address});
}
