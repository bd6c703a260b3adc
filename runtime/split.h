/* How a job is split over replicas: where that differs it is another training. */
#ifndef PLANRT_SPLIT_H
#define PLANRT_SPLIT_H

#include <stdint.h>

#include "planc/status.h"

typedef struct rt_split {
  uint64_t replicas, batch; /* the batch that of all replicas */
} rt_split;

/* STALE, with the first thing by which a split differs from the run's; NULL where nothing does. */
planc_status rt_split_tell(const rt_split *run, const rt_split *other);

#endif
