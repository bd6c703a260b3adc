/* Where the op of a recorded graph comes from (planc-graph(5), RECORDED STEPS). */
#ifndef PL_GRAPH_OP_PLACE_H
#define PL_GRAPH_OP_PLACE_H

#include "planc/graph.h"

enum { PL_PLACE_TEXT = 128 };
/* The line that its user wrote, to stand behind the op's name: " (train.py:41)", or " (train.py:41, backward)" of a
 * call for that line. Empty where the graph was not recorded. */
const char *pl_op_place(const planc_op *op, char text[PL_PLACE_TEXT]);
/* Of the graph's op of this name. */
const char *pl_op_place_by_name(const planc_graph *graph, const char *op, char text[PL_PLACE_TEXT]);

#endif
