/* Whether a mix can be asked for at all. */
#ifndef PLANC_COLOCATE_JOBS_MIX_CHECK_H
#define PLANC_COLOCATE_JOBS_MIX_CHECK_H

#include "planc/colocate.h"

/* USAGE where it cannot: the message names the job and what of it is refused. */
planc_status pl_mix_check(const planc_mix *mix);

#endif
