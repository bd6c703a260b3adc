/* The largest room to plan with whose result fits a budget, where fragmentation comes on top: lowered by what is too
 * much, at last to the least, and once something fits raised by bisection. */
#ifndef PLANC_CHOOSE_ROOM_SEARCH_H
#define PLANC_CHOOSE_ROOM_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct planc_room_search {
  int64_t room;        /* to try next */
  int64_t least;       /* no smaller one is tried */
  int64_t unit;        /* bisection stops between two multiples of this */
  int64_t fits, fails; /* the largest that did, the least that did not */
  int32_t falls, rises;
} planc_room_search;

planc_room_search planc_room_search_from(int64_t room, int64_t least, int64_t unit);
/* Notes that `room` misses by `excess` bytes, or that it fits with 0; whether there is another one to try. */
bool planc_room_search_on(planc_room_search *search, int64_t excess);

#endif
