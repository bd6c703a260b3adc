/* The gaps that a plan decides about: stretches between two uses of a version in which it may be away, and tails,
 * behind the last use, in which it may stay for what is computed again. */
#ifndef PLANC_AUTO_AUTO_GAPS_H
#define PLANC_AUTO_AUTO_GAPS_H

#include "planner/bound/bound_model.h"
#include "planner/choose/walk.h"
#include "util/arena.h"

/* How a version spends a gap. */
typedef enum pl_auto_way {
  PL_AUTO_STAYS,  /* on the device */
  PL_AUTO_COPIED, /* on the host, from where it is copied back */
  PL_AUTO_AGAIN,  /* nowhere. In a tail only what is computed again asks for it. Else it is computed again, unless the
                     host has it from an earlier gap; where another version needs it on its way back before, it stays
                     from then on */
  PL_AUTO_TWICE,  /* the same, but it does not stay then: it is computed once more when it is needed itself */
  PL_AUTO_N_WAYS
} pl_auto_way;

typedef struct pl_auto_gap {
  int32_t buffer, version;
  int32_t from, to; /* positions of the uses; to <= from: it goes on into the next period. -1: the user has it until
                       then, who feeds it to another op than the first, and there is nothing to decide */
  int32_t of_bound; /* the gap of the bound's model that it is, -1 = none: what is fed, and tails */
  int64_t bytes;    /* with alignment */
  int64_t in_ns, out_ns; /* of its copies; no time out: the user holds it */
  bool open[PL_AUTO_N_WAYS];
  bool is_tail;     /* `to` is the last position at which it may be of use */
  bool needs_tails; /* it can be computed again only where a tail keeps what that reads */
} pl_auto_gap;

static inline bool pl_auto_gap_wraps(const pl_auto_gap *gap) {
  return gap->to <= gap->from;
}

typedef struct pl_auto_gaps {
  const pl_walk *walk; /* borrowed, as what follows of it */
  const planc_trace *trace;
  const planc_order *order;
  const int32_t *latest;        /* by instance: until when it can run again (pl_mark_restorable) */
  const int64_t *alone;         /* by position: bytes that its op takes by itself */
  const int32_t *first_version; /* by buffer and one more: the number of its version 0 among all versions */
  int32_t n;
  int32_t n_fed; /* the first ones, whose way is PL_AUTO_COPIED */
  int32_t n_tails;
  const pl_auto_gap *items;  /* by `from`, then by buffer */
  const int32_t *first_from; /* by position and one more: gaps that begin at p are from first_from[p] on */
  const int32_t *of_use;     /* by use of the order: the gap that ends there, -1 = none */
  const int32_t *of_access;  /* the same by access of the trace */
} pl_auto_gaps;

/* Those of the bound's model of the walk's order, and where the walk recomputes their tails. With `tails`, more can be
 * computed again. In memory of `arena`; borrows the walk. BAD_INPUT where copies take too long, or versions are too
 * many, to be counted. */
planc_status pl_auto_gaps_make(const pl_walk *walk, const pl_bound_model *model, bool tails, pl_arena *arena,
                               pl_auto_gaps *out);

#endif
