/* Running a trace that drops chosen buffers after the forward pass and recomputes them when they are needed. What is
 * kept is the policy's choice; the order, and what a recompute pulls in, is this. */
#ifndef PLANC_CHOOSE_RECOMPUTE_H
#define PLANC_CHOOSE_RECOMPUTE_H

#include "planc/policy.h"
#include "util/arena.h"

/* Sets keep[b] for the buffers of `trace` that stay; others are dropped after their last forward access. Buffers that
 * cannot be recomputed stay whatever it says. */
typedef planc_status (*planc_keep_rule)(const planc_trace *trace, bool *keep);

enum { PLANC_NEVER = INT32_MAX };

typedef struct planc_drops {
  bool *keep;     /* per buffer: its last version stays; others are restored */
  int32_t *until; /* per buffer: the instance after which it is dropped for good, its last access or the last recompute
                     that reads it (planc_absences) */
  int32_t *again; /* per instance: the first one ahead of which it may have to run again, PLANC_NEVER = it need not */
} planc_drops;

/* In memory of `arena`; keeps nothing. */
planc_status planc_drops_new(const planc_trace *trace, planc_arena *arena, planc_drops *out);

/* Completes keep[], what a rule wants to keep, by what has to be kept, and finds the rest. */
planc_status planc_mark_drops(const planc_trace *trace, planc_arena *arena, planc_drops *drops);

/* A candidate for the whole batch, algorithms by the room there is. */
planc_status planc_recompute_plan(const planc_evaluator *evaluator, planc_keep_rule rule, planc_candidate *out);

#endif
