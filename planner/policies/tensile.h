/* What the parts of `tensile` share. Times are nanoseconds from the period's start in the predicted iteration. */
#ifndef PLANC_POLICIES_TENSILE_H
#define PLANC_POLICIES_TENSILE_H

#include "planner/choose/absences.h"
#include "planner/choose/covers.h"
#include "planner/choose/link_time.h"
#include "planner/choose/unswapped.h"
#include "planner/choose/ways_back.h"

/* A version of a buffer, the paper's tensor: it counts an updated parameter as a new one. */
typedef struct tensile_version {
  int32_t buffer, number;
  int32_t first, last;       /* its accesses, uses of the order; the first generates it, unless it is there before */
  int32_t first_gap, across; /* of version 0: the gap that wraps, -1 = none */
  pl_price swap;             /* one copy out, and one in for each gap */
  bool on_host;              /* its swap-out is scheduled, or it needs none */
  int64_t host_ns;           /* from when the host has it then */
  int32_t copy;              /* the position behind which it begins, PL_NO_COPY = nothing does */
  int32_t search;            /* an access ahead of which no swap-out finds time any more, use of the order */
  bool released;             /* it is away at some time, and to be computed again or swapped in */
  bool needed;               /* a recompute reads it */
} tensile_version;

/* How long its copies take. */
static inline int64_t tensile_out_ns(const tensile_version *version) {
  return version->swap.link_ns[PLANC_ROUTE_D2H];
}
static inline int64_t tensile_in_ns(const tensile_version *version) {
  return version->swap.link_ns[PLANC_ROUTE_H2D];
}

typedef enum tensile_state { TENSILE_OPEN, TENSILE_TAKEN, TENSILE_HOPELESS } tensile_state;

/* The gap between two consecutive accesses, which its version can be away for. */
typedef struct tensile_gap {
  int32_t version;  /* of a gap that wraps, the last version */
  int32_t use;      /* its first access, of the order */
  int32_t from, to; /* positions */
  bool wraps;
  int64_t bytes;
  pl_cover relieves; /* peaks that it may still relieve */
  int32_t place;     /* in the list that it is in */
  tensile_state state;
  bool waits;         /* as many versions as may be are swapped, and its own is not among them */
  pl_absence absence; /* once it is taken */
  int64_t in_start;   /* of its swap-in; of a recompute, when it is needed */
} tensile_gap;

/* Gaps in the order in which they are tried, found by the peaks that they may relieve. */
typedef struct tensile_list {
  int32_t *gaps;
  pl_covers covers;
} tensile_list;

typedef struct tensile {
  const pl_walk *walk;
  const planc_trace *trace;
  const planc_order *order;
  pl_unswapped unswapped;
  pl_ways_back ways;
  pl_link_time link;
  int32_t *first_version; /* per buffer: its version 0 */
  tensile_version *versions;
  tensile_gap *gaps; /* by buffer, in time order */
  int32_t n;
  int64_t rate_ppm; /* of the versions that may be swapped */
  int64_t n_swapped, most_swapped, n_recomputed;
  int64_t host_bytes;     /* of what was swapped, were it on the host at the same time */
  tensile_list by_size;   /* of those that may be swapped */
  tensile_list by_saving; /* of those that may be computed again */
} tensile;

typedef struct tensile_rank {
  int64_t key;
  int32_t gap;
} tensile_rank;
/* Orders `ranks` by descending key, ties by gap. */
void tensile_sort(tensile_rank *ranks, int32_t n);
planc_status tensile_make_list(const tensile *t, pl_arena *arena, tensile_rank *ranks, int32_t n, tensile_list *out);

/* Takes from a list the first gap around `peak` that `take` accepts for relieving it. What it does not accept must
 * wait, be hopeless, or no longer be around the peak. */
typedef planc_status (*tensile_taker)(tensile *t, tensile_gap *gap, int32_t peak, bool *out_taken);
planc_status tensile_take_first(tensile *t, tensile_list *list, int32_t peak, tensile_taker take, bool *out_taken);

/* All of it (pl_absence_rule); `context` is the planc_problem. */
planc_status tensile_choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);
/* Frees what does not lie in the arena. */
void tensile_free(tensile *t);

/* Makes t->unswapped, the predicted iteration without any swap, and tells its peak (IV-A, IV-B): of several positions
 * the last. */
planc_status tensile_make_unswapped(tensile *t, pl_arena *arena);
int32_t tensile_peak(const tensile *t);

/* Swaps (IV-C, Algorithm 2). Set-up makes versions, gaps and link; a round schedules the largest version of the peak
 * that finds room on the link. */
planc_status tensile_set_up_swaps(tensile *t, pl_arena *arena);
planc_status tensile_swap(tensile *t, int32_t peak, bool *out_taken);

/* Recompute (IV-D). */
planc_status tensile_set_up_recomputes(tensile *t, pl_arena *arena);
planc_status tensile_recompute(tensile *t, int32_t peak, bool *out_taken);

#endif
