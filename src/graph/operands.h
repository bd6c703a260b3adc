/* Matching an op's operands against its type's pattern (optypes.h) gives the size of every dimension by its letter. */
#ifndef PLANC_GRAPH_OPERANDS_H
#define PLANC_GRAPH_OPERANDS_H

#include "graph/optypes.h"

/* What the letters of a pattern stand for. */
typedef struct pl_dims {
  uint64_t bound; /* bit per letter, see pl_dims_slot */
  planc_law letter[52];
  int32_t rank; /* of `*`, -1 if not bound */
  planc_law any[PLANC_MAX_RANK];
} pl_dims;

/* The index of a letter in pl_dims.letter. */
static inline int pl_dims_slot(char letter) {
  return letter >= 'a' ? letter - 'a' + 26 : letter - 'A';
}
/* The size of a letter that does not depend on the batch. */
static inline int64_t pl_dims_of(const pl_dims *dims, char letter) {
  return dims->letter[pl_dims_slot(letter)].fixed;
}

/* How the type's pattern marks input (or output) number `index`: '!', '#', or 0 where it is of the one type that such
 * operands share. */
char pl_input_mark(const planc_optype *type, int32_t index);
char pl_output_mark(const planc_optype *type, int32_t index);

/* The types' further conditions (optypes.h, check). */
planc_status pl_check_conv(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_pool(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_upsample(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_dropout(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_cast(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_concat(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_concat_grad(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_split(const planc_graph *graph, const planc_op *op, const pl_dims *dims);
planc_status pl_check_transpose(const planc_graph *graph, const planc_op *op, const pl_dims *dims);

#endif
