#include "planner/away/tiers.h"

#include "cost/routes.h"

/* From the device outwards; the user's is the last. */
static const struct row {
  planc_memory_kind kind;
  int64_t alignment;
} rows[PL_MOST_TIERS] = {{PLANC_MEMORY_DEVICE, PLANC_PLAN_ALIGNMENT},
                         {PLANC_MEMORY_HOST, PLANC_PLAN_ALIGNMENT},
                         {PLANC_MEMORY_STORAGE, 4096 /* the block of most file systems */},
                         {PLANC_MEMORY_USER, PLANC_PLAN_ALIGNMENT}};

/* A memory that the plan may use is in its tables, whether it does or not: who plans anew may use it as well. Beyond
 * the host those are there that have a budget. */
pl_tiers pl_tiers_of(const planc_problem *problem) {
  pl_tiers tiers = {.n = 0};
  for (int32_t k = 0; k < PL_MOST_TIERS; k++) {
    bool user = k == PL_MOST_TIERS - 1;
    int64_t budget = problem && !user ? problem->terms.budgets[rows[k].kind] : -1;
    if (k > PL_TIER_HOST && !user && (!problem || budget == 0)) continue;
    tiers.memories[tiers.n++] = (planc_memory){
        .kind = rows[k].kind, .gpu = -1, .bytes = -1, .budget_bytes = budget, .alignment = rows[k].alignment};
  }
  planc_memory *own = &tiers.memories[PL_TIER_DEVICE];
  own->gpu = 0;
  if (!problem) return tiers;
  own->bytes = planc_profile_device(problem->job.profile)->memory_bytes;
  own->reserved_bytes = planc_profile_device(problem->job.profile)->reserved_bytes;
  return tiers;
}

planc_route pl_tiers_route(const pl_tiers *tiers, int32_t from, int32_t to) {
  return pl_route_between(tiers->memories[from].kind, tiers->memories[to].kind);
}

/* --- Links -------------------------------------------------------------------------------------------------------- */

static bool meet(const pl_tiers *tiers, int32_t one, int32_t other) {
  int32_t user = tiers->n - 1;
  return one != other && (one == user || other == user || one - other == 1 || other - one == 1);
}

/* An engine for each route: its number. The bus of a GPU's engines is shared where the problem says so. What is beyond
 * the host is there for all replicas, so its engines' are. */
static planc_plan_link link_between(const pl_tiers *tiers, const planc_problem *problem, int32_t replicas, int32_t from,
                                    int32_t to) {
  planc_route route = pl_tiers_route(tiers, from, to);
  bool of_gpu = pl_routes[route].memory == PLANC_MEMORY_DEVICE;
  bool shared = of_gpu ? problem->terms.shared_link : replicas > 1;
  return (planc_plan_link){.from = from,
                           .to = to,
                           .engine = (int32_t)route,
                           .bus = shared ? (int32_t)route : -1,
                           .cost = planc_profile_device(problem->job.profile)->links[route]};
}

planc_status pl_tiers_link(const pl_tiers *tiers, const planc_problem *problem, int32_t replicas, pl_arena *arena,
                           planc_plan_link **out, int32_t *out_n) {
  int32_t n_pairs = tiers->n * tiers->n;
  *out_n = 0;
  PLANC_TRY(PL_NEW(arena, out, n_pairs));
  for (int32_t route = 0; route < PLANC_N_ROUTES; route++) {
    for (int32_t pair = 0; pair < n_pairs; pair++) {
      int32_t to = pair / tiers->n, from = pair % tiers->n;
      if (meet(tiers, from, to) && (int32_t)pl_tiers_route(tiers, from, to) == route)
        (*out)[(*out_n)++] = link_between(tiers, problem, replicas, from, to);
    }
  }
  return NULL;
}
