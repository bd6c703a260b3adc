/* Until when something that runs again may read a version: what a plan may keep behind its last use for that. */
#ifndef PLANC_AUTO_AUTO_WANTS_H
#define PLANC_AUTO_AUTO_WANTS_H

#include "planner/auto/auto_gaps.h"

/* A gap whose version can be computed again. */
typedef struct pl_again_gap {
  int32_t gap;
  int32_t version; /* its number among all */
  int32_t to;      /* as in pl_auto_gap */
} pl_again_gap;

/* An instance that may run again: numbers of the versions that it writes and reads then. */
typedef struct pl_again_run {
  const int32_t *written, *read;
  int32_t n_written, n_read;
} pl_again_run;

typedef struct pl_auto_wants {
  const planc_trace *trace;     /* borrowed */
  const int32_t *first_version; /* as in pl_auto_gaps; borrowed */
  const pl_again_gap *gaps;     /* all of them */
  int32_t n_gaps;
  const pl_again_run *again; /* the last of the order first */
  int32_t n_again;
  const int32_t *end;  /* by version: the last position that uses it, -1 = none */
  const int32_t *tail; /* by version: its tail, -1 = none */
  int32_t *until;      /* by version: the last position ahead of which it may be read to compute something again, -1 =
                          nowhere */
} pl_auto_wants;

/* In memory of `arena`; borrows the order's trace and the numbers. `latest` is pl_mark_restorable's. */
planc_status pl_auto_wants_new(const planc_order *order, const int32_t *first_version, const pl_auto_gap *gaps,
                               int32_t n_gaps, const int32_t *latest, pl_arena *arena, pl_auto_wants *out);
/* Fills in `until` for ways by gap; NULL: all that can be computed again is. */
void pl_auto_wants_find(pl_auto_wants *w, const uint8_t *ways);

#endif
