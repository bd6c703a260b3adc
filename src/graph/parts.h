/* Parts of a batch: whether an iteration of them, one after the other or each on a GPU of its own, computes what one of
 * the whole batch does. Gradients add up over the parts. So each part may compute what it likes of its own samples, but
 * of a sum over these only what adds up over the parts as well. */
#ifndef PLANC_GRAPH_PARTS_H
#define PLANC_GRAPH_PARTS_H

#include "planc/graph.h"
#include "util/arena.h"

/* BAD_INPUT where the graph is of one batch size, which has no parts, where an op of planc's own types would compute
 * something else, or see other samples, and where the loss would not add up. Of foreign types only the graph knows what
 * they do, and says it by flags; ops that say that they couple samples are not looked at. What both make is taken to
 * add up. */
planc_status pl_parts_check(pl_arena *arena, const planc_graph *graph);

#endif
