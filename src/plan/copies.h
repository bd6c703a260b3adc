/* Which way copies go, as far as the GPUs are concerned, and what people read of that. */
#ifndef PLANC_PLAN_COPIES_H
#define PLANC_PLAN_COPIES_H

#include "plan/layout.h"

typedef enum planc_copy_way {
  PLANC_COPY_IN,     /* to a GPU */
  PLANC_COPY_OUT,    /* from a GPU to no other */
  PLANC_COPY_WITHIN, /* inside a memory */
  PLANC_COPY_PAST,   /* between memories that are no GPU's, as far as they are known */
  PLANC_N_COPY_WAYS
} planc_copy_way;

/* The memory of one side of a copy, which is a residency or PLANC_USER; -1 = not known. */
int32_t planc_memory_of_side(const planc_plan *plan, const planc_acquired *acquired, int32_t side);
/* By the memories of its two sides, whatever stream it is on; of a plan that nobody need have checked. */
planc_copy_way planc_way_of_copy(const planc_plan *plan, const planc_acquired *acquired, const planc_instr *instr);
/* Whether a side of a copy, or either side of it, is in a memory of that kind. */
bool planc_side_is_in(const planc_plan *plan, const planc_acquired *acquired, int32_t side, planc_memory_kind kind);
bool planc_copy_touches(const planc_plan *plan, const planc_acquired *acquired, const planc_instr *instr,
                        planc_memory_kind kind);

/* The words for a copy: "prefetch", "offload", "move", "copy". */
const char *planc_copy_word(planc_copy_way way);
/* The words for a stream: "compute"; of an engine with links only to GPUs, or only from GPUs, beside those that lead
 * past them, "h2d", "d2h"; of others "copy". */
const char *planc_stream_word(const planc_plan *plan, int32_t stream);

#endif
