/* The next room to try (room_search.h): falls by what was too much, then bisection or a little less each time. */
#include "planner/choose/room_search.h"

enum { MAX_FALLS = 8, MAX_RISES = 7 };                /* to the largest */
enum { PLAIN_FALLS = 6, MAX_TRIES = 10, GRAIN = 32 }; /* to the first */

pl_room_search pl_room_search_from(int64_t room, int64_t least, int64_t unit) {
  return (pl_room_search){.room = room, .least = least, .unit = unit, .fits = -1, .fails = INT64_MAX};
}

bool pl_room_search_on(pl_room_search *search, int64_t excess) {
  int64_t tried = search->room, lower = tried - excess;
  bool rises = search->fits >= 0;
  if (excess > 0) {
    search->fails = tried;
  } else {
    search->fits = tried;
  }
  if (search->fits < 0) {
    search->room = ++search->falls < MAX_FALLS && lower > search->least ? lower : search->least;
  } else if (search->fails < INT64_MAX) {
    search->room = search->fits + (search->fails - search->fits) / 2 / search->unit * search->unit;
  }
  search->rises += rises;
  return search->room != tried && search->rises < MAX_RISES;
}

bool pl_room_search_down(pl_room_search *search, int64_t excess) {
  int32_t tries = ++search->falls;
  bool plain = tries < PLAIN_FALLS;
  bool same = tries > PLAIN_FALLS && excess == search->excess;
  int64_t grain = search->room / GRAIN;
  search->excess = excess;
  if (tries == MAX_TRIES || (!plain && (excess > grain || same))) return false;
  search->room -= plain ? excess : excess + grain;
  return search->room >= search->least;
}
