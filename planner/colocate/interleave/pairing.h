/* Waterwave's scheduling (papers/003, 4.4, Algorithm 1, with the corrections of papers/NOTES, 26 to 30): which node
 * groups run side by side. There are two streams; the groups at one place of both are a pair, and pairs run one after
 * the other. A pass is an iteration of a job; its groups keep their order, and so do the passes of a job.
 *
 * The first pass has its allocation groups in the one stream and its deallocation groups behind them in the other. The
 * second begins beside the first's last allocation groups, `ahead` of them, and everyone's allocation groups go on in
 * the one stream, deallocation groups in the other, those of the last pass to the first place that is free. No group
 * goes where the passes side by side would hold more than the limit at any time: it goes to the next place (a bubble).
 * The paper checks that for the first two passes only. */
#ifndef PLANC_COLOCATE_PAIRING_H
#define PLANC_COLOCATE_PAIRING_H

#include "planner/colocate/interleave/node_groups.h"

enum { PL_PAIR = 2 }; /* node groups beside each other */

/* An iteration that is to be scheduled. */
typedef struct pl_pairing_pass {
  int32_t job, iteration, n_iterations; /* of the job in a period */
  const pl_node_groups *groups;         /* at least one */
} pl_pairing_pass;

/* Sorts passes by when they begin if each job's iterations are spread evenly over the period. Of passes at one time the
 * one with more groups goes first, then the one that holds more, then the earlier job's. */
void pl_sort_passes(pl_pairing_pass *passes, int32_t n);

typedef struct pl_pairing_rule {
  int64_t limit_bytes; /* for what all passes hold; no pass alone has more at its fullest */
  int64_t split_bytes; /* of the formula for `ahead`: (limit - fullest of the first) / split - 1; positive */
  bool early;          /* unlike the paper: every group goes to the first place of either stream that has room for it */
} pl_pairing_rule;

/* A group of a pass at a place; pass -1: none. */
typedef struct pl_paired {
  int32_t pass, group;
} pl_paired;

typedef struct pl_pairs {
  int32_t n;
  const pl_paired (*pairs)[PL_PAIR]; /* none of which is empty */
} pl_pairs;

/* Of sorted passes. Allocated in `arena`. */
planc_status pl_pair_groups(pl_arena *arena, const pl_pairing_pass *passes, int32_t n, const pl_pairing_rule *rule,
                            pl_pairs *out);
/* What they take at the least where pairs run one after the other, without what is not computed: in each of them the
 * ops of a group run one after the other, and both groups together have one GPU, of which each op keeps its busy share.
 * jobs[j] is the candidate from which job j's groups are cut. In ns. */
int64_t pl_pairs_least_ns(const planc_candidate *jobs, const pl_pairing_pass *passes, const pl_pairs *pairs);

#endif
