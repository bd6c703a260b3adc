/* The memories that terms allow as rows, and which of them links join (memory_table.h). */
#include "planner/base/memory_table.h"

#include "cost/routes.h"

/* In the order of a plan's memories. */
static const struct row {
  planc_memory_kind kind;
  int64_t alignment;
} kinds[PL_MAX_MEMORIES] = {{PLANC_MEMORY_DEVICE, PLANC_ALIGNMENT},
                            {PLANC_MEMORY_HOST, PLANC_ALIGNMENT},
                            {PLANC_MEMORY_STORAGE, 4096 /* the block of most file systems */},
                            {PLANC_MEMORY_USER, PLANC_ALIGNMENT}};

/* A memory that the plan may use is in its tables, whether it does or not: who plans anew may use it as well. A storage
 * is there where it has a budget. */
pl_memories pl_memories_of(const planc_terms *terms, const planc_profile *profile) {
  pl_memories memories = {.n = 0};
  for (int32_t k = 0; k < PL_MAX_MEMORIES; k++) {
    planc_memory_kind kind = kinds[k].kind;
    int64_t budget = terms && kind != PLANC_MEMORY_USER ? terms->budgets[kind] : -1;
    if (kind == PLANC_MEMORY_STORAGE && (!terms || budget == 0)) continue;
    planc_memory *row = &memories.rows[memories.n++];
    *row =
        (planc_memory){.kind = kind, .gpu = -1, .bytes = -1, .budget_bytes = budget, .alignment = kinds[k].alignment};
    if (kind != PLANC_MEMORY_DEVICE) continue;
    row->gpu = 0;
    if (!profile) continue;
    row->bytes = planc_profile_device(profile)->memory_bytes;
    row->reserved_bytes = planc_profile_device(profile)->reserved_bytes;
  }
  return memories;
}

int32_t pl_memories_first(const pl_memories *memories, planc_memory_kind kind) {
  for (int32_t m = 0; m < memories->n; m++)
    if (memories->rows[m].kind == kind) return m;
  return -1;
}

bool pl_memories_is_away(const pl_memories *memories, int32_t memory) {
  planc_memory_kind kind = memories->rows[memory].kind;
  return kind != PLANC_MEMORY_DEVICE && kind != PLANC_MEMORY_USER;
}

int32_t pl_memories_behind_host(const pl_memories *memories) {
  for (int32_t m = 0; m < memories->n; m++)
    if (pl_memories_is_away(memories, m) && pl_memories_linked(PLANC_MEMORY_HOST, memories->rows[m].kind)) return m;
  return -1;
}

int32_t pl_memories_routes_behind_host(const pl_memories *memories, planc_route routes[PL_ROUTES_BEHIND_HOST]) {
  int32_t host = pl_memories_first(memories, PLANC_MEMORY_HOST), behind = pl_memories_behind_host(memories);
  if (behind < 0) return 0;
  routes[0] = pl_memories_route(memories, host, behind);
  routes[1] = pl_memories_route(memories, behind, host);
  return PL_ROUTES_BEHIND_HOST;
}

bool pl_memories_linked(planc_memory_kind from, planc_memory_kind to) {
  static const planc_memory_kind pairs[][2] = {{PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST},
                                               {PLANC_MEMORY_HOST, PLANC_MEMORY_STORAGE}};
  if (from != to && (from == PLANC_MEMORY_USER || to == PLANC_MEMORY_USER)) return true;
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
    if ((from == pairs[k][0] && to == pairs[k][1]) || (from == pairs[k][1] && to == pairs[k][0])) return true;
  return false;
}

planc_route pl_memories_route(const pl_memories *memories, int32_t from, int32_t to) {
  return pl_route_between(memories->rows[from].kind, memories->rows[to].kind);
}

/* --- Links -------------------------------------------------------------------------------------------------------- */

/* The bus of a GPU's engines is shared where the terms say so. What is beyond the host is there for all replicas, so
 * its engines' are. */
static planc_plan_link link_between(const pl_memories *memories, const planc_terms *terms, const planc_profile *profile,
                                    int32_t replicas, int32_t from, int32_t to) {
  planc_route route = pl_memories_route(memories, from, to);
  bool of_gpu = pl_routes[route].memory == PLANC_MEMORY_DEVICE;
  bool shared = of_gpu ? terms->shared_link : replicas > 1;
  return (planc_plan_link){.from = from,
                           .to = to,
                           .engine = pl_memories_engine(route),
                           .bus = shared ? pl_memories_engine(route) : -1,
                           .cost = planc_profile_device(profile)->links[route]};
}

planc_status pl_memories_link(const pl_memories *memories, const planc_terms *terms, const planc_profile *profile,
                              int32_t replicas, pl_arena *arena, planc_plan_link **out, int32_t *out_n) {
  int32_t n_pairs = memories->n * memories->n;
  *out_n = 0;
  PLANC_TRY(PL_NEW(arena, out, n_pairs));
  for (int32_t route = 0; route < PLANC_N_ROUTES; route++) {
    for (int32_t pair = 0; pair < n_pairs; pair++) {
      int32_t to = pair / memories->n, from = pair % memories->n;
      if (pl_memories_linked(memories->rows[from].kind, memories->rows[to].kind) &&
          (int32_t)pl_memories_route(memories, from, to) == route)
        (*out)[(*out_n)++] = link_between(memories, terms, profile, replicas, from, to);
    }
  }
  return NULL;
}
