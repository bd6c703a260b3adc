/* What the builder, its checks and the reader share. */
#ifndef PLANC_GRAPH_BUILDER_H
#define PLANC_GRAPH_BUILDER_H

#include "planc/graph.h"
#include "util/arena.h"

enum { PL_MAX_TENSORS = 16 << 20, PL_MAX_OPS = 16 << 20 };

/* A graph with what it owns; planc_graph_free expects every graph to be the first member of one. Names, operands and
 * attributes are in the arena, the other arrays are on the heap. */
typedef struct pl_owned_graph {
  planc_graph graph;
  pl_arena arena;
} pl_owned_graph;

/* Where planc_graph_builder_finish found a fault; -1 where it does not apply. */
typedef struct pl_graph_fault {
  int32_t op;
  int32_t later_op; /* the op that writes, too late, what `op` reads */
  int32_t tensor;   /* the loss, or output number `output` */
  int32_t output;
} pl_graph_fault;
static const pl_graph_fault pl_no_fault = {-1, -1, -1, -1};

/* Checks the graph as a whole: phases in order, every byte read is written before, kinds are written only where they
 * may be, operands of known types. Sets FLOPs, traffic and flags of `ops`, which are the graph's. */
planc_status pl_graph_validate(const planc_graph *graph, planc_op *ops, pl_graph_fault *out_fault);

/* planc_graph_builder_finish with more about the fault. */
planc_status pl_graph_builder_finish_at(planc_graph_builder *builder, planc_graph **out, pl_graph_fault *out_fault);
/* The tensor whose name is the first `length` bytes of `name`, or -1. */
int32_t pl_graph_builder_lookup(const planc_graph_builder *builder, const char *name, size_t length);

#endif
