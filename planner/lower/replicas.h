/* From the schedule of one replica to that of all. */
#ifndef PLANC_LOWER_REPLICAS_H
#define PLANC_LOWER_REPLICAS_H

#include "planc/policy.h"

/* Turns a replica's candidate into that of its whole training; others stay as they are. */
planc_status planc_replicate(planc_candidate *candidate);

#endif
