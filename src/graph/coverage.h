/* Which bytes have been written so far, while the ops of a graph are gone through in order.
 *
 * The ends of all tensors on a storage cut it into pieces that no tensor divides. Each piece knows the next one that is
 * not written yet, so that all reads and writes of a graph together take little more than sorting the ends. */
#ifndef PLANC_GRAPH_COVERAGE_H
#define PLANC_GRAPH_COVERAGE_H

#include "planc/graph.h"
#include "util/arena.h"

typedef struct pl_coverage {
  const planc_graph *graph;
  int32_t *first, *last; /* by tensor: its pieces, from first up to, not including, last */
  int32_t *unwritten;    /* by piece: itself, or a later one with no unwritten piece between */
  bool *mixed;           /* by storage: which of two ends comes first depends on the batch */
} pl_coverage;

/* At the start: inputs, params and state are written. */
planc_status pl_coverage_make(pl_arena *arena, const planc_graph *graph, pl_coverage *out);
/* The tensor's bytes have been written. False, and nothing is noted, where they are a part of a storage that is not
 * cut in the same way at every batch. */
bool pl_coverage_write(pl_coverage *coverage, int32_t tensor);
/* Whether all bytes of the tensor have been written, at every batch. */
bool pl_coverage_has(pl_coverage *coverage, int32_t tensor);

#endif
