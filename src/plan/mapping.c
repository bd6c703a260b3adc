/* Mappings of virtual memory (mapping.h): whether they are right, and which bytes an address stands for. */
#include "plan/mapping.h"

#include <assert.h>

#include "plan/row.h"

static planc_status check_memory(const planc_plan *plan, int32_t m) {
  const planc_memory *memory = &plan->memories[m];
  int64_t chunk = memory->chunk_bytes, n_chunks = 0;
  if (chunk == 0 && memory->n_mappings == 0) return NULL;
  if (chunk <= 0 || chunk % memory->alignment != 0 || memory->arena_bytes % chunk != 0) {
    return planc_error(PLANC_INVALID_PLAN, "memory %d: chunks of %lld bytes, which do not make up the arena of %lld", m,
                       (long long)chunk, (long long)memory->arena_bytes);
  }
  for (int32_t k = 0; k < memory->n_mappings; k++) {
    const planc_mapping *mapping = &plan->mappings[memory->first_mapping + k];
    if (mapping->first < 0 || mapping->n < 1 || mapping->n > memory->arena_bytes / chunk ||
        mapping->first > memory->arena_bytes / chunk - mapping->n) {
      return planc_error(PLANC_INVALID_PLAN, "memory %d: mapping %d: %lld chunks from %lld on, of %lld in the arena", m,
                         k, (long long)mapping->n, (long long)mapping->first, (long long)(memory->arena_bytes / chunk));
    }
    n_chunks += mapping->n;
    if (n_chunks <= PL_ROW_MAX / chunk) continue;
    return planc_error(PLANC_INVALID_PLAN, "memory %d: mapping %d: the range of addresses is too large", m, k);
  }
  return NULL;
}

planc_status pl_mappings_check(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t m = 0; m < plan->n_memories; m++) {
    const planc_memory *memory = &plan->memories[m];
    if (memory->first_mapping != n || memory->n_mappings < 0 || memory->n_mappings > plan->n_mappings - n)
      return planc_error(PLANC_INVALID_PLAN, "memory %d: its mappings do not follow those of the memory before", m);
    n += memory->n_mappings;
    PLANC_TRY(check_memory(plan, m));
  }
  if (n == plan->n_mappings) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "%d mappings, of which memories have %d", plan->n_mappings, n);
}

int64_t pl_memory_range(const planc_plan *plan, int32_t m) {
  const planc_memory *memory = &plan->memories[m];
  int64_t n_chunks = 0;
  if (memory->chunk_bytes == 0) return memory->arena_bytes;
  for (int32_t k = 0; k < memory->n_mappings; k++) n_chunks += plan->mappings[memory->first_mapping + k].n;
  return n_chunks * memory->chunk_bytes;
}

planc_status pl_translation_make(int64_t chunk_bytes, const planc_mapping *mappings, int32_t n, pl_arena *arena,
                                 pl_translation *out) {
  *out = (pl_translation){.chunk_bytes = chunk_bytes, .n = n, .mappings = mappings};
  PLANC_TRY(PL_NEW(arena, &out->starts, (int64_t)n + 1));
  for (int32_t m = 0; m < n; m++) out->starts[m + 1] = out->starts[m] + mappings[m].n * chunk_bytes;
  return NULL;
}

int32_t pl_translation_find(const pl_translation *translation, int64_t address) {
  assert(address >= 0 && address < translation->starts[translation->n]);
  int32_t low = 0, high = translation->n; /* the mapping is in [low, high) */
  while (high - low > 1) {
    int32_t middle = low + (high - low) / 2;
    if (translation->starts[middle] <= address) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

pl_piece pl_translate(const pl_translation *translation, int64_t address, int64_t bytes) {
  if (translation->n == 0) return (pl_piece){address, bytes};
  int32_t low = pl_translation_find(translation, address);
  int64_t left = translation->starts[low + 1] - address;
  int64_t from = translation->mappings[low].first * translation->chunk_bytes + (address - translation->starts[low]);
  return (pl_piece){from, bytes < left ? bytes : left};
}
