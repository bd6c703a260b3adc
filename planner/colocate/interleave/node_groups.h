/* Waterwave's node groups (papers/003, 4.3 and 4.4): what a job does in an iteration, cut into stretches that run one
 * after the other. Up to the fullest moment they are allocation groups, each of which leaves about as many bytes more
 * than it found; behind it deallocation groups, each of which leaves about as many fewer. */
#ifndef PLANC_COLOCATE_NODE_GROUPS_H
#define PLANC_COLOCATE_NODE_GROUPS_H

#include "planner/colocate/jobs/timing.h"

typedef struct pl_node_group {
  int32_t first, end; /* commands of the candidate's schedule, the second not included */
  int64_t held_bytes; /* by data in the end, but for what persists */
  int64_t most_bytes; /* the same at its fullest, with workspace */
} pl_node_group;

typedef struct pl_node_groups {
  int32_t n, n_allocating; /* the first of them, at least one */
  const pl_node_group *groups;
  int64_t most_bytes; /* of all */
} pl_node_groups;

/* Where iterations are cut: never within what a recurrence does in one phase of a round (4.4: a node of a cycle runs
 * several times, so that nothing comes between). */
typedef struct pl_cut {
  enum {
    PL_CUT_BY_SIZE,
    PL_CUT_AT_PEAK,  /* into two: Waterwave-s (5.1) */
    PL_CUT_AT_PHASES /* into two: where the forward ops end; the same */
  } where;
  /* By size: the least that a group allocates, and the least that it deallocates; positive. The last group of either
   * kind may be smaller; with less than half of the size it joins the group before. A group may also be smaller where
   * the op behind it alone exceeds the size. */
  int64_t split_bytes, release_bytes;
  bool relaxed; /* sizes may be half as much and half as much again, so that groups take about as long */
  /* Variable sizes, of the allocation groups in turn; groups behind the last of these have `split_bytes`. */
  int32_t n_sizes;
  const int64_t *sizes;
} pl_cut;

/* Of a candidate of one iteration, whose commands have their times in `pass`. Allocated in `arena`. */
planc_status pl_node_groups_make(pl_arena *arena, const planc_candidate *candidate, const pl_pass *pass,
                                 const pl_cut *cut, pl_node_groups *out);

/* What a group leaves more than it found, or less: not negative. */
int64_t pl_node_group_size(const pl_node_groups *groups, int32_t group);

#endif
