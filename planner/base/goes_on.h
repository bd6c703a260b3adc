/* Whether a planning goes on (planc_watch). */
#ifndef PLANC_BASE_GOES_ON_H
#define PLANC_BASE_GOES_ON_H

#include "planc/problem.h"

static inline bool pl_goes_on(const planc_watch *watch) {
  return !watch || watch->goes_on(watch->user);
}

static inline void pl_tell_asked(const planc_watch *watch, const char *policy, int64_t done_ppm, int64_t fastest_ns) {
  if (watch && watch->asks) watch->asks(watch->user, policy, done_ppm, fastest_ns);
}

/* INTERRUPTED where it does not. */
static inline planc_status pl_check_goes_on(const planc_watch *watch) {
  return pl_goes_on(watch) ? NULL : planc_error(PLANC_INTERRUPTED, "interrupted before any plan was found");
}

/* Takes over `status`: where it is INTERRUPTED, and there is something to show all the same, it is freed. */
static inline planc_status pl_unless_interrupted(planc_status status, bool has_something) {
  if (!has_something || planc_status_code(status) != PLANC_INTERRUPTED) return status;
  planc_status_free(status);
  return NULL;
}

#endif
