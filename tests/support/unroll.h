/* A run of a plan, written out: prologue, so many bodies, epilogue, by all its replicas, with the bytes that every
 * instruction touches and the full relation of what has ended before what starts, taken from streams and events alone.
 * An oracle for whatever orders or judges plans; time and memory grow with the square of the run's length. */
#ifndef PLANC_TESTS_UNROLL_H
#define PLANC_TESTS_UNROLL_H

#include "planc/plan.h"
#include "planc/trace.h"
#include "util/vec.h"

/* Bytes of a memory's arena. Memory m of replica r is r * n_memories + m. */
typedef struct unroll_touch {
  int32_t memory;
  int64_t from, to;
  bool writes;
} unroll_touch;

typedef struct unroll_node {
  const planc_instr *instr;
  int32_t body; /* -1: the prologue; the one after the last: the epilogue */
  int32_t replica;
  int64_t first_touch, n_touches;
} unroll_node;

typedef struct unrolled {
  const planc_plan *plan;
  const planc_trace *trace;
  int32_t bodies, replicas;
  VEC(unroll_node) nodes; /* in file order; an instruction's by replica */
  VEC(unroll_touch) touches;
  const planc_instr **acquired; /* by residency: its last acquire */
  int64_t words;
  uint64_t *before; /* bit j of row i: node j has ended when node i starts; by unrolled_order */
} unrolled;

/* Numbers in the plan must be within what its header counts, and its exec rows' uses in order. The plan and its trace
 * are borrowed. */
void unroll(const planc_plan *plan, const planc_trace *trace, int32_t bodies, unrolled *out);
void unrolled_free(unrolled *u);

/* Finds the relation, without one instruction (NULL: with all). Gives the first wait whose event nobody has recorded
 * where it must have been, or -1. */
int64_t unrolled_order(unrolled *u, const planc_instr *without);
/* True when two nodes conflict that the relation does not order: the later of them, and the first such before it. */
bool unrolled_race(const unrolled *u, int64_t out_pair[2]);

#endif
