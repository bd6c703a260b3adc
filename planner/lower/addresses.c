/* Placement of residencies and workspaces, each alive for a stretch of the command list; slots.c places what is away.
 *
 * Command c stands at position c + 1; at position 0 the boundary is there, and stays so to the last position. */
#include "planner/lower/addresses.h"

#include <string.h>

#include "planner/lower/kept_places.h"
#include "planner/lower/occupants.h"
#include "planner/memory/allocator.h"
#include "planner/memory/paged_places.h"
#include "planner/memory/placement_cache.h"
#include "planner/memory/placement_search.h"
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
static planc_status place_as_stated(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                                    const device_items *device, pl_addresses *out);
static planc_status place_in_pages(pl_arena *arena, const planc_schedule *s, const planc_terms *terms, int64_t room,
                                   const device_items *device, pl_addresses *out);
static planc_status place_in_one_piece(pl_arena *arena, const planc_schedule *s, const planc_terms *terms, int64_t room,
                                       const device_items *device, int64_t *out_bytes);
static planc_status place_device(pl_arena *arena, const planc_schedule *s, planc_placement_cache *cache,
                                 const device_items *device, int64_t *out_bytes);
static planc_status place_in_room(pl_arena *arena, const planc_schedule *s, planc_placement_cache *cache, int64_t room,
                                  const device_items *device, int64_t *out_bytes);
static planc_status refuse_overlap(pl_arena *arena, const planc_schedule *s, const device_items *device,
                                   pl_overlap overlap);
static bool states_any(const planc_schedule *s);

planc_status pl_assign_device_addresses(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                                        int64_t room, int64_t least_bytes, pl_addresses *out) {
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
  for (int32_t i = 0; i < device.n; i++)
    if (device.items[i].bytes < least_bytes) device.items[i].bytes = 0;
  out->virtual_memory = *planc_schedule_virtual_memory(s);
  if (out->virtual_memory.chunk_bytes > 0 || states_any(s))
    PLANC_TRY(place_as_stated(arena, s, terms, &device, out));
  else if (terms->placement == PLANC_PLACEMENT_PAGED)
    PLANC_TRY(place_in_pages(arena, s, terms, room, &device, out));
  else
    PLANC_TRY(place_in_one_piece(arena, s, terms, room, &device, &out->arena_bytes));
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

/* Where some addresses are stated the rest is placed beside them; all of virtual memory are. */
static planc_status place_as_stated(pl_arena *arena, const planc_schedule *s, const planc_terms *terms,
                                    const device_items *device, pl_addresses *out) {
  const bool is_virtual = out->virtual_memory.chunk_bytes > 0;
  if (!is_virtual && terms->placement != PLANC_PLACEMENT_BEST_FIT)
    return planc_error(PLANC_INTERNAL, "addresses are stated that are not of virtual memory");
  if (is_virtual) PLANC_TRY(require_stated(device));
  PLANC_TRY(place_device(arena, s, terms->placement_cache, device, &out->arena_bytes));
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

/* --- In pages ----------------------------------------------------------------------------------------------------- */

static planc_status keep_places(pl_arena *arena, const planc_schedule *s, const device_items *device,
                                pl_item **out_as_they_are);
static planc_status place_apart(pl_arena *arena, const planc_schedule *s, int64_t page_bytes, int64_t room,
                                const device_items *device, planc_virtual_memory *out);
static planc_status map_one_piece(pl_arena *arena, int64_t page_bytes, int64_t bytes, planc_virtual_memory *out);

/* Where any pages for all take more than the room, or none is told, pages in one piece may take less: most data may be
 * small. */
static planc_status place_in_pages(pl_arena *arena, const planc_schedule *s, const planc_terms *terms, int64_t room,
                                   const device_items *device, pl_addresses *out) {
  const size_t bytes = (size_t)device->n * sizeof *device->items;
  const int64_t page_bytes = pl_allocator_chunk(terms);
  pl_item *blank, *apart;
  int64_t top;
  PLANC_TRY(pl_arena_copy(arena, device->items, device->n, sizeof *blank, (void *)&blank));
  PLANC_TRY(place_apart(arena, s, page_bytes, room, device, &out->virtual_memory));
  if (out->virtual_memory.arena_bytes > room) {
    PLANC_TRY(pl_arena_copy(arena, device->items, device->n, sizeof *apart, (void *)&apart));
    memcpy(device->items, blank, bytes);
    PLANC_TRY(place_in_one_piece(arena, s, terms, room, device, &top));
    if (pl_align_up(top, page_bytes) < out->virtual_memory.arena_bytes)
      PLANC_TRY(map_one_piece(arena, page_bytes, top, &out->virtual_memory));
    else
      memcpy(device->items, apart, bytes);
  }
  out->arena_bytes = out->virtual_memory.arena_bytes;
  return NULL;
}

/* With places that are kept so that copies need not wait (kept_places.h); without them where that needs more than the
 * room. */
static planc_status place_apart(pl_arena *arena, const planc_schedule *s, int64_t page_bytes, int64_t room,
                                const device_items *device, planc_virtual_memory *out) {
  pl_item *as_they_are = NULL;
  if (room > 0) PLANC_TRY(keep_places(arena, s, device, &as_they_are));
  PLANC_TRY(pl_place_in_pages(arena, device->items, device->n, page_bytes, out));
  if (!as_they_are || out->arena_bytes <= room) return NULL;
  memcpy(device->items, as_they_are, (size_t)device->n * sizeof *as_they_are);
  return pl_place_in_pages(arena, device->items, device->n, page_bytes, out);
}

static planc_status map_one_piece(pl_arena *arena, int64_t page_bytes, int64_t bytes, planc_virtual_memory *out) {
  planc_mapping *all;
  PLANC_TRY(PL_NEW(arena, &all, 1));
  all->n = pl_align_up(bytes, page_bytes) / page_bytes;
  *out = (planc_virtual_memory){
      .arena_bytes = all->n * page_bytes, .chunk_bytes = page_bytes, .paged = true, .mappings = all, .n = all->n > 0};
  return NULL;
}

/* *out_as_they_are is what the items were before, NULL where they are so still. */
static planc_status keep_places(pl_arena *arena, const planc_schedule *s, const device_items *device,
                                pl_item **out_as_they_are) {
  const size_t bytes = (size_t)device->n * sizeof **out_as_they_are;
  pl_item *before;
  PLANC_TRY(PL_NEW(arena, &before, device->n));
  memcpy(before, device->items, bytes);
  PLANC_TRY(pl_keep_places(arena, s, device->items, device->n));
  *out_as_they_are = memcmp(before, device->items, bytes) == 0 ? NULL : before;
  return NULL;
}

/* --- In one piece ------------------------------------------------------------------------------------------------- */

static planc_status place_device(pl_arena *arena, const planc_schedule *s, planc_placement_cache *cache,
                                 const device_items *device, int64_t *out_bytes) {
  pl_overlap overlap = {0};
  planc_status status = pl_placement_cache_place(cache, device->items, device->n, out_bytes, &overlap);
  if (planc_status_code(status) == PLANC_INTERNAL) {
    planc_status_free(status);
    status = refuse_overlap(arena, s, device, overlap);
  }
  return planc_context(status, "device addresses");
}

static planc_status place_or_search(pl_arena *arena, const planc_schedule *s, planc_placement_cache *cache,
                                    int64_t room, int64_t base, const device_items *device, int64_t *out_bytes);
static planc_status place_within(pl_arena *arena, int64_t room, int64_t base, const device_items *device,
                                 int64_t *out_bytes);
static int64_t put_lowest(const device_items *device);

static planc_status place_in_one_piece(pl_arena *arena, const planc_schedule *s, const planc_terms *terms, int64_t room,
                                       const device_items *device, int64_t *out_bytes) {
  planc_placement_cache *cache = terms->placement_cache;
  return room > 0 ? place_in_room(arena, s, cache, room, device, out_bytes)
                  : place_device(arena, s, cache, device, out_bytes);
}

/* With places that are kept so that copies need not wait (kept_places.h); without them where that needs more than the
 * room. */
static planc_status place_in_room(pl_arena *arena, const planc_schedule *s, planc_placement_cache *cache, int64_t room,
                                  const device_items *device, int64_t *out_bytes) {
  pl_item *as_they_are;
  const int64_t base = put_lowest(device);
  PLANC_TRY(keep_places(arena, s, device, &as_they_are));
  PLANC_TRY(place_or_search(arena, s, cache, room, base, device, out_bytes));
  if (*out_bytes <= room || !as_they_are) return NULL;
  memcpy(device->items, as_they_are, (size_t)device->n * sizeof *as_they_are);
  return place_or_search(arena, s, cache, room, base, device, out_bytes);
}

static planc_status place_or_search(pl_arena *arena, const planc_schedule *s, planc_placement_cache *cache,
                                    int64_t room, int64_t base, const device_items *device, int64_t *out_bytes) {
  PLANC_TRY(place_device(arena, s, cache, device, out_bytes));
  return *out_bytes > room ? place_within(arena, room, base, device, out_bytes) : NULL;
}

/* The position at which the last item ends. */
static int32_t horizon_of(const device_items *device) {
  int32_t horizon = 0;
  for (int32_t i = 0; i < device->n; i++)
    for (int32_t k = 0; k < 2; k++) horizon = (int32_t)pl_max(horizon, device->items[i].spans[k].end);
  return horizon;
}

/* What lives all the time gets addresses from 0 on: below it nothing else finds a place at any time, so that it is in
 * nobody's way there, and fewer are left to search addresses for. Returns the address where it ends. */
static int64_t put_lowest(const device_items *device) {
  int64_t top = 0;
  int32_t horizon = horizon_of(device);
  for (int32_t i = 0; i < device->n; i++) {
    pl_item *item = &device->items[i];
    if (item->bytes <= 0 || item->spans[0].start > 0 || item->spans[0].end < horizon) continue;
    item->address = top;
    top = pl_add_saturate(top, pl_align_up(item->bytes, PLANC_ALIGNMENT));
  }
  return top;
}

/* The items that addresses are searched for. */
typedef struct item_part {
  pl_item *items;  /* without addresses, sizes rounded up; the large ones first */
  int32_t *source; /* by item: which one of all it is */
  int32_t n, n_large;
} item_part;

static planc_status collect_movable(pl_arena *arena, const device_items *device, int64_t large, int64_t base,
                                    item_part *out);
static planc_status search_places(item_part *part, int64_t room, int64_t *out_top);

/* What lies below `base` stays there; the others are placed by repairs, or else, if these come near the room, by
 * search. Where not all find a place within the room they keep the addresses that they have. */
static planc_status place_within(pl_arena *arena, int64_t room, int64_t base, const device_items *device,
                                 int64_t *out_bytes) {
  enum { SMALL = 4096 }; /* part of the room that a small item is less than: with 1024 they often find no place */
  enum { NEAR = 8 };     /* part of the room that repairs may miss it by: none was found by search beyond */
  const int64_t above = (room - base) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  item_part part;
  bool is_placed;
  int64_t top, least;
  if (base >= room) return NULL;
  PLANC_TRY(collect_movable(arena, device, pl_max(room / SMALL, 1), base, &part));
  PLANC_TRY(pl_place_by_repairs(part.items, part.n, part.n_large, above, &is_placed, &least));
  if (!is_placed && least - above > above / NEAR) return NULL;
  if (is_placed)
    PLANC_TRY(pl_place(part.items, part.n, &top, NULL));
  else
    PLANC_TRY(search_places(&part, above, &top));
  if (top > above) return NULL;
  for (int32_t k = 0; k < part.n; k++) device->items[part.source[k]].address = base + part.items[k].address;
  *out_bytes = base + top;
  return NULL;
}

static planc_status search_large(item_part *part, int64_t room, bool *out_placed);

/* Places the large ones by complete search, and the small ones, which are many and take little, between them. Where
 * these end above the room the large ones are placed again, in so much less of it, and then in more and more less.
 * *out_top is above the room where that finds no places. */
static planc_status search_places(item_part *part, int64_t room, int64_t *out_top) {
  enum { TIMES = 4 };
  int64_t for_large = room;
  *out_top = INT64_MAX;
  for (int32_t k = 0; k < TIMES && for_large > 0 && room < *out_top; k++) {
    bool is_placed = false;
    for (int32_t i = 0; i < part->n; i++) part->items[i].address = PLANC_BLANK;
    PLANC_TRY(search_large(part, for_large, &is_placed));
    if (!is_placed) return NULL;
    PLANC_TRY(pl_place(part->items, part->n, out_top, NULL));
    for_large -= pl_mul_saturate(pl_max(*out_top - room, 0), 1 << k);
  }
  return NULL;
}

/* It ends undecided after so many visits. */
static planc_status search_large(item_part *part, int64_t room, bool *out_placed) {
  enum { VISITS_PER_ITEM = 20000, MOST_VISITS = 12000000 };
  int64_t visits = pl_min((int64_t)VISITS_PER_ITEM * part->n, MOST_VISITS);
  pl_verdict verdict;
  if (part->n_large == 0) return NULL;
  PLANC_TRY(pl_placement_search(part->items, NULL, part->n_large, room, &visits, &verdict));
  *out_placed = verdict == PL_PLACED;
  return NULL;
}

static bool states_any(const planc_schedule *s) {
  for (int32_t r = 0; r < planc_schedule_n_residencies(s); r++)
    if (planc_schedule_residencies(s)[r].address != PLANC_BLANK && !planc_schedule_is_away(s, r)) return true;
  return false;
}

static void add_movable(const device_items *device, int64_t least, int64_t most, int64_t base, item_part *out);

/* Of what lies at `base` or above it: items of at least `large` bytes, then the others. */
static planc_status collect_movable(pl_arena *arena, const device_items *device, int64_t large, int64_t base,
                                    item_part *out) {
  *out = (item_part){.n = 0};
  PLANC_TRY(PL_NEW(arena, &out->items, device->n));
  PLANC_TRY(PL_NEW(arena, &out->source, device->n));
  add_movable(device, large, INT64_MAX, base, out);
  out->n_large = out->n;
  add_movable(device, 1, large - 1, base, out);
  return NULL;
}

static void add_movable(const device_items *device, int64_t least, int64_t most, int64_t base, item_part *out) {
  for (int32_t i = 0; i < device->n; i++) {
    const pl_item *item = &device->items[i];
    if (item->bytes < least || item->bytes > most || item->address < base) continue;
    out->items[out->n] = *item;
    out->items[out->n].bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT);
    out->items[out->n].address = PLANC_BLANK;
    out->source[out->n++] = i;
  }
}

/* Names the two items of a schedule whose stated addresses overlap. */
static planc_status refuse_overlap(pl_arena *arena, const planc_schedule *s, const device_items *device,
                                   pl_overlap overlap) {
  pl_occupants occupants = {
      .trace = planc_schedule_trace(s), .items = device->items, .what = device->what, .n = device->n};
  PLANC_TRY(pl_instances_at(arena, s, &occupants.instance_at));
  return pl_occupants_overlap(&occupants, overlap);
}
