/* The links that a profile tells of (planc_route). Which copies go by each follows from the kinds of memory alone. */
#ifndef PLANC_COST_ROUTES_H
#define PLANC_COST_ROUTES_H

#include "planc/cost.h"

/* A row of PLANC_ROUTES. */
typedef struct pl_route_row {
  const char *name;
  planc_memory_kind memory;
  bool arrives; /* at that memory; else it leaves there */
  const char *sums, *waits, *verb, *where;
} pl_route_row;
extern const pl_route_row pl_routes[PLANC_N_ROUTES];

/* The route from a memory of one kind to another memory. */
planc_route pl_route_between(planc_memory_kind from, planc_memory_kind to);
/* Whether links lead to such memories and from them. */
bool pl_device_reaches(const planc_device *device, planc_memory_kind memory);

#endif
