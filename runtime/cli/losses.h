/* The losses of a job in an epoch that has any, as results come: what rounds and replicas give of an iteration is
 * summed up, and a period's are complete when results of the next come, or a plan ends. Memory does not depend on how
 * many there will be, unless all are to be told. */
#ifndef PLANRT_LOSSES_H
#define PLANRT_LOSSES_H

#include <stdbool.h>

#include "planc/status.h"
#include "util/vec.h"

typedef struct run_losses {
  bool keeps;                 /* every one is to be told */
  int64_t first;              /* iteration of the plan that runs */
  int64_t period, per_period; /* that of `open`, counted from there; how many iterations it has */
  double *open;               /* by iteration of the period */
  bool any;                   /* one of them was given */
  double sum;
  int64_t n;
  VEC(double) kept;      /* in order */
  bool begins;           /* the next one is an epoch's first: those of the epoch before go */
  double mean;           /* of the last epoch that is over and had losses; where `n` is 0 there is none */
  int64_t not_finite;    /* the first iteration whose loss is no finite number; -1: none */
  double not_finite_was; /* that loss */
} run_losses;

/* Of a job that no plan has yet. */
void run_losses_start(run_losses *losses, bool keeps);
/* From iteration `first` on the job has so many iterations in a period. Behind run_losses_end. */
planc_status run_losses_plan(run_losses *losses, int64_t first, int64_t per_period);
/* An epoch begins: its first loss drops those of the epoch before. */
void run_losses_begin(run_losses *losses);
/* Adds a part of an iteration's loss. */
planc_status run_losses_add(run_losses *losses, int64_t iteration, double part);
/* The epoch is over, for the job with the last iteration before `end`: those from there on do not count. */
planc_status run_losses_end(run_losses *losses, int64_t end);
void run_losses_free(run_losses *losses);

#endif
