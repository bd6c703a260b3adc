/* A schedule within a room that has no addresses for it as it is: data move to other places on the device where no hole
 * is large enough. Such a move takes the time of reading and writing the bytes once, which is much less than that of a
 * copy to the host. Free lists that compact by copies on the device: moDNN (third-party reading of IV-B1). */
#ifndef PLANC_CHOOSE_COMPACT_H
#define PLANC_CHOOSE_COMPACT_H

#include "planc/evaluator.h"

/* States the candidate's schedule again with all addresses, none of which ends above `room`; where it finds no way
 * *out_fits is false, and the candidate is as it was. Only for one job on one replica, whose rounds do not run side by
 * side, and where no address is stated. */
planc_status pl_compact(const planc_evaluator *evaluator, int64_t room, planc_candidate *candidate, bool *out_fits);

#endif
