/* The time of a link: copies that share it run one after the other, and each has a stretch of time to itself; those of
 * no time always find it. Times are nanoseconds from the period's start. */
#ifndef PLANC_CHOOSE_LINK_TIME_H
#define PLANC_CHOOSE_LINK_TIME_H

#include "planner/memory/free_list.h"

typedef struct pl_link_time {
  pl_free_list idle; /* times at which nothing is copied */
} pl_link_time;

/* Makes it idle all the time; `link` is zeroed or in use. */
planc_status pl_link_time_reset(pl_link_time *link);
void pl_link_time_free(pl_link_time *link);

/* When a copy of `ns` between `from` and `to` begins, as early as possible; false where the link has no time for it. */
bool pl_link_time_earliest(const pl_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start);
/* The same, as late as possible. */
bool pl_link_time_latest(const pl_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start);
/* Takes a stretch that was found so. */
planc_status pl_link_time_take(pl_link_time *link, int64_t start, int64_t ns);

#endif
