/* The order of depths, in which Waterwave goes through a graph (papers/003, 4.4). */
#ifndef PLANC_COLOCATE_DEPTH_ORDER_H
#define PLANC_COLOCATE_DEPTH_ORDER_H

#include "planc/order.h"

/* By depth, at one depth by number. An instance is deeper than all whose versions it reads, and than all that meet a
 * version before the one that it makes: so that each still meets what it meets in the trace. (The paper's depth is that
 * of a search in breadth.) */
planc_status pl_depth_order(const planc_trace *trace, planc_order **out);

#endif
