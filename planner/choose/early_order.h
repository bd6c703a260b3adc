/* The order in which parameters are updated as early as they can be. */
#ifndef PLANC_CHOOSE_EARLY_ORDER_H
#define PLANC_CHOOSE_EARLY_ORDER_H

#include "planc/order.h"

/* Every instance once: an optimizer op as soon as all that it waits for has run, the others as in the trace. So a
 * gradient is given up as soon as it has been used. Each op meets the versions that it meets in the trace, and comes to
 * the same bits. */
planc_status pl_early_order(const planc_trace *trace, planc_order **out);

#endif
