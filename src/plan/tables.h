/* A plan's tables of memories, links and streams: whether they are right, and which links there are. */
#ifndef PLANC_PLAN_TABLES_H
#define PLANC_PLAN_TABLES_H

#include "planc/plan.h"
#include "util/arena.h"

/* A link by what it is looked up by. */
typedef struct planc_link_key {
  int32_t engine, from, to;
  int32_t link;
} planc_link_key;

typedef struct planc_tables {
  int32_t n_links;
  planc_link_key *links; /* by engine, from, to */
} planc_tables;

/* INVALID_PLAN when a number of the device, a memory, a link or the predictions is one that no file can say. */
planc_status planc_tables_check_ranges(const planc_plan *plan);
/* INVALID_PLAN when a table does not have the form of planc-plan(5), names what there is not, or states what
 * contradicts another row. */
planc_status planc_tables_make(const planc_plan *plan, planc_arena *arena, planc_tables *out);
/* The same without them. */
planc_status planc_tables_check(const planc_plan *plan);
/* The engine's link between the two memories, -1 = it has none. */
int32_t planc_tables_link(const planc_tables *tables, int32_t engine, int32_t from, int32_t to);

#endif
