/* Which way copies go, as far as the GPUs are concerned, and what people read of that. */
#ifndef PLANC_PLAN_COPIES_H
#define PLANC_PLAN_COPIES_H

#include "planc/plan.h"
#include "util/arena.h"

/* What the boundary and the body's acquires say of a residency. */
typedef struct pl_acquired {
  int32_t buffer, memory; /* -1: it is never acquired */
} pl_acquired;
/* By residency, in `arena`; of a plan that nobody has checked. */
planc_status pl_plan_acquired(const planc_plan *plan, pl_arena *arena, pl_acquired **out);

typedef enum pl_copy_way {
  PL_COPY_IN,     /* to a GPU */
  PL_COPY_OUT,    /* from a GPU to no other */
  PL_COPY_WITHIN, /* inside a memory */
  PL_COPY_PAST,   /* between memories that are no GPU's, as far as they are known */
  PL_N_COPY_WAYS
} pl_copy_way;

/* The memory of one side of a copy, which is a residency or PLANC_USER; -1 = not known. */
int32_t pl_memory_of_side(const planc_plan *plan, const pl_acquired *acquired, int32_t side);
/* By the memories of its two sides, whatever stream it is on; of a plan that nobody need have checked. */
pl_copy_way pl_way_of_copy(const planc_plan *plan, const pl_acquired *acquired, const planc_instr *instr);
/* Whether a side of a copy is in a memory of that kind. */
bool pl_side_is_in(const planc_plan *plan, const pl_acquired *acquired, int32_t side, planc_memory_kind kind);

/* The words for a copy: "prefetch", "offload", "move", "copy". */
const char *pl_copy_word(pl_copy_way way);
/* The words for a stream: "compute"; of an engine with links only to GPUs, or only from GPUs, beside those that lead
 * past them, "h2d", "d2h"; of one past all GPUs with links only to storage, or only from there, "store", "load"; of
 * others "copy". */
const char *pl_stream_word(const planc_plan *plan, int32_t stream);

#endif
