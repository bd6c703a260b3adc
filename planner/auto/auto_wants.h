/* Until when something that runs again may read a version: what a plan may keep behind its last use for that. */
#ifndef PLANC_AUTO_AUTO_WANTS_H
#define PLANC_AUTO_AUTO_WANTS_H

#include "planner/auto/auto_gaps.h"

typedef struct pl_auto_wants {
  const planc_trace *trace; /* borrowed, as what follows of gaps */
  const pl_auto_gap *gaps;
  int32_t n_gaps;
  const int32_t *first_version; /* as in pl_auto_gaps */
  const int32_t *again;         /* instances that may run again, the last of the order first */
  int32_t n_again;
  const int32_t *end;  /* by version: the last position that uses it, -1 = none */
  const int32_t *tail; /* by version: its tail, -1 = none */
  int32_t *until;      /* by version: the last position ahead of which it may be read to compute something again, -1 =
                          nowhere */
} pl_auto_wants;

/* In memory of `arena`; borrows order, numbers and gaps. `latest` is pl_mark_restorable's. */
planc_status pl_auto_wants_new(const planc_order *order, const int32_t *first_version, const pl_auto_gap *gaps,
                               int32_t n_gaps, const int32_t *latest, pl_arena *arena, pl_auto_wants *out);
/* Fills in `until` for ways by gap; NULL: all that can be computed again is. */
void pl_auto_wants_find(pl_auto_wants *w, const uint8_t *ways);

#endif
