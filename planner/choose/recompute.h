/* Running an order that drops chosen buffers after the forward pass and recomputes them when they are needed. What is
 * kept is the policy's choice; the order, and what a recompute pulls in, is this. */
#ifndef PLANC_CHOOSE_RECOMPUTE_H
#define PLANC_CHOOSE_RECOMPUTE_H

#include "planner/choose/absences.h"

/* Sets keep[b] for the buffers that stay; others are dropped after their last forward use. Buffers that cannot be
 * recomputed stay whatever it says. */
typedef planc_status (*pl_keep_rule)(const planc_order *order, bool *keep);

enum { PL_NEVER = INT32_MAX };

typedef struct pl_drops {
  bool *keep;     /* per buffer: its last version stays; others are restored */
  int32_t *until; /* per buffer: the position after which it is dropped for good, its last use or the last recompute
                     that reads it (pl_absences) */
  int32_t *again; /* per instance: the first position ahead of which it may have to run again, PL_NEVER = it need not */
} pl_drops;

/* In memory of `arena`; keeps nothing. */
planc_status pl_drops_new(const planc_trace *trace, pl_arena *arena, pl_drops *out);

/* Completes keep[], what a rule wants to keep, by what has to be kept, and finds the rest. */
planc_status pl_mark_drops(const planc_order *order, pl_arena *arena, pl_drops *drops);

/* Fills in how what is not kept is away: from its last forward use to the next that reads, and where brief[b] also
 * between any two later uses of which the second reads; `brief` may be NULL. Returns how many there are, at most one
 * for each access. */
int32_t pl_drop(const planc_order *order, const pl_drops *drops, const bool *brief, pl_absence *items);

/* A candidate for the whole batch, algorithms by the room there is. */
planc_status pl_recompute_plan(const planc_evaluator *evaluator, pl_keep_rule rule, planc_candidate *out);

#endif
