/* Placement of residencies and workspaces, each alive for a stretch of the command list; slots.c places what is away.
 *
 * Command c stands at position c + 1; at position 0 the boundary is there, and stays so to the last position. */
#include "planner/lower/addresses.h"

#include <string.h>

#include "planner/base/code.h"
#include "planner/lower/kept_places.h"
#include "planner/lower/occupants.h"
#include "planner/memory/paged_places.h"
#include "planner/memory/placement_cache.h"
#include "planner/memory/room_places.h"
#include "util/math.h"

typedef struct device_items {
  pl_item *items; /* those of residencies first; that of one away has no bytes */
  int32_t *what;  /* by item */
  int32_t n;
  int32_t *of_residency;
  int32_t *of_command; /* execs with a workspace; else -1 */
} device_items;

static planc_status make_device_items(pl_arena *arena, const planc_schedule *s, device_items *device);
static planc_status collect_device_items(const planc_schedule *s, const int32_t *ends, device_items *device);
static planc_status tie_boundary(const planc_schedule *s, device_items *device);
static bool is_large(const pl_item *item, const planc_placing *what, int32_t horizon);
static planc_status place_rest(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                               const pl_placing *placing, const device_items *device, pl_addresses *out);
static planc_status place_as_stated(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                                    const device_items *device, pl_addresses *out);
static planc_status place_blank(pl_arena *arena, const planc_schedule *s, const planc_terms *terms, int64_t room,
                                const device_items *device, pl_addresses *out);
static bool states_any(const planc_schedule *s);

planc_status pl_assign_device_addresses(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                                        int64_t room, const pl_placing *placing, pl_addresses *out) {
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  device_items device = {0};
  int64_t *of_residency, *of_command;
  int32_t *ends;
  PLANC_TRY(PL_NEW(arena, &of_command, n_commands));
  PLANC_TRY(PL_NEW(arena, &of_residency, n_residencies));
  PLANC_TRY(make_device_items(arena, s, &device));
  PLANC_TRY(PL_NEW(arena, &ends, n_commands));
  planc_schedule_workspace_ends(s, ends);
  PLANC_TRY(collect_device_items(s, ends, &device));
  for (int32_t i = 0; i < device.n && !placing->what.rest; i++)
    if (!is_large(&device.items[i], &placing->what, n_commands + 2)) device.items[i].bytes = 0;
  out->virtual_memory = *planc_schedule_virtual_memory(s);
  if (placing->what.rest)
    PLANC_TRY(planc_context(place_rest(arena, s, terms, placing, &device, out), "device addresses"));
  else if (out->virtual_memory.chunk_bytes > 0 || states_any(s))
    PLANC_TRY(place_as_stated(arena, s, terms, &device, out));
  else
    PLANC_TRY(planc_context(place_blank(arena, s, terms, room, &device, out), "device addresses"));
  for (int32_t r = 0; r < n_residencies; r++) of_residency[r] = device.items[device.of_residency[r]].address;
  for (int32_t c = 0; c < n_commands; c++)
    if (device.of_command[c] >= 0) of_command[c] = device.items[device.of_command[c]].address;
  out->residencies = of_residency;
  out->workspaces = of_command;
  out->on_device = device.items;
  out->what = device.what;
  out->n_on_device = device.n;
  return NULL;
}

/* What is there all the time takes its bytes from the others at every moment, however few they are. */
static bool is_large(const pl_item *item, const planc_placing *what, int32_t horizon) {
  return pl_align_up(item->bytes, PLANC_ALIGNMENT) >= what->large_bytes || pl_item_stays(item, horizon);
}

static planc_status place_rest(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                               const pl_placing *placing, const device_items *device, pl_addresses *out) {
  const int32_t n_commands = planc_schedule_n_commands(s);
  pl_overlap none;
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++) {
    pl_item *item = &device->items[r];
    if (is_large(item, &placing->what, n_commands + 2)) item->address = placing->residencies[r];
  }
  for (int32_t c = 0; c < n_commands; c++) {
    pl_item *item = device->of_command[c] >= 0 ? &device->items[device->of_command[c]] : NULL;
    if (item && is_large(item, &placing->what, n_commands + 2)) item->address = placing->workspaces[c];
  }
  PLANC_TRY(pl_keep_places(arena, s, device->items, device->n));
  return pl_placement_cache_place(terms->placement_cache, device->items, device->n, &out->arena_bytes, &none);
}

static bool states_any(const planc_schedule *s) {
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++)
    if (planc_schedule_residencies(s)[r].address != PLANC_BLANK && !planc_schedule_is_away(s, r)) return true;
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    if (command->kind == PLANC_CMD_EXEC && command->address != PLANC_BLANK) return true;
  }
  return false;
}

static planc_status make_device_items(pl_arena *arena, const planc_schedule *s, device_items *device) {
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  PLANC_TRY(PL_NEW(arena, &device->items, (int64_t)n_residencies + n_commands));
  PLANC_TRY(PL_NEW(arena, &device->what, (int64_t)n_residencies + n_commands));
  PLANC_TRY(PL_NEW(arena, &device->of_residency, n_residencies));
  return PL_NEW(arena, &device->of_command, n_commands);
}

/* `ends` is by command: where a workspace's life ends. */
static planc_status collect_device_items(const planc_schedule *s, const int32_t *ends, device_items *device) {
  const planc_trace *trace = planc_schedule_trace(s);
  const planc_residency *residencies = planc_schedule_residencies(s);
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  for (int32_t r = 0; r < n_residencies; r++) {
    bool here = !planc_schedule_is_away(s, r);
    device->of_residency[r] = r;
    device->what[r] = residencies[r].buffer;
    device->items[r] = (pl_item){.bytes = here ? trace->buffers[residencies[r].buffer].bytes : 0,
                                 .address = residencies[r].address,
                                 .spans = {{0, n_commands + 2}, {0, 0}}};
  }
  device->n = n_residencies;
  for (int32_t c = 0; c < n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    int32_t at = c + 1;
    device->of_command[c] = -1;
    if (command->kind == PLANC_CMD_ACQUIRE) device->items[command->residency].spans[0].start = at;
    if (command->kind == PLANC_CMD_RELEASE) device->items[command->residency].spans[0].end = at;
    if (command->kind != PLANC_CMD_EXEC) continue;
    int64_t workspace = planc_schedule_variant(s, command).workspace_bytes;
    if (workspace <= 0) continue;
    device->of_command[c] = device->n;
    device->what[device->n] = pl_workspace_of(command->instance);
    device->items[device->n++] =
        (pl_item){.bytes = workspace, .address = command->address, .spans = {{at, ends[c] + 1}, {0, 0}}};
  }
  return tie_boundary(s, device);
}

/* A boundary buffer that was away holds its place twice: up to its first release and from its last acquire. */
static planc_status tie_boundary(const planc_schedule *s, device_items *device) {
  const planc_residency *residencies = planc_schedule_residencies(s);
  for (int32_t first = planc_schedule_n_away(s); first < planc_schedule_n_boundary(s); first++) {
    int32_t buffer = residencies[first].buffer, last = planc_schedule_open(s, buffer);
    if (last == first) continue;
    pl_item *item = &device->items[device->of_residency[first]];
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

/* --- As the policy says ------------------------------------------------------------------------------------------- */

static planc_status require_stated(const device_items *device);
static planc_status refuse_overlap(pl_arena *arena, const planc_schedule *s, const device_items *device,
                                   pl_overlap overlap);

/* Where some addresses are stated the rest is placed beside them; all of virtual memory are. */
static planc_status place_as_stated(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                                    const device_items *device, pl_addresses *out) {
  const bool is_virtual = out->virtual_memory.chunk_bytes > 0;
  if (!is_virtual && terms->placement != PLANC_PLACEMENT_BEST_FIT)
    return planc_error(PLANC_INTERNAL, "addresses are stated that are not of virtual memory");
  if (is_virtual) PLANC_TRY(require_stated(device));
  pl_overlap overlap = {0};
  planc_status status =
      pl_placement_cache_place(terms->placement_cache, device->items, device->n, &out->arena_bytes, &overlap);
  if (planc_status_code(status) == PLANC_INTERNAL) {
    planc_status_free(status);
    status = refuse_overlap(arena, s, device, overlap);
  }
  PLANC_TRY(planc_context(status, "device addresses"));
  if (is_virtual) out->arena_bytes = out->virtual_memory.arena_bytes;
  return NULL;
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

/* Names the two items of a schedule whose stated addresses overlap. */
static planc_status refuse_overlap(pl_arena *arena, const planc_schedule *s, const device_items *device,
                                   pl_overlap overlap) {
  pl_occupants occupants = {
      .trace = planc_schedule_trace(s), .items = device->items, .what = device->what, .n = device->n};
  PLANC_TRY(pl_instances_at(arena, s, &occupants.instance_at));
  return pl_occupants_overlap(&occupants, overlap);
}

/* --- As planc finds them ------------------------------------------------------------------------------------------ */

static planc_status place_items(pl_arena *arena, const planc_terms *terms, int64_t room, const device_items *device,
                                pl_addresses *out);

/* With places that are kept so that copies need not wait (kept_places.h); without them where that needs more than the
 * room. */
static planc_status place_blank(pl_arena *arena, const planc_schedule *s, const planc_terms *terms, int64_t room,
                                const device_items *device, pl_addresses *out) {
  const size_t bytes = (size_t)device->n * sizeof *device->items;
  pl_item *as_they_are;
  if (room <= 0) return place_items(arena, terms, room, device, out);
  PLANC_TRY(pl_arena_copy(arena, device->items, device->n, sizeof *as_they_are, (void *)&as_they_are));
  PLANC_TRY(pl_keep_places(arena, s, device->items, device->n));
  const bool keeps = memcmp(as_they_are, device->items, bytes) != 0;
  PLANC_TRY(place_items(arena, terms, room, device, out));
  if (out->arena_bytes <= room || !keeps) return NULL;
  memcpy(device->items, as_they_are, bytes);
  return place_items(arena, terms, room, device, out);
}

static planc_status place_in_pages(pl_arena *arena, const planc_terms *terms, int64_t room, const device_items *device,
                                   planc_virtual_memory *out);
static planc_status place_in_one_piece(pl_arena *arena, const planc_terms *terms, int64_t room,
                                       const device_items *device, int64_t *out_bytes);

static planc_status place_items(pl_arena *arena, const planc_terms *terms, int64_t room, const device_items *device,
                                pl_addresses *out) {
  if (terms->placement != PLANC_PLACEMENT_PAGED)
    return place_in_one_piece(arena, terms, room, device, &out->arena_bytes);
  PLANC_TRY(place_in_pages(arena, terms, room, device, &out->virtual_memory));
  out->arena_bytes = out->virtual_memory.arena_bytes;
  return NULL;
}

static planc_status place_in_one_piece(pl_arena *arena, const planc_terms *terms, int64_t room,
                                       const device_items *device, int64_t *out_bytes) {
  pl_overlap none;
  planc_placement_cache *cache = terms->placement_cache;
  return room > 0 ? pl_place_in_room(arena, cache, device->items, device->n, room, out_bytes)
                  : pl_placement_cache_place(cache, device->items, device->n, out_bytes, &none);
}

/* On pages that may be apart. Where these come to more than the room, or none is told, or would be too many to map,
 * pages in one piece may be fewer: most data may be small. */
static planc_status place_in_pages(pl_arena *arena, const planc_terms *terms, int64_t room, const device_items *device,
                                   planc_virtual_memory *out) {
  const size_t bytes = (size_t)device->n * sizeof *device->items;
  const int64_t page_bytes = pl_arena_chunk(terms);
  pl_item *blank, *apart;
  bool is_placed;
  int64_t top;
  PLANC_TRY(pl_arena_copy(arena, device->items, device->n, sizeof *blank, (void *)&blank));
  PLANC_TRY(pl_place_in_pages(arena, device->items, device->n, page_bytes, &is_placed, out));
  if (is_placed && out->arena_bytes <= room) return NULL;
  PLANC_TRY(pl_arena_copy(arena, device->items, device->n, sizeof *apart, (void *)&apart));
  memcpy(device->items, blank, bytes);
  PLANC_TRY(place_in_one_piece(arena, terms, room, device, &top));
  if (!is_placed || pl_align_up(top, page_bytes) < out->arena_bytes)
    return pl_map_one_piece(arena, page_bytes, top, out);
  memcpy(device->items, apart, bytes);
  return NULL;
}
