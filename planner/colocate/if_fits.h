/* What does not fit is not used by whoever tries several things; it is no failure. */
#ifndef PLANC_COLOCATE_IF_FITS_H
#define PLANC_COLOCATE_IF_FITS_H

#include "planc/status.h"

/* Takes over `status`: an INFEASIBLE one is freed, and no failure. */
static inline planc_status pl_if_fits(planc_status status, bool *out_fit) {
  *out_fit = !status;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

#endif
