/* Placement of residencies and workspaces, each alive for a stretch of the command list; slots.c places what is away.
 *
 * Command c stands at position c + 1; at position 0 the boundary is there, and stays so to the last position. Each GPU
 * is placed by itself and counts its own commands only: so replicas that do the same have the same addresses. */
#include "planner/lower/addresses.h"

#include "planc/plan.h"
#include "planner/memory/placement.h"

/* --- Devices -------------------------------------------------------------------------------------------------------
 */

typedef struct device_items {
  int32_t gpu;
  planc_item *items; /* that of a residency of another GPU has no bytes */
  int32_t n;
  int32_t *of_residency;
  int32_t *of_command; /* execs with a workspace; else -1 */
} device_items;

static int32_t gpu_of_residency(const planc_schedule *s, int32_t residency) {
  const planc_trace *trace = planc_schedule_trace(s);
  return planc_gpu_of(trace, trace->buffers[planc_schedule_residencies(s)[residency].buffer].job);
}

static int32_t gpu_of_command(const planc_schedule *s, const planc_command *command) {
  const planc_trace *trace = planc_schedule_trace(s);
  if (command->kind != PLANC_CMD_EXEC) return gpu_of_residency(s, command->residency);
  return planc_gpu_of(trace, trace->instances[command->instance].job);
}

/* A boundary buffer that was away holds its place twice: up to its first release and from its last acquire. */
static planc_status tie_boundary(const planc_schedule *s, device_items *device) {
  const planc_residency *residencies = planc_schedule_residencies(s);
  for (int32_t first = planc_schedule_n_parked(s); first < planc_schedule_n_boundary(s); first++) {
    int32_t buffer = residencies[first].buffer, last = planc_schedule_open(s, buffer);
    if (last == first || gpu_of_residency(s, first) != device->gpu) continue;
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

static planc_status make_device_items(planc_arena *arena, const planc_schedule *s, device_items *device) {
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(PLANC_NEW(arena, &device->items, (int64_t)n_residencies + n_commands));
  PLANC_TRY(PLANC_NEW(arena, &device->of_residency, n_residencies));
  return PLANC_NEW(arena, &device->of_command, n_commands);
}

static planc_status collect_device_items(const planc_schedule *s, device_items *device) {
  const planc_trace *trace = planc_schedule_trace(s);
  const planc_residency *residencies = planc_schedule_residencies(s);
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s), at = 0, own = 0;
  for (int32_t c = 0; c < n_commands; c++) own += gpu_of_command(s, &planc_schedule_commands(s)[c]) == device->gpu;
  for (int32_t r = 0; r < n_residencies; r++) {
    bool here = gpu_of_residency(s, r) == device->gpu && r >= planc_schedule_n_parked(s);
    device->of_residency[r] = r;
    device->items[r] = (planc_item){.bytes = here ? trace->buffers[residencies[r].buffer].bytes : 0,
                                    .address = residencies[r].address,
                                    .spans = {{0, own + 2}, {0, 0}}};
  }
  device->n = n_residencies;
  for (int32_t c = 0; c < n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    device->of_command[c] = -1;
    if (gpu_of_command(s, command) != device->gpu) continue;
    at++;
    if (command->kind == PLANC_CMD_ACQUIRE) device->items[command->residency].spans[0].start = at;
    if (command->kind == PLANC_CMD_RELEASE) device->items[command->residency].spans[0].end = at;
    if (command->kind != PLANC_CMD_EXEC) continue;
    int64_t workspace = planc_schedule_variant(s, command).workspace_bytes;
    if (workspace <= 0) continue;
    device->of_command[c] = device->n;
    device->items[device->n++] =
        (planc_item){.bytes = workspace, .address = command->address, .spans = {{at, at + 1}, {0, 0}}};
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

/* Places what is on one GPU. */
static planc_status place_device(const planc_schedule *s, device_items *device, int64_t *of_residency,
                                 int64_t *of_command, planc_addresses *out) {
  int64_t top;
  const planc_virtual_memory *memory = planc_schedule_memory(s);
  PLANC_TRY(collect_device_items(s, device));
  if (memory->chunk_bytes > 0) PLANC_TRY(require_stated(device));
  PLANC_TRY(planc_context(planc_place(device->items, device->n, &top), "device addresses"));
  if (memory->chunk_bytes > 0) top = memory->arena_bytes;
  if (top > out->arena_bytes) out->arena_bytes = top;
  for (int32_t r = planc_schedule_n_parked(s); r < planc_schedule_n_residencies(s); r++) {
    if (gpu_of_residency(s, r) != device->gpu) continue;
    of_residency[r] = device->items[device->of_residency[r]].address;
  }
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    if (device->of_command[c] >= 0) of_command[c] = device->items[device->of_command[c]].address;
  }
  return NULL;
}

static planc_status assign_devices(planc_arena *arena, const planc_schedule *s, planc_addresses *out) {
  const planc_trace *trace = planc_schedule_trace(s);
  device_items device = {0};
  int64_t *of_residency, *of_command;
  PLANC_TRY(PLANC_NEW(arena, &of_command, planc_schedule_n_commands(s)));
  PLANC_TRY(PLANC_NEW(arena, &of_residency, planc_schedule_n_residencies(s)));
  PLANC_TRY(make_device_items(arena, s, &device));
  out->gpus = 1;
  for (int32_t j = 0; j < trace->n_jobs; j++) {
    if (planc_gpu_of(trace, j) >= out->gpus) out->gpus = planc_gpu_of(trace, j) + 1;
  }
  for (; device.gpu < out->gpus; device.gpu++) {
    PLANC_TRY(place_device(s, &device, of_residency, of_command, out));
  }
  out->residencies = of_residency;
  out->workspaces = of_command;
  return NULL;
}

/* --- All -----------------------------------------------------------------------------------------------------------
 */

planc_status planc_assign_addresses(planc_arena *arena, const planc_schedule *schedule, const planc_problem *problem,
                                    planc_addresses *out) {
  PLANC_TRY(assign_devices(arena, schedule, out));
  return planc_slots_make(arena, schedule, problem, &out->away);
}
