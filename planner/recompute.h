/* Running a trace that drops chosen buffers after the forward pass and recomputes them when they are needed. What is
 * kept is the policy's choice; the order, and what a recompute pulls in, is this. */
#ifndef PLANC_PLANNER_RECOMPUTE_H
#define PLANC_PLANNER_RECOMPUTE_H

#include "planc/policy.h"

/* Sets keep[b] for the buffers of `trace` that stay; others are dropped after their last forward access. Buffers that
 * cannot be recomputed stay whatever it says. */
typedef planc_status (*planc_keep_rule)(const planc_trace *trace, bool *keep);

/* A candidate for the whole batch, algorithms by the room there is. */
planc_status planc_recompute_plan(const planc_problem *problem, planc_keep_rule rule, planc_candidate *out);

#endif
