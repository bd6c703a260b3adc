/* What the two parts of `capuchin` share. */
#ifndef PLANC_POLICIES_CAPUCHIN_H
#define PLANC_POLICIES_CAPUCHIN_H

#include "planner/choose/absences.h"

typedef struct capuchin {
  /* Per access: by how much the swap-in for it begins earlier than its own time asks for; NULL = nowhere. */
  const int64_t *leads;
  bool alone; /* each swap is judged as if the link were its own */
} capuchin;

/* The choice between swapping and recompute (pl_absence_rule); `context` is a capuchin. */
planc_status pl_capuchin_choose(const void *context, const pl_walk *walk, pl_arena *arena, pl_absences *out);

#endif
