/* The order of depths, in which Waterwave goes through a graph (papers/003, 4.4). */
#ifndef PLANC_COLOCATE_DEPTH_ORDER_H
#define PLANC_COLOCATE_DEPTH_ORDER_H

#include "planc/order.h"

/* Orders instances by depth, those of one depth by number. An instance is deeper than all whose versions it reads, and
 * than all that access an earlier version of what it writes: so each still finds the versions that it finds in the
 * trace. (The paper's depth is that of a search in breadth.) */
planc_status pl_depth_order(const planc_trace *trace, planc_order **out);

#endif
