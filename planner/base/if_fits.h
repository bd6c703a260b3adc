/* Whoever tries several things leaves out what does not fit: that is no failure. */
#ifndef PLANC_BASE_IF_FITS_H
#define PLANC_BASE_IF_FITS_H

#include "planc/status.h"

/* Takes over `status`: an INFEASIBLE one is freed. */
static inline planc_status pl_if_fits(planc_status status, bool *out_fit) {
  *out_fit = !status;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

#endif
