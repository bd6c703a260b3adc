/* Rooms to plan with, where fragmentation comes on top of what is planned for: the next one to try, told from how much
 * what was made for the last one takes beyond a budget. The loop around it is the caller's, who makes something for
 * each room and keeps what he likes of it. Either search ends at some room; of one the first room that fits is wanted,
 * of the other the largest. */
#ifndef PLANC_CHOOSE_ROOM_SEARCH_H
#define PLANC_CHOOSE_ROOM_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_room_search {
  int64_t room;        /* to try next */
  int64_t least;       /* no smaller one is tried */
  int64_t unit;        /* bisection stops between two multiples of this */
  int64_t fits, fails; /* the largest that did, the least that did not */
  int64_t excess;      /* of the last that did not */
  int32_t falls, rises;
} pl_room_search;

pl_room_search pl_room_search_from(int64_t room, int64_t least, int64_t unit);
/* The search for the largest: lowered by what is too much, at last to the least, and once something fits raised by
 * bisection. Notes that `room` misses by `excess` bytes, or that it fits with 0; whether there is another one to try.
 */
bool pl_room_search_on(pl_room_search *search, int64_t excess);
/* The search for the first, which is lowered only: each time by what is too much, and in the end by a 32nd more. Notes
 * by how much `room` misses; whether there is another one to try, which is not so where that is more than
 * fragmentation, or does not follow the room. */
bool pl_room_search_down(pl_room_search *search, int64_t excess);

#endif
