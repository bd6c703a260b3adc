/* Complete search for addresses within a given room: finds them wherever there are any, or shows that there are none,
 * if only it is given time. */
#ifndef PLANC_MEMORY_PLACEMENT_SEARCH_H
#define PLANC_MEMORY_PLACEMENT_SEARCH_H

#include "planner/memory/placement.h"

/* No more are searched addresses for. */
enum { PL_SEARCHED_ITEMS = 8192 };

typedef enum pl_verdict {
  PL_UNDECIDED, /* the visits are used up, or the search would take too much memory */
  PL_PLACED,
  PL_IMPOSSIBLE, /* no addresses at all leave every item within the room */
} pl_verdict;

/* Gives all items addresses such that none ends above `room`; they keep theirs where the verdict is another. No address
 * is stated, and bytes are positive: every address is then a sum of some of them. Each item lives for some time, for
 * how long `lengths` says, which decides what is tried first; NULL: as many positions as it has. Looks at about *visits
 * items and positions at most, and takes from them those that it looked at. Deterministic. */
planc_status pl_placement_search(pl_item *items, const int64_t *lengths, int32_t n, int64_t room, int64_t *visits,
                                 pl_verdict *out);

#endif
