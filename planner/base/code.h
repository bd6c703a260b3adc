/* Where a profile lists what the code of each algorithm takes on the device, a plan is charged with that of the
 * algorithms it runs. Which these are is known when the plan is made, but the room that their code leaves decides which
 * they are. So a plan is made as if their code took nothing. Where it then does not fit, it is made again for code of
 * that size. */
#ifndef PLANC_BASE_CODE_H
#define PLANC_BASE_CODE_H

#include "planc/problem.h"
#include "planc/schedule.h"

/* What is planned with: what the profile reserves, and the code that is assumed. */
int64_t pl_reserved(const planc_terms *terms, const planc_profile *profile);
/* The chunks or pages that the arena consists of, as the terms ask; 0 = it is one piece. */
int64_t pl_arena_chunk(const planc_terms *terms);
/* What the budget leaves for the arena: whole chunks, if it consists of such. */
int64_t pl_arena_room(const planc_terms *terms, const planc_profile *profile);

/* The problem's job on the target's terms and profile, for makers of one job's plan. */
planc_problem pl_problem_on(const planc_target *target, const planc_problem *problem);

/* Replaces what is reserved of the plan's devices by the profile's and the code of the plan's algorithms, and sets the
 * predicted peaks. */
void pl_charge_code(const planc_profile *profile, planc_plan *plan);
/* The code of the plan's algorithms. */
int64_t pl_code_of_plan(const planc_profile *profile, const planc_plan *plan);
/* The same of the plan that the schedule will become: each algorithm that it runs counts once. */
planc_status pl_code_of_schedule(const planc_profile *profile, const planc_schedule *schedule, int64_t *out_bytes);

/* Makes something for a target with the code_bytes of its terms, and keeps it if it is the best that fits so far.
 * INFEASIBLE when it does not fit; *out_code, where that is known, is what the code of the algorithms that it runs
 * takes. */
typedef planc_status (*pl_code_maker)(void *user, const planc_target *target, int64_t *out_code);

/* Calls `make` with no code, then a few times with the code of the time before, until what fits leaves none of it to
 * spare. Where nothing fits it goes on with the code of all algorithms, which no plan exceeds; and then as in the
 * beginning, each op with its baseline as the only algorithm, so that no faster ones are why there is no plan. The last
 * failure when that does not fit either. Once, as it is, for a profile that lists no code, and for terms whose code is
 * given. */
planc_status pl_with_code(const planc_target *target, pl_code_maker make, void *user);

#endif
