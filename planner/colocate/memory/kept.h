/* Places for what a job keeps, its parameters and state: each has one address for all time. */
#ifndef PLANC_COLOCATE_KEPT_H
#define PLANC_COLOCATE_KEPT_H

#include "planc/policy.h"
#include "util/arena.h"

/* Gives every residency of a candidate's schedule whose buffer persists the place of its buffer, however often that
 * comes back to it; those that stay on the host between periods have none. The buffers are behind each other from *top
 * on, which is then where they end. residencies[] are by residency; the others are left as they are. */
planc_status pl_place_kept(pl_arena *arena, const planc_candidate *candidate, int64_t *residencies, int64_t *top);

#endif
