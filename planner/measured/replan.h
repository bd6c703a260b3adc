/* The decisions of a plan at hand, which plans made anew are held against. */
#ifndef PLANC_MEASURED_REPLAN_H
#define PLANC_MEASURED_REPLAN_H

#include "planc/update.h"

/* The plan at hand, as if it had been made on these terms with the jobs' profiles. INFEASIBLE where it does not fit the
 * budgets. *out is freed by planc_retimed_free, also after a failure. */
planc_status pl_keep_decisions(const planc_terms *terms, const planc_plan *old, const planc_profile *const *profiles,
                               planc_retimed *out);

#endif
