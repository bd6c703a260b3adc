/* Plans woven by simple rules from any job, independent of the planner, for tests of what runs or judges plans.
 *
 * All instructions form one chain: an event hands over wherever the stream changes, so there is one order in which a
 * woven plan can run. With replicas each has a chain, which meets the others' around what it gets of them. Addresses
 * are first fit. */
#ifndef PLANC_TESTS_WEAVE_H
#define PLANC_TESTS_WEAVE_H

#include "planc/plan.h"
#include "util/arena.h"
#include "util/vec.h"

typedef enum weave_mode {
  WEAVE_RESIDENT, /* every buffer stays from its first access to its last */
  WEAVE_SWAP, /* every buffer of an iteration is offloaded after each access and comes back, elsewhere, for the next */
  WEAVE_STORE /* the same with all buffers and by way of the host: between accesses, and periods, all is in storage */
} weave_mode;

enum { WEAVE_COMPUTE, WEAVE_H2D, WEAVE_D2H, WEAVE_H2S, WEAVE_S2H }; /* streams */

typedef struct woven {
  planc_plan plan; /* not to be freed by planc_plan_free */
  planc_trace *trace;
  pl_arena arena;
  VEC(planc_instr) sections[3]; /* prologue, body, epilogue: the plan's, writable */
  VEC(int32_t) uses;
  int64_t workspace; /* of every exec */
} woven;

/* The graph is borrowed. */
planc_status weave(const planc_job *job, weave_mode mode, int64_t workspace, woven *out);
void woven_free(woven *w);

#endif
