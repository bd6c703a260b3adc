/* The ways back for a version that is away from the device: by links, from the host's memory, or by running its writer
 * again. A recompute is one more kind of link: it brings a version back at a price, and prices of both have one form.
 * Times are nanoseconds of an iteration in which nothing is away. */
#ifndef PLANC_CHOOSE_WAYS_BACK_H
#define PLANC_CHOOSE_WAYS_BACK_H

#include "planner/choose/walk.h"
#include "util/arena.h"

typedef enum pl_way { PL_WAY_NONE, PL_WAY_LINK, PL_WAY_RECOMPUTE } pl_way;

typedef struct pl_price {
  int64_t link_ns[PLANC_N_ROUTES]; /* of copies by each route, at the part of its rate that is the job's */
  int64_t compute_ns;              /* of ops that run again; PL_NO_WAY: something that they read is lost */
  int64_t host_bytes;              /* that the version takes on the host while it is away */
} pl_price;

#define PL_NO_WAY INT64_MAX

/* How long it takes to bring in what a buffer holds, one copy for each other replica's part of it, and to copy it out.
 */
int64_t pl_fetch_ns(const planc_link links[PLANC_N_ROUTES], const planc_trace *trace, int32_t buffer);
int64_t pl_offload_ns(const planc_link links[PLANC_N_ROUTES], const planc_trace *trace, int32_t buffer);

/* By links: out and in. What the user's memory holds anyway only comes in, and takes nothing on the host. */
pl_price pl_price_of_link(const pl_walk *walk, int32_t buffer, int32_t version);
/* Whether the host has room for that beside `taken` bytes. */
bool pl_host_has_room(const pl_walk *walk, int64_t taken, const pl_price *price);

typedef struct pl_ways_back {
  const pl_walk *walk;
  const int64_t *start; /* per position and one more: when it begins (pl_unswapped) */
  int32_t *latest;      /* per instance: until when it can run again (pl_mark_restorable) */
  int32_t *visited;     /* per instance: the last chain that it was in */
  int32_t *stack;       /* of instances */
  int32_t chain;
} pl_ways_back;

/* In memory of `arena`; borrows `walk` and `start`. */
planc_status pl_ways_back_make(const pl_walk *walk, const int64_t *start, pl_arena *arena, pl_ways_back *out);
/* Whether the user and the order allow a way back for each version of a buffer. */
bool pl_way_is_open(const pl_ways_back *ways, pl_way way, int32_t buffer);

/* A version that is to be back ahead of position `to`. */
typedef struct pl_wanted {
  int32_t buffer, version, to;
} pl_wanted;

/* Where a recompute finds a version that it reads. */
typedef enum pl_source {
  PL_SOURCE_DEVICE,
  PL_SOURCE_HOST,  /* it is copied in */
  PL_SOURCE_AGAIN, /* nowhere: its writer runs again as well */
  PL_SOURCE_LOST   /* nowhere, and that is not to be */
} pl_source;
typedef pl_source (*pl_source_rule)(const void *context, const pl_wanted *wanted, const planc_access *access);

/* By recompute, of the writer and all that runs again for it, each once; NULL for `rule`: everything is on the device.
 * Once the price is beyond `limit_ns` it is no longer summed up. */
pl_price pl_price_of_recompute(pl_ways_back *ways, const pl_wanted *wanted, int64_t limit_ns, pl_source_rule rule,
                               const void *context);

/* All that a price has of time. */
int64_t pl_price_ns(const pl_price *price);
/* The memory saving per second (MSPS) of `bytes` at this price: of TENSILE, Eq. 4, and Capuchin, 4.4. */
int64_t pl_saving_per_second(int64_t bytes, const pl_price *price);

#endif
