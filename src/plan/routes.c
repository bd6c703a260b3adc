#include "plan/routes.h"

planc_route pl_route_between(planc_memory_kind from, planc_memory_kind to) {
  if (to == PLANC_MEMORY_STORAGE) return PLANC_ROUTE_STORE;
  if (from == PLANC_MEMORY_STORAGE) return PLANC_ROUTE_LOAD;
  if (to == PLANC_MEMORY_DEVICE) return PLANC_ROUTE_H2D;
  return from == PLANC_MEMORY_DEVICE || to == PLANC_MEMORY_USER ? PLANC_ROUTE_D2H : PLANC_ROUTE_H2D;
}

planc_link *pl_route_link(planc_device *device, planc_route route) {
  planc_link *const links[PLANC_N_ROUTES] = {[PLANC_ROUTE_H2D] = &device->h2d,
                                             [PLANC_ROUTE_D2H] = &device->d2h,
                                             [PLANC_ROUTE_STORE] = &device->store,
                                             [PLANC_ROUTE_LOAD] = &device->load};
  return links[route];
}

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
    *pl_route_link(&device, pl_route_between(from, to)) = link->cost;
  }
  if (device.store.bytes_per_second == 0 || device.load.bytes_per_second == 0)
    device.store = device.load = (planc_link){0};
  return device;
}
