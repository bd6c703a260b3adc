/* The device of a plan (describe.h), from its rows. */
#include "plan/describe.h"

#include "cost/routes.h"

/* Of each route the first link that leads to the host or from it; the user's are the same. */
planc_device pl_plan_describe(const planc_plan *plan) {
  const planc_memory *memory = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  planc_device device = {.name = plan->device.name,
                         .memory_bytes = memory->bytes,
                         .reserved_bytes = memory->reserved_bytes,
                         .launch_ns = plan->device.launch_ns,
                         .in_flight = plan->device.in_flight,
                         .duplex_ppm = plan->device.duplex_ppm,
                         .slowdown_ppm = plan->device.slowdown_ppm};
  for (int32_t l = plan->n_links - 1; l >= 0; l--) {
    const planc_plan_link *link = &plan->links[l];
    planc_memory_kind from = plan->memories[link->from].kind, to = plan->memories[link->to].kind;
    if ((from != PLANC_MEMORY_HOST && to != PLANC_MEMORY_HOST) || from == PLANC_MEMORY_USER || to == PLANC_MEMORY_USER)
      continue;
    device.links[pl_route_between(from, to)] = link->cost;
  }
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    bool tier = pl_routes[r].memory != PLANC_MEMORY_DEVICE;
    if (tier && !pl_device_reaches(&device, pl_routes[r].memory)) device.links[r] = (planc_link){0};
  }
  return device;
}
