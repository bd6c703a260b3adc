/* A hash table from names to indices; the names stay the caller's and must outlive the table. */
#ifndef PLANC_UTIL_MAP_H
#define PLANC_UTIL_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

typedef struct planc_map {
  struct planc_map_slot *slots;
  int64_t count, capacity;
} planc_map;

/* The value stored under `name`, or -1. A zeroed planc_map is empty. */
int32_t planc_map_get(const planc_map *map, const char *name, size_t length);
/* Stores `value` under `name`, replacing what was there. */
planc_status planc_map_put(planc_map *map, const char *name, size_t length, int32_t value);
void planc_map_free(planc_map *map);

#endif
