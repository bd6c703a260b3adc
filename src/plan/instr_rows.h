/* The rows of a plan that hold instructions. */
#ifndef PLANC_PLAN_INSTR_ROWS_H
#define PLANC_PLAN_INSTR_ROWS_H

#include "plan/row.h"
#include "planc/plan.h"
#include "util/emit.h"

/* `n_uses` is how many residencies an exec names. */
void pl_instr_emit(pl_emit *emit, const planc_plan *plan, const planc_instr *instr, int32_t n_uses);

/* Reads a row; every index is within the counts that `plan` states. An exec's uses are stored in `uses`, of which
 * *n_uses of plan->n_uses are taken. */
planc_status pl_instr_read(pl_row *row, const planc_plan *plan, int32_t *uses, int32_t *n_uses, planc_instr *out);

#endif
