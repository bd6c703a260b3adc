/* What an allocator without a plan would map and unmap in the step. */
#ifndef PLANC_ANALYSIS_REMAP_H
#define PLANC_ANALYSIS_REMAP_H

#include "planc/plan.h"

/* By instruction of the body that is launched: chunks that are mapped or unmapped for it beforehand, in a period like
 * those before it; and their sum. *out_mapped is malloc'ed. USAGE for a plan without virtual memory,
 * INVALID_PLAN for one whose tables are not right. */
planc_status pl_count_mappings(const planc_plan *plan, int64_t **out_mapped, int64_t *out_sum);

#endif
