/* Who touched which bytes last: a map from bytes to their last write and, per stream that has read them since, its last
 * read. All ranges are known beforehand: their ends cut the bytes into cells, which are numbered, and cells with one
 * history form a run. A touch costs one search for every run it meets, and a write makes one run of all it covers. Runs
 * list those streams only that have read them, which are rarely more than those of one job: memory and time follow the
 * touches, not the number of streams. */
#ifndef PLANC_MEMORY_ACCESS_MAP_H
#define PLANC_MEMORY_ACCESS_MAP_H

#include <stdbool.h>

#include "planner/memory/free_list.h"
#include "util/arena.h"
#include "util/number_set.h"
#include "util/vec.h"

/* A step on a stream. Steps are counted up over all streams. */
typedef struct pl_stream_step {
  int32_t stream, step;
} pl_stream_step;

/* Steps to come after: of each stream the last one. */
typedef struct pl_predecessors {
  pl_stream_step *list; /* in no order, each stream at most once */
  int32_t n;
  int32_t *place; /* by stream: where it stands in the list, or anything */
} pl_predecessors;

/* Of streams 0 .. n_streams-1, empty. */
planc_status pl_predecessors_make(pl_arena *arena, int32_t n_streams, pl_predecessors *out);
void pl_predecessors_clear(pl_predecessors *predecessors);
/* Adds a step, unless a later one of its stream is there. */
void pl_predecessors_raise(pl_predecessors *predecessors, pl_stream_step added);

typedef struct pl_cell_span {
  int32_t first, last; /* half open */
} pl_cell_span;

typedef struct pl_run {
  pl_stream_step write; /* the last; step -1 = none */
  int32_t readers;      /* since then: the first of a list, -1 = none */
} pl_run;

typedef struct pl_reader {
  pl_stream_step read; /* the stream's last one */
  int32_t next;
} pl_reader;

typedef struct pl_access_map {
  pl_cell_span *ranges;
  pl_run *runs; /* by a run's first cell */
  VEC(pl_reader) readers;
  int32_t spare; /* the first of those that are in no list */
  int32_t n_cells;
  pl_number_set begins; /* cells at which runs begin, and the one behind the last cell */
} pl_access_map;

typedef struct pl_range_touch {
  int32_t range; /* index into the ranges the map was made with */
  bool write;
  bool peers; /* of a read: of the range that each other replica has */
} pl_range_touch;

/* A map of untouched bytes, allocated in `arena` but for what pl_access_map_free frees. */
planc_status pl_access_map_make(pl_arena *arena, const pl_range *ranges, int32_t n_ranges, pl_access_map *out);
void pl_access_map_free(pl_access_map *map);
/* Notes that a step touches a range, and adds to `predecessors` what it has to come after: a read after the write, a
 * write also after the reads. */
planc_status pl_access_map_touch(pl_access_map *map, pl_range_touch touch, pl_stream_step by,
                                 pl_predecessors *predecessors);

#endif
