/* A budget that is too small, in one sentence: who needs how much of which memory, and who finds no place there. */
#ifndef PLANC_PLANNER_SHORTAGE_H
#define PLANC_PLANNER_SHORTAGE_H

#include "planc/status.h"

typedef struct pl_shortage {
  planc_shortage needs;
  int64_t budget;
  int64_t beside;   /* bytes of the budget that are reserved on the device, or storage below the host */
  int32_t replicas; /* that share what is no device's */
} pl_shortage;

/* What each replica has of the budget. */
int64_t pl_shortage_room(const pl_shortage *shortage);

/* "9 bytes of host memory, the budget is 8, 3 of it storage". Returns `text`. */
enum { PL_SHORTAGE_TEXT = 128 };
const char *pl_shortage_format(const pl_shortage *shortage, char text[PL_SHORTAGE_TEXT]);

/* INFEASIBLE, of "policy none took", say, in `who`. `why`, malloc'ed, goes on with who finds no place (no_place.h),
 * unless more than the budget is reserved, and is freed. */
planc_status pl_shortage_status(const pl_shortage *shortage, const char *who, char *why);

#endif
