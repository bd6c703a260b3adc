/* Who touched which bytes last (access_map.h): cells between the ends of ranges, in runs of one history. */
#include "planner/memory/access_map.h"

#include <assert.h>

enum { NONE = -1 };

/* --- Needs -------------------------------------------------------------------------------------------------------- */

planc_status pl_predecessors_make(pl_arena *arena, int32_t n_streams, pl_predecessors *out) {
  *out = (pl_predecessors){0};
  PLANC_TRY(PL_NEW(arena, &out->list, n_streams));
  return PL_NEW(arena, &out->place, n_streams);
}

void pl_predecessors_clear(pl_predecessors *predecessors) {
  predecessors->n = 0;
}

void pl_predecessors_raise(pl_predecessors *predecessors, pl_stream_step added) {
  int32_t place = predecessors->place[added.stream];
  if (place >= predecessors->n || predecessors->list[place].stream != added.stream) {
    predecessors->place[added.stream] = predecessors->n;
    predecessors->list[predecessors->n++] = added;
  } else if (added.step > predecessors->list[place].step) {
    predecessors->list[place].step = added.step;
  }
}

/* --- Cells -------------------------------------------------------------------------------------------------------- */

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

static planc_status number_cells(pl_arena *arena, const pl_range *ranges, int32_t n_ranges, pl_access_map *map) {
  if (n_ranges > INT32_MAX / 2 - 1) return planc_error(PLANC_INTERNAL, "too many address ranges");
  range_end *ends, *spare;
  int64_t n = (int64_t)n_ranges * 2, highest = 0;
  PLANC_TRY(PL_NEW(arena, &ends, n));
  PLANC_TRY(PL_NEW(arena, &spare, n));
  PLANC_TRY(PL_NEW(arena, &map->ranges, n_ranges));
  for (int32_t r = 0, e = 0; r < n_ranges; r++, e += 2) {
    ends[e] = (range_end){ranges[r].start, e};
    ends[e + 1] = (range_end){ranges[r].end, e + 1};
    if (ranges[r].end > highest) highest = ranges[r].end;
  }
  ends = sort_ends(ends, spare, n, highest);
  int32_t cell = 0;
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && ends[i].address != ends[i - 1].address) cell++;
    pl_cell_span *cells = &map->ranges[ends[i].id / 2];
    *(ends[i].id % 2 ? &cells->last : &cells->first) = cell;
  }
  map->n_cells = cell + 1;
  return NULL;
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

planc_status pl_access_map_make(pl_arena *arena, const pl_range *ranges, int32_t n_ranges, pl_access_map *out) {
  *out = (pl_access_map){.spare = NONE};
  PLANC_TRY(number_cells(arena, ranges, n_ranges, out));
  PLANC_TRY(PL_NEW(arena, &out->runs, out->n_cells));
  PLANC_TRY(pl_number_set_make(arena, out->n_cells + 1, &out->begins));
  out->runs[0] = (pl_run){{NONE, NONE}, NONE};
  /* A run begins where the last cell ends, which stops every search. */
  pl_number_set_add(&out->begins, 0);
  pl_number_set_add(&out->begins, out->n_cells);
  return NULL;
}

void pl_access_map_free(pl_access_map *map) {
  VEC_FREE(&map->readers);
}

static planc_status split_run(pl_access_map *map, int32_t cell);
static void take_readers(pl_access_map *map, pl_run *run, pl_predecessors *predecessors);
static planc_status note_read(pl_access_map *map, pl_run *run, pl_stream_step read);

planc_status pl_access_map_touch(pl_access_map *map, pl_range_touch touch, pl_stream_step by,
                                 pl_predecessors *predecessors) {
  pl_cell_span cells = map->ranges[touch.range];
  if (cells.first == cells.last) return NULL;
  PLANC_TRY(split_run(map, cells.first));
  if (cells.last < map->n_cells) PLANC_TRY(split_run(map, cells.last));
  for (int32_t cell = cells.first, next; cell < cells.last; cell = next) {
    next = pl_number_set_above(&map->begins, cell + 1);
    pl_run *run = &map->runs[cell];
    if (run->write.step >= 0) pl_predecessors_raise(predecessors, run->write);
    if (touch.write) {
      take_readers(map, run, predecessors);
      if (cell != cells.first) pl_number_set_remove(&map->begins, cell);
    } else {
      PLANC_TRY(note_read(map, run, by));
    }
  }
  if (touch.write) map->runs[cells.first] = (pl_run){by, NONE};
  return NULL;
}

static planc_status add_reader(pl_access_map *map, pl_run *run, pl_stream_step read) {
  pl_reader reader = {read, run->readers};
  run->readers = map->spare;
  if (map->spare == NONE) {
    if (map->readers.len >= INT32_MAX) return planc_error(PLANC_INTERNAL, "too many accesses");
    run->readers = (int32_t)map->readers.len;
    VEC_PUSH(&map->readers, reader);
  } else {
    map->spare = map->readers.data[map->spare].next;
    map->readers.data[run->readers] = reader;
  }
  return NULL;
}

static planc_status note_read(pl_access_map *map, pl_run *run, pl_stream_step read) {
  int32_t r = run->readers;
  while (r != NONE && map->readers.data[r].read.stream != read.stream) r = map->readers.data[r].next;
  if (r == NONE) return add_reader(map, run, read);
  assert(map->readers.data[r].read.step <= read.step);
  map->readers.data[r].read.step = read.step;
  return NULL;
}

/* Forgets the readers of a run, whom `predecessors` then has. */
static void take_readers(pl_access_map *map, pl_run *run, pl_predecessors *predecessors) {
  while (run->readers != NONE) {
    int32_t r = run->readers;
    pl_predecessors_raise(predecessors, map->readers.data[r].read);
    run->readers = map->readers.data[r].next;
    map->readers.data[r].next = map->spare;
    map->spare = r;
  }
}

/* Makes a run begin at `cell`. */
static planc_status split_run(pl_access_map *map, int32_t cell) {
  int32_t run = pl_number_set_below(&map->begins, cell);
  if (run == cell) return NULL;
  map->runs[cell] = (pl_run){map->runs[run].write, NONE};
  for (int32_t r = map->runs[run].readers; r != NONE; r = map->readers.data[r].next)
    PLANC_TRY(add_reader(map, &map->runs[cell], map->readers.data[r].read));
  pl_number_set_add(&map->begins, cell);
  return NULL;
}
