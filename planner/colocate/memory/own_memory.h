/* Jobs side by side, each with memory of its own: none of it goes from one job to another. */
#ifndef PLANC_COLOCATE_OWN_MEMORY_H
#define PLANC_COLOCATE_OWN_MEMORY_H

#include "planc/colocate.h"
#include "planner/colocate/jobs/merge.h"

/* Places what each of the merge's jobs holds by itself, one job's memory behind the other's: the merge's addresses are
 * set. problems[j] is that of job j. out_arenas[j] is how many bytes job j has, *out_bytes how many all have.
 * Everything is allocated in `arena`. */
planc_status pl_own_memory_place(pl_arena *arena, const planc_mix_evaluator *evaluator, const planc_problem *problems,
                                 pl_merge *merge, int64_t *out_arenas, int64_t *out_bytes);

#endif
