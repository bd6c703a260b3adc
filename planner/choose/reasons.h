/* Why nothing fits, where several things were tried. */
#ifndef PLANC_CHOOSE_REASONS_H
#define PLANC_CHOOSE_REASONS_H

#include "planc/status.h"

/* Of two reasons why something is INFEASIBLE, *kept (NULL: none yet) and a new one, keeps the one that asks for less
 * and frees the other. Of those that ask for the same, or do not know, the first stays. */
void pl_keep_lesser(planc_status *kept, planc_status reason);

#endif
