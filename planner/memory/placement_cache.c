/* The cache of placements (placement_cache.h): a hash table of items and the addresses that they were given. */
#include "planner/memory/placement_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

/* What is kept at most: then all of it is forgotten, and the table fills anew. */
enum { MAX_BYTES = 64 << 20, MAX_FOUND = 4096, SLOTS = 2 * MAX_FOUND };

typedef struct found {
  uint64_t hash;
  int32_t n;
  pl_item *items; /* as they were asked for; NULL: the slot is empty */
  int64_t *addresses;
  int64_t top;
} found;

struct planc_placement_cache {
  pthread_mutex_t lock;
  int32_t n;
  int64_t bytes;
  found slots[SLOTS];
};

static bool recall(planc_placement_cache *cache, uint64_t hash, pl_item *items, int32_t n, int64_t *out_top);
static void remember(planc_placement_cache *cache, found *it);
static planc_status begin(uint64_t hash, const pl_item *items, int32_t n, found *out);
static void take_addresses(const pl_item *items, int64_t top, found *it);
static uint64_t hash_of(const pl_item *items, int32_t n);
static void forget(found *it);

planc_status pl_placement_cache_make(planc_placement_cache **out) {
  *out = calloc(1, sizeof **out);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  if (pthread_mutex_init(&(*out)->lock, NULL) == 0) return NULL;
  free(*out);
  *out = NULL;
  return planc_error(PLANC_OUT_OF_MEMORY, "no lock for the cache of placements");
}

static void forget_all(planc_placement_cache *cache) {
  for (int32_t k = 0; k < SLOTS; k++) forget(&cache->slots[k]);
  cache->n = 0;
  cache->bytes = 0;
}

void pl_placement_cache_free(planc_placement_cache *cache) {
  if (!cache) return;
  forget_all(cache);
  pthread_mutex_destroy(&cache->lock);
  free(cache);
}

planc_status pl_placement_cache_place(planc_placement_cache *cache, pl_item *items, int32_t n, int64_t *out_top,
                                      pl_overlap *out_overlap) {
  if (!cache || n == 0) return pl_place(items, n, out_top, out_overlap);
  found it;
  uint64_t hash = hash_of(items, n);
  if (recall(cache, hash, items, n, out_top)) return NULL;
  PLANC_TRY(begin(hash, items, n, &it));
  planc_status status = pl_place(items, n, out_top, out_overlap);
  if (status) {
    forget(&it);
    return status;
  }
  take_addresses(items, *out_top, &it);
  remember(cache, &it);
  return NULL;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static bool are_same(const found *known, uint64_t hash, const pl_item *items, int32_t n) {
  if (known->hash != hash || known->n != n) return false;
  for (int32_t i = 0; i < n; i++) {
    const pl_item *a = &known->items[i], *b = &items[i];
    bool same = a->bytes == b->bytes && a->address == b->address;
    for (int k = 0; k < PL_SPANS; k++)
      same = same && a->spans[k].start == b->spans[k].start && a->spans[k].end == b->spans[k].end;
    if (!same) return false;
  }
  return true;
}

/* The slot of these items, or the empty one where they belong. */
static found *slot_of(planc_placement_cache *cache, uint64_t hash, const pl_item *items, int32_t n) {
  uint64_t k = hash % SLOTS;
  while (cache->slots[k].items && !are_same(&cache->slots[k], hash, items, n)) k = (k + 1) % SLOTS;
  return &cache->slots[k];
}

static bool recall(planc_placement_cache *cache, uint64_t hash, pl_item *items, int32_t n, int64_t *out_top) {
  pthread_mutex_lock(&cache->lock);
  const found *known = slot_of(cache, hash, items, n);
  bool is_known = known->items != NULL;
  if (is_known) {
    for (int32_t i = 0; i < n; i++) items[i].address = known->addresses[i];
    *out_top = known->top;
  }
  pthread_mutex_unlock(&cache->lock);
  return is_known;
}

static int64_t bytes_of(const found *it) {
  return it->n * (int64_t)(sizeof *it->items + sizeof *it->addresses);
}

/* Takes it over. Another thread may have found the same meanwhile. */
static void remember(planc_placement_cache *cache, found *it) {
  if (bytes_of(it) > MAX_BYTES) {
    forget(it);
    return;
  }
  pthread_mutex_lock(&cache->lock);
  if (cache->n == MAX_FOUND || cache->bytes + bytes_of(it) > MAX_BYTES) forget_all(cache);
  found *slot = slot_of(cache, it->hash, it->items, it->n);
  if (slot->items) {
    forget(it);
  } else {
    *slot = *it;
    cache->n++;
    cache->bytes += bytes_of(it);
  }
  pthread_mutex_unlock(&cache->lock);
}

/* --- One placement ------------------------------------------------------------------------------------------------ */

static uint64_t hash_of(const pl_item *items, int32_t n) {
  uint64_t hash = PL_HASH_START;
  for (int32_t i = 0; i < n; i++) {
    pl_hash_word(&hash, (uint64_t)items[i].bytes);
    pl_hash_word(&hash, (uint64_t)items[i].address);
    for (int k = 0; k < PL_SPANS; k++)
      pl_hash_word(&hash, (uint64_t)(uint32_t)items[i].spans[k].start << 32 | (uint32_t)items[i].spans[k].end);
  }
  return hash;
}

static planc_status begin(uint64_t hash, const pl_item *items, int32_t n, found *out) {
  size_t count = (size_t)n;
  *out = (found){.hash = hash, .n = n};
  out->items = calloc(count, sizeof *out->items);
  out->addresses = calloc(count, sizeof *out->addresses);
  if (!out->items || !out->addresses) {
    forget(out);
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  }
  memcpy(out->items, items, count * sizeof *items);
  return NULL;
}

static void take_addresses(const pl_item *items, int64_t top, found *it) {
  for (int32_t i = 0; i < it->n; i++) it->addresses[i] = items[i].address;
  it->top = top;
}

static void forget(found *it) {
  free(it->items);
  free(it->addresses);
  *it = (found){0};
}
