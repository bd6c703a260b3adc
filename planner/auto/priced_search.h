/* The search of policy priced for one budget, order and effort. */
#ifndef PLANC_AUTO_PRICED_SEARCH_H
#define PLANC_AUTO_PRICED_SEARCH_H

#include "planner/auto/auto_search.h"

/* How much is done at an effort. Work of the search is that of pl_rehearsal_work, work of the bound is counted in ops
 * and gaps of its model for each value. */
typedef struct pl_priced_work {
  int64_t start;        /* work to find where to begin */
  int64_t changes;      /* work of the first changes from there, */
  int64_t of_candidate; /* and most such changes for each gap that is worth one */
  int64_t bound;        /* work of the ascent that finds the first prices, */
  int64_t most_values;  /* and most values of it */
  bool repeats;         /* whether the first changes may be made several times */
  int64_t enough;       /* a search ends where at most one part in so many of the time is likely to be won still */
} pl_priced_work;

/* What is stated. */
typedef struct pl_priced_choice {
  pl_absences absences;
  bool early;     /* in the order with updates as early as can be */
  int32_t n_gaps; /* that there is something to decide about in it */
  int32_t n_kept; /* buffers that stay behind their last use for what is computed again */
} pl_priced_choice;

/* The fastest that has been found and fits. */
typedef struct pl_priced_best {
  planc_candidate candidate;
  pl_priced_choice choice; /* that it states, in `memory` */
  pl_arena memory;
  pl_walk_room room; /* that it was stated in */
  int64_t budget;    /* of the device, that was looked at when it was found */
  int64_t ns;        /* of a period; INT64_MAX: nothing fits yet */
} pl_priced_best;
void pl_priced_best_free(pl_priced_best *best);

/* What the bound tells of an order within the budget. */
typedef struct pl_priced_bound {
  int64_t ns;                    /* no plan in the order is faster; INT64_MAX: it is not known yet */
  const pl_bound_shares *shares; /* by gap of the bound, of the plan that its prices pay for */
} pl_priced_bound;

enum { PL_PRICED_ORDERS = 2 }; /* the graph's, and with updates as early as can be */

typedef struct pl_priced {
  planc_problem problem;            /* the caller's, without its watch: */
  const planc_watch *watch;         /* only this policy asks it whether to go on, and tells it of progress */
  const planc_evaluator *evaluator; /* of the problem */
  pl_arena arena;
  planc_candidate own; /* that is never stated: its trace, order and costs are looked at */
  pl_walk walk;        /* of it */
  const pl_priced_work *work;
  bool tails;      /* whether tails (auto_gaps.h) may stay */
  uint8_t *begun;  /* by gap: the ways that the search began with */
  int32_t n_fixed; /* searches with a way fixed that follow one */
  int64_t room;
  bool has_room; /* for every op alone */
  pl_auto_gaps gaps;
  pl_auto_search search;
  pl_priced_best best;
  int64_t n_judged;
  int64_t beyond; /* bytes that the pages of what was placed last came to beyond the room; 0 in one piece */
  int32_t n_simulated;
  bool early;                               /* the order that is looked at */
  pl_priced_bound bounds[PL_PRICED_ORDERS]; /* by order: [early] is of the present one */
} pl_priced;

/* No plan is faster, in whatever order was looked at. */
int64_t pl_priced_least_ns(const pl_priced *p);
/* Whether more than one part in so many of a time is beyond that. */
bool pl_priced_is_beyond(const pl_priced *p, int64_t ns, int32_t parts);
enum { PL_PRICED_VERY_FAR = 6 }; /* 1.20 times that: memory is short nearly everywhere */
/* Starts a walk over the job's rounds in its order, or with updates as early as can be. */
planc_status pl_priced_start_walk(pl_walk *walk, const planc_problem *problem, bool early, pl_walk_room room,
                                  planc_candidate *out);
/* Searches, from a search that is set up, and keeps what is the fastest that fits. */
planc_status pl_priced_search(pl_priced *p);
/* Searches again and again, each time with the way of one more gap fixed, the gaps that take most memory for most time
 * first. A way stays fixed if that search finds what is faster than all before. It ends after n_fixed searches, or when
 * a round through all gaps has found nothing faster. */
planc_status pl_priced_search_fixed(pl_priced *p);
/* Decides for the best when memory for what other replicas send to it is opened, and times it so: what is found later
 * must be faster than that. */
planc_status pl_priced_receive(pl_priced *p);
/* States a choice (pl_priced_choice). */
planc_status pl_priced_make(const planc_problem *problem, const void *choice, pl_walk_room room, planc_candidate *out);

#endif
