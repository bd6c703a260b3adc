/* Which pages of an arena are taken, and when: for offline placement in virtual memory (paged_places.h), which goes
 * through items in the order in which they begin to live.
 *
 * A page is new, free, held by one item as a whole and for none later, or watched: then what takes it, or bytes of it,
 * is listed in the order of time. */
#ifndef PLANC_MEMORY_PAGE_TAKINGS_H
#define PLANC_MEMORY_PAGE_TAKINGS_H

#include "planner/memory/placement.h"
#include "util/vec.h"

enum { PL_NO_PAGE = -1, PL_NO_TAKING = -1 };

/* When bytes [low, high) of a watched page are taken. */
typedef struct pl_page_taking {
  pl_lifetime span;
  int64_t low, high;
  int32_t next; /* the page's next one in time, or PL_NO_TAKING */
} pl_page_taking;

/* The pages that an item holds, [first, first + n) of those that are held, and where it ends. */
typedef struct pl_page_holder {
  int32_t end;
  int64_t first, n;
} pl_page_holder;

/* A page that is free for an item, and the position at which it is taken next. */
typedef struct pl_page_choice {
  int32_t until, page;
} pl_page_choice;

typedef VEC(int32_t) pl_page_list;

/* A zeroed one, with `page_bytes` set, has no pages. */
typedef struct pl_page_takings {
  int64_t page_bytes;
  VEC(pl_page_taking) all;
  pl_page_list first;          /* by page: its first taking that has not ended; of as many pages as the arena has */
  pl_page_list watched;        /* pages that have takings */
  pl_page_list free;           /* pages that nobody has, a heap */
  pl_page_list held;           /* pages that are held, by item */
  VEC(pl_page_holder) holders; /* whose these are, a heap */
  VEC(pl_page_choice) soonest; /* scratch: pages that are taken later, a heap */
} pl_page_takings;
void pl_page_takings_free(pl_page_takings *takings);

/* Adds a page that nobody has had. */
planc_status pl_page_takings_add(pl_page_takings *takings);
/* Takes bytes of a page during a span, which may be empty; the page is watched from then on. */
planc_status pl_page_take(pl_page_takings *takings, int32_t page, int64_t low, int64_t high, pl_lifetime span);
/* Watches pages no more that are taken at all positions ahead of `horizon`: nobody else ever has these. */
void pl_page_takings_forget_full(pl_page_takings *takings, int32_t horizon);
/* What has ended at `start` takes its pages no more; no item that is still to be placed begins before. */
planc_status pl_page_takings_end(pl_page_takings *takings, int32_t start);
/* Chooses so many pages that are free while an item lives, which begins at the present: those that are taken soonest
 * afterwards, so that what lives longer finds the others, then those that nobody has, then new ones. *chosen are these,
 * and no others, in the order in which they lie. */
planc_status pl_page_takings_choose(pl_page_takings *takings, const pl_item *item, int64_t needed,
                                    pl_page_list *chosen);
/* Takes pages that were chosen for an item as a whole, while it lives. */
planc_status pl_page_takings_hold(pl_page_takings *takings, const pl_item *item, const pl_page_list *pages);

#endif
