/* The search of policy priced for one budget, order and effort. */
#ifndef PLANC_AUTO_PRICED_SEARCH_H
#define PLANC_AUTO_PRICED_SEARCH_H

#include "planner/auto/auto_search.h"

/* How much is done at an effort, counted in what the search goes through (pl_rehearsal_work), in changes for each gap,
 * and in values of the bound. */
typedef struct pl_priced_work {
  int64_t start, changes, of_candidate, bound, most_values;
} pl_priced_work;

/* When tails (auto_gaps.h) may stay. */
typedef enum pl_priced_tails {
  PL_TAILS_NEVER,
  PL_TAILS_LATER, /* when the first changes have been made: the search takes longer to find its way among them */
  PL_TAILS_FIRST
} pl_priced_tails;

/* What is stated. */
typedef struct pl_priced_choice {
  pl_absences absences;
  bool early;     /* in the order with updates as early as can be */
  int32_t n_gaps; /* that there is something to decide about in it */
  int32_t n_kept; /* buffers that stay behind their last use for what is computed again */
} pl_priced_choice;

typedef struct pl_priced {
  planc_problem problem;            /* that nobody watches: */
  const planc_watch *watch;         /* is looked at here alone */
  const planc_evaluator *evaluator; /* of the problem */
  pl_arena arena;
  planc_candidate own; /* that is never stated: its trace, order and costs are looked at */
  pl_walk walk;        /* of it */
  const pl_priced_work *work;
  pl_priced_tails tails;
  int32_t n_fixed; /* searches with a way fixed that follow one */
  int64_t room;
  bool has_room; /* for every op alone */
  pl_auto_gaps gaps;
  pl_auto_search search;
  planc_candidate *best; /* the caller's */
  pl_priced_choice of_best;
  pl_arena of_best_memory;
  int64_t budget_of_best; /* that was looked at */
  pl_walk_room room_of_best;
  int64_t best_ns; /* INT64_MAX: nothing fits yet */
  int64_t n_judged;
  int32_t n_simulated;
  bool early;                       /* the order that is looked at */
  int64_t bound_ns[2];              /* by order: no plan in it is faster; INT64_MAX: it is not looked at */
  const pl_bound_shares *shares[2]; /* by order: of the plan that this bound pays for */
} pl_priced;

/* Starts a walk over the job's rounds in its order, or with updates as early as can be. */
planc_status pl_priced_start_walk(pl_walk *walk, const planc_problem *problem, bool early, pl_walk_room room,
                                  planc_candidate *out);
/* Searches, from a search that is set up, and keeps what is the fastest that fits. */
planc_status pl_priced_search(pl_priced *p);
/* The same again and again, each time with the way of one more gap fixed, the gaps that take most memory for most time
 * first: fixed it stays where that finds what is faster. It ends with n_fixed searches, or when none of the last round
 * through all gaps has found anything. */
planc_status pl_priced_search_fixed(pl_priced *p);
/* Of the best, when its memory for what other replicas send is opened: what comes after, of another order or more
 * effort, must be faster than that. */
planc_status pl_priced_receive(pl_priced *p);
/* States a choice (pl_priced_choice). */
planc_status pl_priced_make(const planc_problem *problem, const void *choice, pl_walk_room room, planc_candidate *out);

#endif
