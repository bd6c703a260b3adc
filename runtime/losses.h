/* The losses of job 0 in an epoch, as results come: what rounds and replicas give of an iteration is summed up, and a
 * period's are complete when results of the next come. Memory does not depend on how many there will be, unless all are
 * to be told. */
#ifndef PLANRT_LOSSES_H
#define PLANRT_LOSSES_H

#include <stdbool.h>

#include "planc/status.h"
#include "util/vec.h"

typedef struct planrt_losses {
  bool keeps;                 /* every one is to be told */
  int64_t period, per_period; /* that of `open`; how many iterations it has */
  double *open;               /* by iteration of the period */
  bool any;                   /* one of them was given */
  double sum;
  int64_t n;
  VEC(double) kept; /* in order */
} planrt_losses;

planc_status planrt_losses_start(planrt_losses *losses, int64_t per_period);
/* Forgets those of the epoch before. */
void planrt_losses_begin(planrt_losses *losses);
/* Adds a part of an iteration's loss. */
planc_status planrt_losses_add(planrt_losses *losses, int64_t iteration, double part);
/* The mean of the epoch's, which is over; NaN: there were none. */
planc_status planrt_losses_end(planrt_losses *losses, double *out_mean);
void planrt_losses_free(planrt_losses *losses);

#endif
