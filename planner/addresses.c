/* Placement of residencies, workspaces and host slots, each alive for a stretch of the command list.
 *
 * Command c stands at position c + 1; at position 0 the boundary is resident, and stays so to the last position. */
#include "addresses.h"

#include "placement.h"
#include "planc/plan.h"

/* --- Device --------------------------------------------------------------------------------------------------------
 */

typedef struct device_items {
  planc_item *items;
  int32_t n;
  int32_t *of_residency;
  int32_t *of_command; /* execs with a workspace; else -1 */
} device_items;

/* A boundary buffer that was away holds its place twice: up to its first release and from its last acquire. */
static planc_status tie_boundary(const planc_schedule *s, device_items *device) {
  const planc_residency *residencies = planc_schedule_residencies(s);
  for (int32_t first = 0; first < planc_schedule_n_boundary(s); first++) {
    int32_t buffer = residencies[first].buffer, last = planc_schedule_open(s, buffer);
    if (last == first) continue;
    planc_item *item = &device->items[device->of_residency[first]];
    int64_t address = device->items[device->of_residency[last]].address;
    if (item->address == PLANC_BLANK) item->address = address;
    if (address != PLANC_BLANK && address != item->address) {
      return planc_error(PLANC_INTERNAL, "buffer %s: starts the period at address %lld and ends it at %lld",
                         planc_trace_buffer_name(planc_schedule_trace(s), buffer), (long long)item->address,
                         (long long)address);
    }
    item->spans[1] = device->items[device->of_residency[last]].spans[0];
    device->items[device->of_residency[last]].bytes = 0;
    device->of_residency[last] = device->of_residency[first];
  }
  return NULL;
}

static planc_status collect_device_items(planc_arena *arena, const planc_schedule *s, device_items *device) {
  const planc_trace *trace = planc_schedule_trace(s);
  const planc_residency *residencies = planc_schedule_residencies(s);
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(PLANC_NEW(arena, &device->items, (int64_t)n_residencies + n_commands));
  PLANC_TRY(PLANC_NEW(arena, &device->of_residency, n_residencies));
  PLANC_TRY(PLANC_NEW(arena, &device->of_command, n_commands));
  for (int32_t r = 0; r < n_residencies; r++) {
    device->of_residency[r] = r;
    device->items[r] = (planc_item){.bytes = trace->buffers[residencies[r].buffer].bytes,
                                    .address = residencies[r].address,
                                    .spans = {{0, n_commands + 2}, {0, 0}}};
  }
  device->n = n_residencies;
  for (int32_t c = 0; c < n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    device->of_command[c] = -1;
    if (command->kind == PLANC_CMD_ACQUIRE) device->items[command->residency].spans[0].start = c + 1;
    if (command->kind == PLANC_CMD_RELEASE) device->items[command->residency].spans[0].end = c + 1;
    if (command->kind != PLANC_CMD_EXEC) continue;
    int64_t workspace = planc_schedule_variant(s, command).workspace_bytes;
    if (workspace <= 0) continue;
    device->of_command[c] = device->n;
    device->items[device->n++] =
        (planc_item){.bytes = workspace, .address = command->address, .spans = {{c + 1, c + 2}, {0, 0}}};
  }
  return tie_boundary(s, device);
}

/* Two addresses of virtual memory may be the same byte: only whoever mapped them knows which are free. */
static planc_status require_stated(const device_items *device) {
  for (int32_t i = 0; i < device->n; i++) {
    if (device->items[i].bytes > 0 && device->items[i].address == PLANC_BLANK) {
      return planc_error(PLANC_INTERNAL, "an address of virtual memory is not stated");
    }
  }
  return NULL;
}

static planc_status assign_device(planc_arena *arena, const planc_schedule *s, int64_t *of_command,
                                  planc_addresses *out) {
  device_items device;
  int64_t *of_residency;
  int32_t n_residencies = planc_schedule_n_residencies(s);
  PLANC_TRY(PLANC_NEW(arena, &of_residency, n_residencies));
  PLANC_TRY(collect_device_items(arena, s, &device));
  const planc_virtual_memory *memory = planc_schedule_memory(s);
  if (memory->chunk_bytes > 0) PLANC_TRY(require_stated(&device));
  PLANC_TRY(planc_context(planc_place(device.items, device.n, &out->arena_bytes), "device addresses"));
  if (memory->chunk_bytes > 0) out->arena_bytes = memory->arena_bytes;
  for (int32_t r = 0; r < n_residencies; r++) of_residency[r] = device.items[device.of_residency[r]].address;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    if (device.of_command[c] >= 0) of_command[c] = device.items[device.of_command[c]].address;
  }
  out->residencies = of_residency;
  return NULL;
}

/* --- Host ----------------------------------------------------------------------------------------------------------
 */

/* A version occupies host bytes from its offload to its last prefetch. */
static planc_status assign_host(planc_arena *arena, const planc_schedule *s, int64_t *of_command,
                                planc_addresses *out) {
  int32_t n_commands = planc_schedule_n_commands(s), n = 0;
  const planc_command *commands = planc_schedule_commands(s);
  int32_t *last_prefetch, *slot_of; /* by offload command */
  planc_item *slots;
  PLANC_TRY(PLANC_NEW(arena, &last_prefetch, n_commands));
  PLANC_TRY(PLANC_NEW(arena, &slot_of, n_commands));
  PLANC_TRY(PLANC_NEW(arena, &slots, n_commands));
  for (int32_t c = 0; c < n_commands; c++) {
    if (commands[c].kind == PLANC_CMD_PREFETCH && !commands[c].user) last_prefetch[commands[c].source] = c;
  }
  for (int32_t c = 0; c < n_commands; c++) {
    if (commands[c].kind != PLANC_CMD_OFFLOAD || last_prefetch[c] == 0) continue;
    int32_t buffer = planc_schedule_residencies(s)[commands[c].residency].buffer;
    slot_of[c] = n;
    slots[n++] = (planc_item){.bytes = planc_schedule_trace(s)->buffers[buffer].bytes,
                              .address = PLANC_BLANK,
                              .spans = {{c + 1, last_prefetch[c] + 2}, {0, 0}}};
  }
  PLANC_TRY(planc_context(planc_place(slots, n, &out->host_arena_bytes), "host slots"));
  for (int32_t c = 0; c < n_commands; c++) {
    bool offload = commands[c].kind == PLANC_CMD_OFFLOAD;
    if (!offload && commands[c].kind != PLANC_CMD_PREFETCH) continue;
    int32_t origin = offload ? c : commands[c].source;
    if (commands[c].user) {
      of_command[c] = PLANC_USER;
    } else {
      of_command[c] = last_prefetch[origin] > 0 ? slots[slot_of[origin]].address : PLANC_DROPPED;
    }
  }
  return NULL;
}

planc_status planc_assign_addresses(planc_arena *arena, const planc_schedule *schedule, planc_addresses *out) {
  int64_t *of_command;
  PLANC_TRY(PLANC_NEW(arena, &of_command, planc_schedule_n_commands(schedule)));
  PLANC_TRY(assign_device(arena, schedule, of_command, out));
  PLANC_TRY(assign_host(arena, schedule, of_command, out));
  out->commands = of_command;
  return NULL;
}
