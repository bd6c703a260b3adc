/* Open addressing with linear probing, at most half full. */
#include "util/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pl_map_slot {
  const char *name; /* NULL: empty */
  uint32_t length, hash;
  int32_t value;
};

static struct pl_map_slot *find(const pl_map *map, const char *name, size_t length, uint32_t hash);
static uint32_t hash_of(const char *name, size_t length);

int32_t pl_map_get(const pl_map *map, const char *name, size_t length) {
  if (!map->capacity) return -1;
  const struct pl_map_slot *slot = find(map, name, length, hash_of(name, length));
  return slot->name ? slot->value : -1;
}

static uint32_t hash_of(const char *name, size_t length) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
  return (uint32_t)(hash ^ hash >> 32);
}

/* The slot that holds `name`, or the empty one where it would go. */
static struct pl_map_slot *find(const pl_map *map, const char *name, size_t length, uint32_t hash) {
  assert(map->count < map->capacity);
  for (int64_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
    struct pl_map_slot *slot = &map->slots[i];
    if (!slot->name) return slot;
    if (slot->hash == hash && slot->length == length && memcmp(slot->name, name, length) == 0) return slot;
  }
}

static planc_status grow(pl_map *map) {
  pl_map larger = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 64};
  larger.slots = calloc((size_t)larger.capacity, sizeof *larger.slots);
  if (!larger.slots) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int64_t i = 0; i < map->capacity; i++) {
    const struct pl_map_slot *slot = &map->slots[i];
    if (slot->name) *find(&larger, slot->name, slot->length, slot->hash) = *slot;
  }
  free(map->slots);
  *map = larger;
  return NULL;
}

planc_status pl_map_put(pl_map *map, const char *name, size_t length, int32_t value) {
  if (map->count * 2 >= map->capacity) PLANC_TRY(grow(map));
  uint32_t hash = hash_of(name, length);
  struct pl_map_slot *slot = find(map, name, length, hash);
  if (!slot->name) map->count++;
  *slot = (struct pl_map_slot){.name = name, .length = (uint32_t)length, .hash = hash, .value = value};
  return NULL;
}

void pl_map_free(pl_map *map) {
  free(map->slots);
  *map = (pl_map){0};
}
