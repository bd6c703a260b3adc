/* The order in which parameters are updated early and what takes memory runs late. */
#ifndef PLANC_CHOOSE_EARLY_ORDER_H
#define PLANC_CHOOSE_EARLY_ORDER_H

#include "planc/order.h"

/* Every instance once: an optimizer op as soon as all that it waits for has run, so that a gradient is given up as soon
 * as it has been used; any other as in the trace, or right ahead of the first op that waits for it, where fewer bytes
 * are held for as long as that is put off. Each op meets the versions that it meets in the trace, and comes to the same
 * bits. */
planc_status pl_early_order(const planc_trace *trace, planc_order **out);

#endif
