/* A plan's tables of memories, links and streams: whether they are right, and which links there are. */
#ifndef PLANC_CHECK_TABLES_H
#define PLANC_CHECK_TABLES_H

#include "planc/plan.h"
#include "util/arena.h"

typedef struct planc_tables {
  int32_t n_links;
  uint64_t *links; /* engine, from and to of each, in ascending order */
} planc_tables;

/* INVALID_PLAN when a table does not have the form of planc-plan(5), names what there is not, or states what
 * contradicts another row. */
planc_status planc_tables_make(const planc_plan *plan, planc_arena *arena, planc_tables *out);
/* Whether the engine has a link between the two memories. */
bool planc_tables_link(const planc_tables *tables, int32_t engine, int32_t from, int32_t to);

#endif
