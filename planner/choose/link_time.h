/* The time of a link: copies that share it run one after the other, and each has a stretch of time to itself; those of
 * no time always find it. Times are nanoseconds from the period's start. */
#ifndef PLANC_CHOOSE_LINK_TIME_H
#define PLANC_CHOOSE_LINK_TIME_H

#include "planc/cost.h"
#include "planc/trace.h"
#include "planner/memory/free_list.h"

typedef struct planc_link_time {
  planc_free_list open; /* times at which nothing is copied */
} planc_link_time;

/* Makes all of it free; `link` is zeroed or in use. */
planc_status planc_link_time_reset(planc_link_time *link);
void planc_link_time_free(planc_link_time *link);

/* When a copy of `ns` between `from` and `to` begins, as early as possible; false where the link has no time for it. */
bool planc_link_time_earliest(const planc_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start);
/* The same, as late as possible. */
bool planc_link_time_latest(const planc_link_time *link, int64_t from, int64_t to, int64_t ns, int64_t *out_start);
/* Takes a stretch that was found so. */
planc_status planc_link_time_take(planc_link_time *link, int64_t start, int64_t ns);

/* How long it takes to bring in what a buffer holds, one copy for each other replica's part of it. */
int64_t planc_fetch_ns(const planc_link *h2d, const planc_trace *trace, int32_t buffer);

#endif
