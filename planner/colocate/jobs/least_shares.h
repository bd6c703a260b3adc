/* Jobs that are to keep a least part of the speed that they have alone, whatever runs beside them. */
#ifndef PLANC_COLOCATE_LEAST_SHARES_H
#define PLANC_COLOCATE_LEAST_SHARES_H

#include "planc/colocate.h"

/* In parts per million; 0 = none. */
int64_t pl_least_share_of(const planc_mix *mix, int32_t job);

/* Chooses the iterations that are open anew, for a plan in which jobs are too slow: by their weights but for the least
 * shares, if all were as fast together as in that plan. Where none would do, those that come nearest. False: they stay
 * what they are. */
bool pl_least_shares_choose(const planc_mix *mix, planc_mix_share *shares);
/* LATE where a job is slower than it may be. */
planc_status pl_least_shares_hold(const planc_mix *mix, const planc_mix_share *shares);

#endif
