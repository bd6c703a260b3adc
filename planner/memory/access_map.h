/* Who touched which bytes last: a map from bytes to their last write and, per stream, their last read since. All ranges
 * are known beforehand, so bytes are numbered as slots between the ranges' ends; slots with one history form a run. A
 * touch costs one search for every run it meets, and a write makes one run of all it covers. */
#ifndef PLANC_MEMORY_ACCESS_MAP_H
#define PLANC_MEMORY_ACCESS_MAP_H

#include "planc/schedule.h"
#include "planner/memory/free_list.h"
#include "util/arena.h"
#include "util/number_set.h"

/* By steps, which are counted up; -1 = none. */
typedef struct planc_touched {
  int32_t write, write_stream;
} planc_touched;

typedef struct planc_slot_span {
  int32_t first, last; /* half open */
} planc_slot_span;

typedef struct planc_access_map {
  planc_slot_span *ranges;
  planc_touched *runs; /* by a run's first slot */
  int32_t *reads;      /* since the write; by a run's first slot, n_streams each */
  int32_t n_slots, n_streams;
  planc_number_set begins; /* slots at which runs begin, and the one behind the last slot */
} planc_access_map;

typedef struct planc_range_touch {
  int32_t range; /* index into the ranges the map was made with */
  bool write;
  bool peers; /* of a read: of the range that each other replica has */
} planc_range_touch;

/* A map of untouched bytes, allocated in `arena`. */
planc_status planc_access_map_make(planc_arena *arena, const planc_range *ranges, int32_t n_ranges, int32_t n_streams,
                                   planc_access_map *out);
/* Notes that `step` on `stream` touches a range. needs[t] is raised to the last step on stream t that it has to come
 * after: a read after the write, a write also after the reads. */
void planc_access_map_touch(planc_access_map *map, planc_range_touch touch, int32_t stream, int32_t step,
                            int32_t *needs);

#endif
