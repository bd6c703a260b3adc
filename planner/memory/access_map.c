#include "planner/memory/access_map.h"

#include <string.h>

/* --- Slots -------------------------------------------------------------------------------------------------------- */

/* An end of a range: 2 * range for its start, 2 * range + 1 for its end. */
typedef struct range_end {
  int64_t address;
  int32_t id;
} range_end;

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts by address, digit by digit; `spare` is as long as `ends`. Returns the array that holds the result. */
static range_end *sort_ends(range_end *ends, range_end *spare, int64_t n, int64_t highest) {
  for (int shift = 0; shift < 63 && highest >> shift; shift += DIGIT_BITS) {
    int64_t at[DIGITS + 1] = {0};
    for (int64_t i = 0; i < n; i++) at[((ends[i].address >> shift) & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++) at[d + 1] += at[d];
    for (int64_t i = 0; i < n; i++) spare[at[(ends[i].address >> shift) & (DIGITS - 1)]++] = ends[i];
    range_end *sorted = spare;
    spare = ends;
    ends = sorted;
  }
  return ends;
}

static planc_status number_slots(planc_arena *arena, const planc_range *ranges, int32_t n_ranges,
                                 planc_access_map *map) {
  if (n_ranges > INT32_MAX / 2 - 1) return planc_error(PLANC_INTERNAL, "too many address ranges");
  range_end *ends, *spare;
  int64_t n = (int64_t)n_ranges * 2, highest = 0;
  PLANC_TRY(PLANC_NEW(arena, &ends, n));
  PLANC_TRY(PLANC_NEW(arena, &spare, n));
  PLANC_TRY(PLANC_NEW(arena, &map->ranges, n_ranges));
  for (int32_t r = 0, e = 0; r < n_ranges; r++, e += 2) {
    ends[e] = (range_end){ranges[r].start, e};
    ends[e + 1] = (range_end){ranges[r].end, e + 1};
    if (ranges[r].end > highest) highest = ranges[r].end;
  }
  ends = sort_ends(ends, spare, n, highest);
  int32_t slot = 0;
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && ends[i].address != ends[i - 1].address) slot++;
    planc_slot_span *slots = &map->ranges[ends[i].id / 2];
    *(ends[i].id % 2 ? &slots->last : &slots->first) = slot;
  }
  map->n_slots = slot + 1;
  return NULL;
}

/* --- Touching ------------------------------------------------------------------------------------------------------
 */

static int32_t *reads_of(const planc_access_map *map, int32_t run) {
  return &map->reads[(int64_t)run * map->n_streams];
}

static void clear_run(planc_access_map *map, int32_t run) {
  map->runs[run] = (planc_touched){-1, -1};
  memset(reads_of(map, run), -1, (size_t)map->n_streams * sizeof *map->reads);
}

planc_status planc_access_map_make(planc_arena *arena, const planc_range *ranges, int32_t n_ranges, int32_t n_streams,
                                   planc_access_map *out) {
  *out = (planc_access_map){.n_streams = n_streams};
  PLANC_TRY(number_slots(arena, ranges, n_ranges, out));
  PLANC_TRY(PLANC_NEW(arena, &out->runs, out->n_slots));
  PLANC_TRY(PLANC_NEW(arena, &out->reads, (int64_t)out->n_slots * n_streams));
  PLANC_TRY(planc_number_set_make(arena, out->n_slots + 1, &out->begins));
  clear_run(out, 0);
  /* A run begins where the last slot ends, which stops every search. */
  planc_number_set_add(&out->begins, 0);
  planc_number_set_add(&out->begins, out->n_slots);
  return NULL;
}

/* Makes a run begin at `slot`. */
static void split_run(planc_access_map *map, int32_t slot) {
  int32_t run = planc_number_set_below(&map->begins, slot);
  if (run == slot) return;
  map->runs[slot] = map->runs[run];
  memcpy(reads_of(map, slot), reads_of(map, run), (size_t)map->n_streams * sizeof *map->reads);
  planc_number_set_add(&map->begins, slot);
}

static void raise(int32_t *need, int32_t step) {
  if (step > *need) *need = step;
}

void planc_access_map_touch(planc_access_map *map, planc_range_touch touch, int32_t stream, int32_t step,
                            int32_t *needs) {
  planc_slot_span slots = map->ranges[touch.range];
  if (slots.first == slots.last) return;
  split_run(map, slots.first);
  if (slots.last < map->n_slots) split_run(map, slots.last);
  for (int32_t slot = slots.first, next; slot < slots.last; slot = next) {
    next = planc_number_set_above(&map->begins, slot + 1);
    const planc_touched *run = &map->runs[slot];
    int32_t *reads = reads_of(map, slot);
    if (run->write >= 0) raise(&needs[run->write_stream], run->write);
    for (int32_t t = 0; t < map->n_streams && touch.write; t++) raise(&needs[t], reads[t]);
    if (!touch.write) {
      reads[stream] = step;
    } else if (slot != slots.first) {
      planc_number_set_remove(&map->begins, slot);
    }
  }
  if (touch.write) {
    clear_run(map, slots.first);
    map->runs[slots.first] = (planc_touched){step, stream};
  }
}
