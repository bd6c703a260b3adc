/* The table of routes (routes.h), and what follows from it. */
#include "cost/routes.h"

const pl_route_row pl_routes[PLANC_N_ROUTES] = {
#define X(id, name, memory, ...) [PLANC_ROUTE_##id] = {name, PLANC_MEMORY_##memory, __VA_ARGS__},
    PLANC_ROUTES(X)
#undef X
};

/* Kinds of memory ascend with the distance from the GPU. Only between the user's memory and the host's nothing is
 * farther than the ends: these go by a GPU's links. */
planc_route pl_route_between(planc_memory_kind from, planc_memory_kind to) {
  for (int memory = PLANC_N_MEMORY_KINDS - 1; memory >= 0; memory--) {
    for (int r = 0; r < PLANC_N_ROUTES; r++) {
      planc_memory_kind end = pl_routes[r].arrives ? to : from;
      if (pl_routes[r].memory == (planc_memory_kind)memory && end == pl_routes[r].memory) return (planc_route)r;
    }
  }
  return to == PLANC_MEMORY_USER ? PLANC_ROUTE_D2H : PLANC_ROUTE_H2D;
}

bool pl_device_reaches(const planc_device *device, planc_memory_kind memory) {
  bool reaches = true;
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    if (pl_routes[r].memory == memory) reaches &= device->links[r].bytes_per_second > 0;
  return reaches;
}
