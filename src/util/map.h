/* A hash table from names to indices; the names stay the caller's and must outlive the table. */
#ifndef PLANC_UTIL_MAP_H
#define PLANC_UTIL_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

typedef struct pl_map {
  struct pl_map_slot *slots;
  int64_t count, capacity;
} pl_map;

/* The value stored under `name`, or -1. A zeroed pl_map is empty. */
int32_t pl_map_get(const pl_map *map, const char *name, size_t length);
/* Stores `value` under `name`, replacing what was there. */
planc_status pl_map_put(pl_map *map, const char *name, size_t length, int32_t value);
void pl_map_free(pl_map *map);

#endif
