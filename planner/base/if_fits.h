/* Whoever tries several things leaves out what does not fit: that is no failure. */
#ifndef PLANC_BASE_IF_FITS_H
#define PLANC_BASE_IF_FITS_H

#include "planc/status.h"

/* Takes over `status`: an INFEASIBLE one is no failure, but takes the place of *why, which is freed. */
static inline planc_status pl_fits_or_why(planc_status status, bool *out_fit, planc_status *why) {
  *out_fit = !status;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(*why);
  *why = status;
  return NULL;
}

/* The same where nobody asks why. */
static inline planc_status pl_if_fits(planc_status status, bool *out_fit) {
  planc_status why = NULL;
  status = pl_fits_or_why(status, out_fit, &why);
  planc_status_free(why);
  return status;
}

#endif
