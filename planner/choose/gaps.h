/* Where the gaps of a walk's order are (planc_gap). That runs each instance once, so that it never goes back to an
 * older version: two uses of a buffer that follow each other, of which the second reads, are of one version. */
#ifndef PLANC_CHOOSE_GAPS_H
#define PLANC_CHOOSE_GAPS_H

#include <assert.h>

#include "planc/needs.h"

static inline int32_t pl_version_behind(const planc_access *access) {
  return access->write >= 0 ? access->write : access->read;
}

/* The gap of a buffer that ends at one of its uses, not the first; false where that does not read. */
static inline bool pl_gap_ends(const planc_order *order, int32_t buffer, int32_t use, planc_gap *out) {
  *out = (planc_gap){.buffer = buffer,
                     .version = planc_order_access(order, use)->read,
                     .from = order->uses[use - 1].position,
                     .to = order->uses[use].position};
  assert(out->version < 0 || pl_version_behind(planc_order_access(order, use - 1)) == out->version);
  return out->version >= 0;
}

#endif
