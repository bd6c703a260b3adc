/* Whether a plan's tables of memories, links and streams are right. */
#ifndef PLANC_PLAN_TABLES_H
#define PLANC_PLAN_TABLES_H

#include "planc/plan.h"

/* INVALID_PLAN when a table does not have the form of planc-plan(5), names what there is not, or states what
 * contradicts another row. */
planc_status pl_tables_check(const planc_plan *plan);
/* INVALID_PLAN when a number of the device, a memory, a link or the predictions is one that no file can say. */
planc_status pl_tables_check_ranges(const planc_plan *plan);
/* BAD_INPUT where a time that was worked out for a period is longer than a plan can state. */
planc_status pl_tables_check_predicted(int64_t ns);

#endif
