/* The decisions of a plan at hand, which plans made anew are held against. */
#ifndef PLANC_MEASURED_REPLAN_H
#define PLANC_MEASURED_REPLAN_H

#include "planc/update.h"

/* The plan at hand, as if it had been made on these terms with the jobs' profiles. INFEASIBLE where it does not fit the
 * budgets. *out is freed by planc_retimed_free, also after a failure. */
planc_status pl_keep_decisions(const planc_terms *terms, const planc_plan *old, const planc_profile *const *profiles,
                               planc_retimed *out);

/* Takes over `status` of keeping decisions, or of planning anew: one that does not fit, or is late, is no failure,
 * since the other may do, but takes the place of *why, which is freed. */
planc_status pl_will_do(planc_status status, bool *out_does, planc_status *why);
/* Which of the two that `replanned` has is gone on with; where there is none, *why is the status, and taken over. */
planc_status pl_kept_or_made(bool has_kept, bool has_made, planc_status *why, planc_replanned *replanned);

#endif
