/* What is in a memory and when, told from a schedule or a plan (occupants.h). */
#include "planner/lower/occupants.h"

#include "plan/memories.h"
#include "plan/plan_trace.h"

/* Occupants while they are collected. */
typedef struct collection {
  const planc_trace *trace;
  pl_arena arena;
  pl_item *items;
  int32_t *what, *instance_at;
  int32_t n, n_positions;
} collection;

static void find_instances(const planc_schedule *schedule, int32_t *instance_at, int32_t n_positions);

planc_status pl_instances_at(pl_arena *arena, const planc_schedule *schedule, const int32_t **out) {
  int32_t n_positions = planc_schedule_n_commands(schedule) + 2, *instance_at;
  PLANC_TRY(PL_NEW(arena, &instance_at, n_positions));
  find_instances(schedule, instance_at, n_positions);
  *out = instance_at;
  return NULL;
}

/* --- Of a schedule ------------------------------------------------------------------------------------------------ */

static planc_status collect_schedule(collection *c, const planc_schedule *s, const pl_addresses *addresses,
                                     planc_memory_kind memory);
static void collect_away(collection *c, const pl_slots *away, planc_memory_kind memory);
static void collect_device(collection *c, const pl_addresses *addresses);
static planc_status tell(collection *c, planc_status collected, planc_memory_kind memory, int64_t room,
                         char **out_text);
static planc_status begin(collection *c, int64_t most, int32_t n_commands);
static void add(collection *c, int32_t what, int64_t bytes, int64_t address, int32_t start, int32_t end);

planc_status pl_schedule_no_place(const planc_schedule *schedule, const pl_addresses *addresses,
                                  planc_memory_kind memory, int64_t room, char **out_text) {
  collection c = {.trace = planc_schedule_trace(schedule)};
  return tell(&c, collect_schedule(&c, schedule, addresses, memory), memory, room, out_text);
}

static planc_status collect_schedule(collection *c, const planc_schedule *s, const pl_addresses *addresses,
                                     planc_memory_kind memory) {
  int32_t n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(begin(c, (int64_t)addresses->n_on_device + addresses->away.n, n_commands));
  find_instances(s, c->instance_at, c->n_positions);
  if (memory != PLANC_MEMORY_DEVICE) {
    collect_away(c, &addresses->away, memory);
  } else if (addresses->virtual_memory.chunk_bytes == 0) {
    collect_device(c, addresses);
  }
  return NULL;
}

static void find_instances(const planc_schedule *schedule, int32_t *instance_at, int32_t n_positions) {
  int32_t next = -1;
  for (int32_t p = n_positions - 1; p >= 0; p--) {
    const planc_command *commands = planc_schedule_commands(schedule);
    bool runs = p > 0 && p <= planc_schedule_n_commands(schedule) && commands[p - 1].kind == PLANC_CMD_EXEC;
    if (runs) next = commands[p - 1].instance;
    instance_at[p] = next;
  }
}

static void collect_away(collection *c, const pl_slots *away, planc_memory_kind memory) {
  for (int32_t k = 0; k < away->n; k++) {
    const pl_slot *slot = &away->slots[k];
    pl_lifetime span = pl_slot_lifetime(slot->opens, slot->closes, c->n_positions - 2);
    if (away->memories.rows[slot->memory].kind == memory)
      add(c, slot->buffer, c->trace->buffers[slot->buffer].bytes, slot->address, span.start, span.end);
  }
}

static void collect_device(collection *c, const pl_addresses *addresses) {
  for (int32_t k = 0; k < addresses->n_on_device; k++) {
    c->what[c->n] = addresses->what[k];
    c->items[c->n++] = addresses->on_device[k];
  }
}

/* --- Of a plan ---------------------------------------------------------------------------------------------------- */

static planc_status collect_plan(collection *c, const planc_plan *plan, planc_memory_kind kind);
static void find_instances_of_body(collection *c, const planc_plan *plan);
static void collect_body(collection *c, const planc_plan *plan, int32_t memory);

planc_status pl_plan_no_place(const planc_plan *plan, planc_memory_kind memory, int64_t room, char **out_text) {
  planc_trace *trace;
  PLANC_TRY(pl_plan_expand(plan, &trace));
  collection c = {.trace = trace};
  planc_status status = tell(&c, collect_plan(&c, plan, memory), memory, room, out_text);
  planc_trace_free(trace);
  return status;
}

static planc_status collect_plan(collection *c, const planc_plan *plan, planc_memory_kind kind) {
  const planc_memory *memory = pl_plan_peak_memory(plan, kind);
  PLANC_TRY(begin(c, (int64_t)plan->n_residencies + plan->body.n, plan->body.n));
  if (memory->arena_bytes <= 0 || memory->chunk_bytes > 0) return NULL;
  find_instances_of_body(c, plan);
  collect_body(c, plan, (int32_t)(memory - plan->memories));
  return NULL;
}

/* Instruction i of the body stands at position i + 1. */
static void find_instances_of_body(collection *c, const planc_plan *plan) {
  int32_t next = -1;
  for (int32_t p = c->n_positions - 1; p >= 0; p--) {
    bool runs = p > 0 && p <= plan->body.n && plan->body.instrs[p - 1].op == PLANC_INSTR_exec;
    if (runs) next = plan->body.instrs[p - 1].id;
    c->instance_at[p] = next;
  }
}

/* Residencies are the first items. */
static void collect_body(collection *c, const planc_plan *plan, int32_t memory) {
  for (int32_t r = 0; r < plan->n_residencies; r++) add(c, 0, 0, 0, 0, c->n_positions);
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    if (plan->boundary[b].memory != memory) continue;
    c->what[b] = plan->boundary[b].buffer;
    c->items[b].bytes = c->trace->buffers[plan->boundary[b].buffer].bytes;
    c->items[b].address = plan->boundary[b].address;
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    int32_t at = i + 1;
    if (instr->op == PLANC_INSTR_release) c->items[instr->id].spans[0].end = at;
    if (instr->op == PLANC_INSTR_exec && plan->streams[instr->stream].on == memory)
      add(c, pl_workspace_of(instr->id), instr->bytes, instr->address, at, at + 1);
    if (instr->op != PLANC_INSTR_acquire || instr->memory != memory) continue;
    c->what[instr->id] = instr->aux;
    c->items[instr->id] =
        (pl_item){.bytes = instr->bytes, .address = instr->address, .spans = {{at, c->n_positions}, {0, 0}}};
  }
}

/* --- Of both ------------------------------------------------------------------------------------------------------ */

/* As in addresses.c, the first command stands at position 1, and one position follows the last. */
static planc_status begin(collection *c, int64_t most, int32_t n_commands) {
  c->n_positions = n_commands + 2;
  PLANC_TRY(PL_NEW(&c->arena, &c->items, most));
  PLANC_TRY(PL_NEW(&c->arena, &c->what, most));
  return PL_NEW(&c->arena, &c->instance_at, c->n_positions);
}

static void add(collection *c, int32_t what, int64_t bytes, int64_t address, int32_t start, int32_t end) {
  c->what[c->n] = what;
  c->items[c->n++] = (pl_item){.bytes = bytes, .address = address, .spans = {{start, end}, {0, 0}}};
}

/* A device is one GPU's; what is told of the other memories is one GPU's part of them. */
static planc_status tell(collection *c, planc_status collected, planc_memory_kind memory, int64_t room,
                         char **out_text) {
  int32_t gpus = memory == PLANC_MEMORY_DEVICE ? 1 : planc_trace_replicas(c->trace);
  pl_occupants occupants = {c->trace, c->items, c->what, c->n, c->instance_at, c->n_positions, gpus};
  planc_status status = collected ? collected : pl_occupants_tell(&occupants, room, out_text);
  pl_arena_free(&c->arena);
  return status;
}
