/* Where ops and data of a recorded plan come from, behind their names. */
#ifndef PL_CLI_USERS_LINES_H
#define PL_CLI_USERS_LINES_H

#include "graph/op_place.h"
#include "planc/plan.h"

/* Of an op by the name that the plan's analyses have for it, with its job where there are several; as pl_op_place. */
const char *cli_op_place(const planc_plan *plan, const char *name, char text[PL_PLACE_TEXT]);
/* Of data that an op makes in every iteration: the place of that op. Empty for what persists. */
const char *cli_data_place(const planc_plan *plan, const char *name, char text[PL_PLACE_TEXT]);
/* Of a recorded graph: a note which time percentages are over. */
void cli_note_base(const planc_graph *graph);

#endif
