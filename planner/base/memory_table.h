/* The memories of a plan and the links between them: one table, made of the terms before anything is stated. A
 * memory's number is its row. What is known of one, and between which there are links, follows from the rows' kinds.
 * For now the planner has at most one memory of each kind: of several GPUs it plans one. */
#ifndef PLANC_BASE_MEMORY_TABLE_H
#define PLANC_BASE_MEMORY_TABLE_H

#include "planc/problem.h"
#include "util/arena.h"

enum { PL_MAX_MEMORIES = PLANC_N_MEMORY_KINDS };

typedef struct pl_memories {
  planc_memory rows[PL_MAX_MEMORIES]; /* as in the plan, with arenas of no bytes: nothing is placed yet */
  int32_t n;
} pl_memories;

/* Both may be NULL: a device, the host and the user, without limits. */
pl_memories pl_memories_of(const planc_terms *terms, const planc_profile *profile);

/* The first memory of a kind, -1 = none. */
int32_t pl_memories_first(const pl_memories *memories, planc_memory_kind kind);
/* Whether a memory is neither a device nor the user's: what is away from the devices is in one of these. */
bool pl_memories_is_away(const pl_memories *memories, int32_t memory);
/* The memory away from the devices that a link leads to from the host, -1 = none. */
int32_t pl_memories_behind_host(const pl_memories *memories);

/* The routes from the host to that memory and back, in this order. */
enum { PL_ROUTES_BEHIND_HOST = 2 };
/* How many there are: none where there is no such memory. */
int32_t pl_memories_routes_behind_host(const pl_memories *memories, planc_route routes[PL_ROUTES_BEHIND_HOST]);

/* Whether a link leads from a memory of one kind to one of another: between devices and host, between host and storage,
 * and between all of them and the user's memory. */
bool pl_memories_linked(planc_memory_kind from, planc_memory_kind to);
/* By which route data is copied from one memory to another. */
planc_route pl_memories_route(const pl_memories *memories, int32_t from, int32_t to);
/* The engine that copies by a route: each route has one, with the route's number. */
static inline int32_t pl_memories_engine(planc_route route) {
  return (int32_t)route;
}
/* The links between them, by route, in `arena`. */
planc_status pl_memories_link(const pl_memories *memories, const planc_terms *terms, const planc_profile *profile,
                              int32_t replicas, pl_arena *arena, planc_plan_link **out, int32_t *out_n);

#endif
