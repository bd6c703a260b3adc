/* Zico's search for time shifts (papers/000, 5): each iteration of a job starts as soon as memory allows. What it
 * and the other jobs' iterations under way hold in regions stays within the budget at any time until they end. An
 * iteration is shifted as a whole. Where too much is held at some time, what it has taken by then meets what the others
 * hold until their next release; so it is shifted by as much as brings that taking to that release. A smaller shift
 * leaves both to meet. The paper leaves open how long to wait (papers/NOTES, 21). Where it tells whether an iteration
 * fits by one look at each release, in linear time, all that is held is read anew here for every start that is tried.
 */
#ifndef PLANC_COLOCATE_SHIFT_H
#define PLANC_COLOCATE_SHIFT_H

#include "planner/colocate/jobs/timing.h"
#include "planner/colocate/memory/areas.h"

/* Sets when the passes of a steady period start, counted from the first pass of the first job, and how long the period
 * is. `jobs` lists the jobs of the group; the others' passes are left as they are. As in a plan, a job is never more
 * than a period ahead of another. *out_fits is false where some pass never fits, as one does that holds more than
 * `budget_bytes` alone; nothing is set then. Finding a start reads all that is held once for each release that the pass
 * is shifted to. */
planc_status pl_shift(pl_timing *timing, const pl_areas *areas, const int32_t *jobs, int32_t n, int64_t budget_bytes,
                      bool *out_fits);

#endif
